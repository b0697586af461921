"""One worker process, as the run sees it: how it is started, what it answers, how it is ended."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from farthing.errors import InvalidArgument
from farthing.numerics.threads import THREAD_LIMITS
from farthing.runner.messages import Answer, AnswerKind, Begin, Channel, Close, Garbled, Payload, Step
from farthing.runner.process_tree import kill_tree, open_pidfd, signal_name
from farthing.space import Choice, Ordered, Space
from farthing.trial import Config

logger = logging.getLogger("farthing")

STARTING_SECONDS = 120.0  # that a process may take to be ready: large libraries on a slow disk need minutes
EXIT_SECONDS = 0.2  # between a closed channel and the exit code: a process that ends closes its files just before
DYING_SECONDS = 5.0  # that a killed process may take to end: the kernel needs milliseconds unless a disk hangs

BOOT = (  # with the run's sys.path, so that both find the same modules
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from farthing.runner.worker import main; main(*map(int, sys.argv[1:]))"
)


class CannotIsolate(InvalidArgument):
    """The objective cannot run in a process of its own."""


@dataclass(frozen=True)
class WorkerSetup:
    """What every process of a run is started with, whatever the program changes in its environment meanwhile."""

    payload: IO[bytes]  # a file with the pickled Payload
    path: str  # sys.path as JSON
    environment: dict[str, str]

    @classmethod
    def of(cls, objective: Callable[[Config], Any], space: Space, workers: int) -> WorkerSetup:
        """For `workers` processes that share the machine's processors."""
        if os.name != "posix":
            raise CannotIsolate("worker processes need a POSIX system")
        if not sys.executable:
            raise CannotIsolate("Python does not know the path of its own program (sys.executable)")
        options = {name: param.items for name, param in space.params.items() if isinstance(param, Choice | Ordered)}
        file = _pickled(Payload(objective, options, _working_directory(), sys.argv))
        path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
        threads = max(_processor_count() // workers, 1)
        return cls(file, path, {**dict.fromkeys(THREAD_LIMITS, str(threads)), **os.environ})


def _pickled(payload: Payload) -> IO[bytes]:
    import cloudpickle

    file = tempfile.TemporaryFile()  # noqa: SIM115  # the pool closes it
    try:
        cloudpickle.dump(payload, file)
    except Exception as error:  # objects in the objective's closure may raise anything
        file.close()
        raise CannotIsolate(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    file.flush()
    return file


def _working_directory() -> str:
    """Empty if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _processor_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerProcess:
    """A worker process and the channel to it. It leads a session of its own, so that all it starts can be killed."""

    def __init__(self, setup: WorkerSetup) -> None:
        ours, theirs = socket.socketpair()
        inherited = theirs.fileno(), setup.payload.fileno()
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    [sys.executable, "-P", "-c", BOOT, *map(str, inherited), setup.path],
                    pass_fds=inherited, stdin=subprocess.DEVNULL, start_new_session=True, env=setup.environment,
                )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        self._channel = Channel(ours)
        self._pidfd = open_pidfd(self._popen.pid)
        self._started = time.monotonic()
        self.left: Callable[[], float] | None = None  # what is left of the budget, of the evaluation it has
        self.is_ready = False  # has loaded the objective
        self.is_idle = True  # waits for Begin

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def waitables(self) -> list[Any]:
        """What becomes readable when there is an answer. The channel alone does not show that the process ended,
        because a fork of it may hold the channel open."""
        return [self._channel] if self._pidfd is None else [self._channel, self._pidfd]

    @property
    def needs_polling(self) -> bool:
        """Whether the process may end without any of `waitables` becoming readable."""
        return self._pidfd is None

    @property
    def is_starting_too_long(self) -> bool:
        return not self.is_ready and time.monotonic() - self._started > STARTING_SECONDS

    def send(self, message: Begin | Step | Close) -> None:
        self.is_idle = False
        with suppress(OSError):  # the process is gone, and `receive` will say so
            self._channel.send(message)

    def receive(self) -> Answer | None:
        """The answer that has arrived, or None. If the process is gone, an answer that says how it ended."""
        try:
            answer: Answer | None = self._channel.receive()
        except EOFError:
            return Answer(AnswerKind.DIED, reason=self._how_it_ended())
        except Garbled as error:
            return Answer(AnswerKind.DIED, reason=f"wrote into the channel between its process and the run ({error})")
        if answer is None:
            return None if self._popen.poll() is None else Answer(AnswerKind.DIED, reason=self._how_it_ended())
        self.is_ready = True
        self.is_idle = answer.kind is not AnswerKind.YIELDED
        return answer

    def _how_it_ended(self) -> str:
        try:
            code = self._popen.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed the channel between its process and the run"
        if code >= 0:
            return f"ended its process with exit code {code}"
        name = signal_name(-code)
        return f"died of {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")

    def terminate(self) -> None:
        """Send SIGTERM, which the worker raises inside the objective."""
        with suppress(OSError):
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and all it started."""
        if self._popen.poll() is None:
            kill_tree(self.pid)
        else:  # its number may be another process's by now, but not its group's number while the group has members
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        try:
            self._popen.wait(DYING_SECONDS)
        except subprocess.TimeoutExpired:  # the kernel is busy with it, for example with a disk that does not answer
            logger.warning("process %d was killed but has not ended", self.pid)
        self._channel.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
