"""One worker process, as the run sees it: how it is started, what it answers, how it is ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import IO, Any

from farthing.errors import InvalidArgument
from farthing.numerics.threads import THREAD_LIMITS
from farthing.plain import text_of, warn
from farthing.runner.messages import SPAWNED_MAIN, Answer, AnswerKind, Begin, Channel, Close, Garbled, Payload, Step
from farthing.runner.process_tree import is_running, kill_tree, open_pidfd, signal_name
from farthing.runner.supervisor_process import SupervisorProcess, socket_pair
from farthing.space import Choice, Ordered, Space
from farthing.trial import Config

STARTING_SECONDS = 120.0  # that a process may take to be ready: large libraries on a slow disk need minutes
EXIT_SECONDS = 0.2  # between a closed channel and the exit code: a process that ends closes its files just before
DYING_SECONDS = 5.0  # that a killed process may take to end: the kernel needs milliseconds unless a disk hangs

DYING_POLL = 0.01  # seconds between checks that it has, where the system does not notify us

BOOT = (  # with the run's sys.path, so that both find the same modules
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from farthing.runner.worker import main; main(*map(int, sys.argv[1:]))"
)


class CannotIsolate(InvalidArgument):
    """The objective cannot run in a process of its own."""


class NoProcesses(CannotIsolate):
    """No objective can, on this system."""


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
            raise NoProcesses("worker processes need a POSIX system")
        if not sys.executable:
            raise CannotIsolate("Python does not know the path of its own program (sys.executable)")
        options = {name: param.items for name, param in space.params.items() if isinstance(param, Choice | Ordered)}
        file = _pickled(Payload(objective, options, _working_directory(), sys.argv))
        path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
        threads = max(_processor_count() // workers, 1)
        return cls(file, path, {**dict.fromkeys(THREAD_LIMITS, str(threads)), **os.environ})

    def supervisor(self) -> SupervisorProcess:
        """A process that starts workers. To the command it adds the number of a worker's end of its channel."""
        numbers = [str(self.payload.fileno()), str(os.getpid())]
        command = [sys.executable, "-P", "-c", BOOT, self.path, *numbers]
        return SupervisorProcess(command, self.environment, [self.payload.fileno()])


def _pickled(payload: Payload) -> IO[bytes]:
    import cloudpickle

    file = tempfile.TemporaryFile()  # noqa: SIM115  # the pool closes it
    try:
        with _spawned_main_by_value():
            cloudpickle.dump(payload, file)
    except Exception as error:  # objects in the objective's closure may raise anything
        file.close()
        raise CannotIsolate(f"it cannot be pickled ({type(error).__name__}: {text_of(error)})") from error
    file.flush()
    return file


@contextmanager
def _spawned_main_by_value() -> Iterator[None]:
    """What a script defines is pickled by value, also in a process that multiprocessing spawned, where the script has
    another name. Workers do not import it."""
    import cloudpickle

    module = sys.modules.get(SPAWNED_MAIN)
    if module is None or SPAWNED_MAIN in cloudpickle.list_registry_pickle_by_value():
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


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

    def __init__(self, supervisor: SupervisorProcess) -> None:
        """Raises OSError if no process can be started."""
        ours, theirs = socket_pair()
        try:
            with theirs:
                self.pid = supervisor.start(theirs)
        except BaseException:
            ours.close()
            raise
        self._supervisor, self._channel = supervisor, Channel(ours)
        self._pidfd = open_pidfd(self.pid)
        self._started = time.monotonic()
        self.left: Callable[[], float] | None = None  # what is left of the budget, of the evaluation it has
        self.is_awake = False  # Python has started, and loads the objective
        self.is_ready = False  # has loaded the objective
        self.is_idle = True  # waits for Begin
        self.is_worn = False  # has gathered processes that ended, of which it cannot be rid

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
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._started

    @property
    def is_starting_too_long(self) -> bool:
        return not self.is_ready and self.age > STARTING_SECONDS

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
            return Answer(AnswerKind.DIED, reason=self._how_it_ended()) if self._has_ended() else None
        if answer.kind is AnswerKind.AWAKE:
            self.is_awake = True
            return None
        self.is_ready = True
        self.is_idle, self.is_worn = answer.kind is not AnswerKind.YIELDED, answer.is_worn
        return answer

    def _has_ended(self) -> bool:
        return self._supervisor.exit_code(self.pid) is not None or not is_running(self.pid, self._pidfd)

    def _how_it_ended(self) -> str:
        code = self._supervisor.exit_code(self.pid, EXIT_SECONDS)
        if code is None:
            return "ended its process" if self._has_ended() else "closed the channel between its process and the run"
        if code >= 0:
            return f"ended its process with exit code {code}"
        name = signal_name(-code)
        return f"died of {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")

    def terminate(self) -> None:
        """Send SIGTERM, which the worker raises inside the objective."""
        if not self._has_ended():
            with suppress(OSError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and all it started."""
        if not self._has_ended():
            kill_tree(self.pid)
        else:  # its number may be another process's by now, but not its group's number while the group has members
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        is_dead = self._wait_for_end(DYING_SECONDS)
        self._supervisor.forget(self.pid)
        self._channel.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if not is_dead:  # the kernel is busy with it, for example with a disk that does not answer
            warn(f"process {self.pid} was killed but has not ended")

    def _wait_for_end(self, seconds: float) -> bool:
        if self._pidfd is not None:
            return bool(wait([self._pidfd], seconds))
        deadline = time.monotonic() + seconds
        while not (ended := self._has_ended()) and time.monotonic() < deadline:
            self._supervisor.exit_code(self.pid, DYING_POLL)
            time.sleep(DYING_POLL * self._supervisor.is_gone)
        return ended
