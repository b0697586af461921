"""What a run and its worker processes say to each other, over a channel of their own.

The worker finds the objective in a file that it is given, and says that it is ready. Then the run sends, for each
evaluation, Begin and perhaps Step after Step; the worker answers each with one Answer. Messages are pickled: both ends
are the same program, and nothing of it is kept. What goes over the channel is numbers and text only: an object of the
user's own may not be found again at the other end.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from farthing.runner.evaluate import Evaluation

HEADER = struct.Struct(">8sQ")  # of a message: the mark, and how many bytes follow
MARK = b"farthing"
CHUNK = 1 << 20  # bytes read at once


class Kind(StrEnum):
    """How a worker answers."""

    READY = "ready"  # has the objective
    REFUSED = "refused"  # cannot load it
    RETURNED = "returned"  # a value, or a failure
    YIELDED = "yielded"  # a step of an iterative learner, or a failure in it
    ENDED = "ended"  # an iterative learner has no more steps, or was closed
    INTERRUPTED = "interrupted"  # the objective raised KeyboardInterrupt
    TOLD = "told"  # SIGTERM ended it
    DIED = "died"  # the process is gone


@dataclass(frozen=True)
class Answer:
    """What came of an action, and how many seconds it took by the worker's clock, None where it cannot tell."""

    kind: Kind
    evaluation: Evaluation | None = None
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Load:
    """The objective and, in the same pickle, the options of the space: an option that the objective names is the very
    one in its configurations. And where and how it was called."""

    objective: Callable[..., Any]
    options: Mapping[str, Sequence[Any]]
    folder: str
    arguments: Sequence[str]


@dataclass(frozen=True)
class Begin:
    """Call the objective, with so much left of the budget, which goes by at that speed per second. Options of the
    configuration are given by index."""

    trial: int
    config: Mapping[str, float | int]
    step: int
    folder: Path
    left: float
    speed: float


@dataclass(frozen=True)
class Step:
    """Pull the next step, with so much left of the budget."""

    left: float


@dataclass(frozen=True)
class Close:
    """End an iterative learner."""


class Garbled(Exception):
    """What arrived was not sent by this program."""


class Channel:
    """One end of the way between a run and a worker.

    Nothing here waits for the rest of a message: who stops in the middle of one, or writes something else, must not be
    able to hold up the other.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end, self._arriving = end, bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Any) -> None:
        """OSError if nobody is there any more."""
        body = pickle.dumps(message)
        self._end.sendall(HEADER.pack(MARK, len(body)) + body)

    def arrived(self) -> Any | None:
        """The next message, None while it is not all there; EOFError at the end, Garbled if it is none."""
        while missing := self._length() - len(self._arriving):
            try:
                some = self._end.recv(min(missing, CHUNK), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError as error:  # reset: the other end is gone, and left something unread
                raise EOFError from error
            if not some:
                raise EOFError
            self._arriving += some
        body, self._arriving = self._arriving[HEADER.size :], bytearray()
        try:
            return pickle.loads(body)
        except Exception as error:  # whatever bytes may make of pickle
            raise Garbled(repr(error)) from error

    def _length(self) -> int:
        """Of the message that is arriving, as far as that is known."""
        if len(self._arriving) < HEADER.size:
            return HEADER.size
        mark, length = HEADER.unpack_from(self._arriving)
        if mark != MARK:
            raise Garbled(f"{bytes(self._arriving)!r}")
        return HEADER.size + int(length)

    def close(self) -> None:
        self._end.close()
