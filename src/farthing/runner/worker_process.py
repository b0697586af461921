"""One worker process, as the run sees it: how it is started, what it answers, how it is ended."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import IO, Any

from farthing.errors import InvalidArgument
from farthing.numerics.threads import with_thread_limits
from farthing.runner.messages import (
    SPAWNED_MAIN,
    Answer,
    AnswerKind,
    Begin,
    CachedFunction,
    Channel,
    Close,
    Garbled,
    Payload,
    Step,
    cached,
)  # fmt: skip
from farthing.runner.process_tree import is_running, kill_tree, open_pidfd, signal_name
from farthing.runner.processors import processor_count
from farthing.runner.supervisor_process import LostStart, SupervisorProcess, socket_pair
from farthing.runner.surroundings import Surroundings
from farthing.space import Choice, Ordered, Space
from farthing.text.plain import text_of, warn
from farthing.trial import Config

CAN_FORK = sys.platform == "linux"  # elsewhere libraries of the system do not survive it, or nobody adopts a fork
STARTING_SECONDS = 120.0  # that a process may take to be ready: large libraries on a slow disk need minutes
EXIT_SECONDS = 0.2  # between a closed channel and the exit code: a process that ends closes its files just before
NAMING_SECONDS = 10.0  # that the supervisor may take to name a process that is ready: it needs milliseconds
DYING_SECONDS = 5.0  # that a killed process may take to end: the kernel needs milliseconds unless a disk hangs

DYING_POLL = 0.01  # seconds between checks that it has, where the system does not notify us

BOOT = (  # with the run's sys.path, so that both find the same modules
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); kind = sys.argv.pop(3); "
    "exec(f'from farthing.runner.{kind} import main'); main(*map(int, sys.argv[1:]))"
)


class CannotIsolate(InvalidArgument):
    """The objective cannot run in a process of its own."""


class NoProcesses(CannotIsolate):
    """No objective can, on this system."""


@dataclass(frozen=True)
class WorkerSetup:
    """What every process of a run is started with, whatever the program changes in its environment meanwhile."""

    payload: IO[bytes]  # a file with the pickled Surroundings, then the pickled Payload
    path: str  # sys.path as JSON
    environment: dict[str, str]
    forks: bool  # whether workers may be forked from a nursery

    @classmethod
    def of(cls, objective: Callable[[Config], Any], space: Space, workers: int, forks: bool = True) -> WorkerSetup:
        """For `workers` processes that share the machine's processors."""
        environment = with_thread_limits(os.environ, max(processor_count() // workers, 1))
        surroundings = Surroundings.here(environment)
        return cls._with(lambda file: pickle_objective(objective, space, file), surroundings, import_path(), forks)

    @classmethod
    def of_pickled(
        cls, objective: bytes, surroundings: Surroundings, path: Sequence[str], forks: bool = True
    ) -> WorkerSetup:  # fmt: skip
        """For an objective that was pickled on another machine, with other surroundings than here."""
        return cls._with(lambda file: file.write(objective), surroundings, path, forks)

    @classmethod
    def _with(
        cls, write: Callable[[IO[bytes]], object], surroundings: Surroundings, path: Sequence[str], forks: bool
    ) -> WorkerSetup:  # fmt: skip
        if os.name != "posix":
            raise NoProcesses("worker processes need a POSIX system")
        if not sys.executable:
            raise CannotIsolate("Python does not know the path of its own program (sys.executable)")
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the pool closes it
        try:
            pickle.dump(surroundings, file)
            write(file)
            file.flush()
        except BaseException:
            file.close()
            raise
        return cls(file, json.dumps(path), dict(surroundings.environment), forks and CAN_FORK)

    def supervisor(self) -> SupervisorProcess:
        """A process that starts workers. To the command it adds what to start, a worker or a nursery, and the number of
        a socket: the worker's end of its channel, or the nursery's to the supervisor."""
        numbers = [str(self.payload.fileno()), str(os.getpid())]
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # -W, -X, -O as the run's
        command = [sys.executable, *flags, "-P", "-c", BOOT, self.path, *numbers]
        return SupervisorProcess(command, self.environment, [self.payload.fileno()], self.forks)


def import_path() -> list[str]:
    """Where this process looks for modules."""
    return [entry for entry in sys.path if isinstance(entry, str)]


def pickle_objective(objective: Callable[[Config], Any], space: Space, file: IO[bytes]) -> None:
    """Write what a worker needs of the objective and of its space."""
    options = {name: param.items for name, param in space.params.items() if isinstance(param, Choice | Ordered)}
    try:
        with _spawned_main_by_value():
            _pickler(file).dump(Payload(objective, options))
    except Exception as error:  # objects in the objective's closure may raise anything
        raise CannotIsolate(f"it cannot be pickled ({type(error).__name__}: {text_of(error)})") from error


def _pickler(file: IO[bytes]) -> Any:
    """One that sends by value also what a script decorates with `functools.cache` or `lru_cache`: cloudpickle sends the
    name, which means nothing without the script."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, thing: Any) -> Any:
            if type(thing) is CachedFunction and thing.__module__ in ("__main__", SPAWNED_MAIN):
                return cached, (thing.__wrapped__, thing.cache_parameters())
            return super().reducer_override(thing)

    return Pickler(file)


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


class WorkerProcess:
    """A worker process and the channel to it. It leads a session of its own, so that all it starts can be killed."""

    def __init__(self, supervisor: SupervisorProcess) -> None:
        """Ask for one. Raises OSError if there can be none; else `receive` says what becomes of it."""
        ours, theirs = socket_pair()
        with theirs:
            self._ticket = supervisor.start(theirs)
        self._supervisor, self._channel = supervisor, Channel(ours)
        self._pid: int | None = None
        self._pidfd: int | None = None
        self._asked = time.monotonic()
        self.left: Callable[[], float] | None = None  # what is left of the budget, of the evaluation it has
        self.is_loading = False  # Python has started, and loads the objective
        self.is_ready = False  # has loaded the objective
        self.is_idle = True  # waits for Begin
        self.is_worn = False  # is not to be used again
        self.lost: LostStart | None = None  # why there will be no process

    @property
    def pid(self) -> int:
        """Of a process that is ready."""
        assert self._pid is not None
        return self._pid

    def _is_known(self, seconds: float = 0.0) -> bool:
        """Whether the supervisor has told its number, within `seconds`; if not, perhaps that there will be none."""
        if self._pid is None and self.lost is None:
            match self._supervisor.became_of(self._ticket, seconds):
                case int(pid):
                    self._pid, self._pidfd = pid, open_pidfd(pid)
                case lost:
                    self.lost = lost
        return self._pid is not None

    @property
    def waitables(self) -> list[Any]:
        """What becomes readable when there is an answer. The channel alone does not show that the process ended,
        because a fork of it may hold the channel open."""
        return [self._channel] if self._pidfd is None else [self._channel, self._pidfd]

    @property
    def needs_polling(self) -> bool:
        """Whether the process may end without any of `waitables` becoming readable."""
        return self._pid is not None and self._pidfd is None

    @property
    def age(self) -> float:
        """Seconds since it was asked for."""
        return time.monotonic() - self._asked

    @property
    def is_starting_too_long(self) -> bool:
        return not self.is_ready and self.age > STARTING_SECONDS

    def send(self, message: Begin | Step | Close) -> None:
        self.is_idle = False
        with suppress(OSError):  # the process is gone, and `receive` will say so
            self._channel.send(message)

    def receive(self) -> Answer | None:
        """The answer that has arrived, or None. If the process is gone, an answer that says how it ended."""
        answer = self._received()
        if answer is None:
            return None
        if answer.kind is AnswerKind.DIED:
            self.is_idle = self.is_worn = True
            return answer
        if answer.kind is AnswerKind.AWAKE:
            self.is_loading = True
            return None
        if answer.kind is AnswerKind.READY and not self._is_known(NAMING_SECONDS):
            return Answer(AnswerKind.DIED, reason="has no number")
        self.is_ready = answer.kind is not AnswerKind.REFUSED
        self.is_idle, self.is_worn = answer.kind is not AnswerKind.YIELDED, answer.is_worn
        return answer

    def _received(self) -> Answer | None:
        try:
            answer: Answer | None = self._channel.receive()
        except EOFError:
            return Answer(AnswerKind.DIED, reason=self._how_it_ended())
        except Garbled as error:
            return Answer(AnswerKind.DIED, reason=f"wrote into the channel between its process and the run ({error})")
        if answer is None:
            return Answer(AnswerKind.DIED, reason=self._how_it_ended()) if self._has_ended() else None
        return answer

    def _has_ended(self) -> bool:
        if not self._is_known():
            return self.lost is not None
        return self._supervisor.exit_code(self.pid) is not None or not is_running(self.pid, self._pidfd)

    def _how_it_ended(self) -> str:
        code = self._supervisor.exit_code(self.pid, EXIT_SECONDS) if self._is_known(EXIT_SECONDS) else None
        if self.lost is not None:
            self.is_loading, code = self.lost.was_loading, self.lost.exit_code
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
        if not self._is_known():
            self._supervisor.cancel(self._ticket)
            self._channel.close()
            return
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
