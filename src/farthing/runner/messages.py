"""What a run and its worker processes say to each other.

A worker says that it is awake, loads the objective from a file, and says that it is ready. Then the run sends Begin for
each evaluation, followed by a Step for each further training step, and perhaps Close. The worker replies to each with
one Answer.

Messages are pickled: both ends are the same program, and nothing is stored. They hold only numbers and text, because
the other end may be unable to import a class of the user's.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from farthing.trial import Outcome

HEADER = struct.Struct(">8sQ")  # of a message: MARK, and the number of bytes that follow
MARK = b"farthing"  # tells our messages from what an objective may write into the channel by mistake
SPAWNED_MAIN = "__mp_main__"  # the name of a script, in a process that multiprocessing spawned from it
CHUNK = 1 << 20  # bytes read at once: most messages are far smaller, and attributes may be megabytes


class AnswerKind(StrEnum):
    """What a worker answers."""

    AWAKE = "awake"  # Python has started; next it loads the objective
    READY = "ready"  # it has loaded the objective
    REFUSED = "refused"  # it cannot load the objective
    RETURNED = "returned"  # the objective returned a value, or failed
    YIELDED = "yielded"  # an iterative learner did a step, or failed in it
    ENDED = "ended"  # an iterative learner has no more steps, or was closed
    INTERRUPTED = "interrupted"  # the objective raised KeyboardInterrupt
    TERMINATED = "terminated"  # SIGTERM ended the objective
    DIED = "died"  # the process is gone
    LARGE = "large"  # it held more memory than a trial may, and was killed; only workers on other machines say so
    LOST = "lost"  # the machine is gone, or was taken away: it is nobody's failure, and the trial runs again


@dataclass(frozen=True)
class Answer:
    """The result of an action, and how many seconds it took by the worker's clock (None: the worker cannot say)."""

    kind: AnswerKind
    outcome: Outcome | None = None
    seconds: float | None = None
    reason: str = ""
    is_worn: bool = False  # the worker should not be used again
    told_by: str = ""  # the signal that was raised inside the objective, which may have caught it


@dataclass(frozen=True)
class Payload:
    """What a worker loads when it starts.

    The options of the space are in the same pickle as the objective: so an option that the objective refers to is the
    same object as the one in its configurations.
    """

    objective: Callable[..., Any]
    options: Mapping[str, Sequence[Any]]


CachedFunction = type(cache(lambda: None))  # what `functools.cache` makes of a function


def cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    """That function with a cache of its own, which is empty."""
    made: Callable[..., Any] = lru_cache(**parameters)(function)
    return made


@dataclass(frozen=True)
class Begin:
    """Call the objective."""

    trial: int
    config: Mapping[str, float | int]  # options by their index
    step: int
    folder: Path
    left: float  # of the budget, in its unit
    speed: float  # how fast that shrinks, per second


@dataclass(frozen=True)
class Step:
    """Do the next training step."""

    left: float  # of the budget, in its unit


@dataclass(frozen=True)
class Close:
    """Close an iterative learner."""


class Garbled(Exception):
    """What arrived is not a message of this program."""


class Channel:
    """One end of the connection between a run and a worker.

    Receiving never waits for the rest of a message. So an end that stops in the middle of one, or writes something
    else, cannot block the other.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end, self._buffer = end, bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Any) -> None:
        """Raises OSError if the other end is gone."""
        body = pickle.dumps(message)
        self._end.sendall(HEADER.pack(MARK, len(body)) + body)

    def receive(self) -> Any | None:
        """The next message, or None while it is incomplete.

        Raises EOFError if the other end is gone, and Garbled if what arrived is not a message.
        """
        while missing := self._expected_length() - len(self._buffer):
            try:
                part = self._end.recv(min(missing, CHUNK), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError as error:  # reset: the other end is gone, and left something unread
                raise EOFError from error
            if not part:
                raise EOFError
            self._buffer += part
        body, self._buffer = self._buffer[HEADER.size :], bytearray()
        try:
            return pickle.loads(body)
        except Exception as error:  # pickle may raise anything on arbitrary bytes
            raise Garbled(repr(error)) from error

    def _expected_length(self) -> int:
        """Bytes of the message that is arriving, as far as that is known."""
        if len(self._buffer) < HEADER.size:
            return HEADER.size
        mark, length = HEADER.unpack_from(self._buffer)
        if mark != MARK:
            raise Garbled(f"{bytes(self._buffer)!r}")
        return HEADER.size + int(length)

    def close(self) -> None:
        self._end.close()
