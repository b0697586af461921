"""Worker processes: evaluations side by side, each of which can be told to end, and killed with all it started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import IO, Any, Self

from farthing.errors import InvalidArgument
from farthing.numerics.threads import THREAD_LIMITS
from farthing.run_context import Run
from farthing.runner.executors import Happened, logger, warn_of_closing
from farthing.runner.interrupts import Interrupts
from farthing.runner.messages import Answer, Begin, Channel, Close, Garbled, Kind, Load, Step
from farthing.runner.process_tree import end_all, pidfd, signal_name
from farthing.space import Choice, Ordered, Space
from farthing.study import Objective
from farthing.trial import Config

STARTING_SECONDS = 120.0  # that a process may take to be ready
DYING_SECONDS = 5.0  # that the system may take to end a process
TRIES = 3  # starts of a process that may fail in a row
NO_PIDFD_POLL = 0.5  # seconds between two looks whether a process is there, where the system does not tell

BOOT = (  # modules are found where the run finds them
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from farthing.runner.worker import main; main(*map(int, sys.argv[1:]))"
)


class CannotShip(InvalidArgument):
    """The objective cannot be run in another process."""


@dataclass(frozen=True)
class Recipe:
    """All that a process is started with; what the program changes meanwhile in its own environment does not matter."""

    file: IO[bytes]  # with the pickled Load
    path: str
    environment: dict[str, str]


def recipe_of(objective: Objective, space: Space, maximize: bool, workers: int) -> Recipe:
    """For processes that share the machine's processors."""
    import cloudpickle

    if os.name != "posix":
        raise CannotShip("processes that can be told to end and killed need a POSIX system")
    if not sys.executable:
        raise CannotShip("this Python does not know its own program (sys.executable)")
    options = {name: param.items for name, param in space.params.items() if isinstance(param, Choice | Ordered)}
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the run closes it
    try:
        cloudpickle.dump(Load(objective, options, _folder(), sys.argv, maximize), file)
    except Exception as error:  # whatever its closure holds may raise what it likes
        file.close()
        raise CannotShip(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    file.flush()
    threads = max(_processors() // workers, 1)
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
    return Recipe(file, path, {**dict.fromkeys(THREAD_LIMITS, str(threads)), **os.environ})


def _folder() -> str:
    """Where we are; nowhere, if that was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _processors() -> int:
    """That we may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Process:
    """A worker process, and the channel to it. It leads a session of its own, so that all it starts can be ended."""

    def __init__(self, recipe: Recipe) -> None:
        ours, theirs = socket.socketpair()
        given = theirs.fileno(), recipe.file.fileno()
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    [sys.executable, "-P", "-c", BOOT, *map(str, given), recipe.path],
                    pass_fds=given, stdin=subprocess.DEVNULL, start_new_session=True, env=recipe.environment,
                )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        self._channel = Channel(ours)
        self._end = pidfd(self._popen.pid)  # readable when the process has ended
        self._since = time.monotonic()
        self.run: Run | None = None
        self.is_ready = False  # has the objective
        self.is_idle = True  # waits for Begin

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def signs(self) -> list[Any]:
        """What becomes readable when there is news. The channel alone does not tell of an end: a fork of the process
        may hold it open."""
        return [self._channel] if self._end is None else [self._channel, self._end]

    @property
    def is_silent(self) -> bool:
        """Whether an end may go unnoticed."""
        return self._end is None

    @property
    def is_late(self) -> bool:
        return not self.is_ready and time.monotonic() - self._since > STARTING_SECONDS

    def send(self, message: Begin | Step | Close) -> None:
        self.is_idle = False
        with suppress(OSError):  # of one that is gone the end will be seen
            self._channel.send(message)

    def receive(self) -> Answer | None:
        """The answer that is there, None if there is none; that of a process which is gone says how it ended."""
        try:
            answer: Answer | None = self._channel.arrived()
        except EOFError:
            return Answer(Kind.DIED, reason=self._how_it_ended())
        except Garbled as error:
            return Answer(Kind.DIED, reason=f"wrote into the channel between its process and the run ({error})")
        if answer is None:
            return None if self._popen.poll() is None else Answer(Kind.DIED, reason=self._how_it_ended())
        self.is_ready = True
        self.is_idle = answer.kind is not Kind.YIELDED
        return answer

    def _how_it_ended(self) -> str:
        try:
            code = self._popen.wait(0.2)
        except subprocess.TimeoutExpired:
            return "closed the channel between its process and the run"
        if code >= 0:
            return f"ended its process with exit code {code}"
        name = signal_name(-code)
        return f"died of {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")

    def tell_to_end(self) -> None:
        with suppress(OSError):
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """The process and all it started."""
        if self._popen.poll() is None:
            end_all(self.pid)
        else:  # of a process that was waited for the number may be another's, but not that of a group that is left
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        try:
            self._popen.wait(DYING_SECONDS)
        except subprocess.TimeoutExpired:  # the system is busy with it, with a disk that does not answer say
            logger.warning("process %d was killed and does not end", self.pid)
        self._channel.close()
        if self._end is not None:
            os.close(self._end)


class Processes:
    """Worker processes: each evaluation owns one until it ends, and one that ended well leaves it to the next.

    Once one was needed anew, one more than needed is kept warm, so that nobody waits for Python to start.
    """

    can_kill = True

    def __init__(self, recipe: Recipe, space: Space, workers: int, interrupts: Interrupts, reuse: bool) -> None:
        self._recipe, self._space, self._workers = recipe, space, workers
        self._interrupts, self._reuse = interrupts, reuse
        self._spares = 0 if reuse else 1
        self._idle: list[Process] = []
        self._owned: dict[int, Process] = {}
        self._failures, self._trouble = 0, ""  # starts that failed in a row, and why the last did

    def started(self, patience: float) -> Self:
        """With the first process ready, so that an objective that cannot be loaded there is known, unless the time for
        all of the study is over before."""
        try:
            self._warm(self._workers)
            self.has_room(patience)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in (*self._owned.values(), *self._idle):
            process.kill()
        self._owned, self._idle = {}, []
        self._recipe.file.close()

    # -- processes that wait for work --------------------------------------------------------------------------------

    def _warm(self, count: int) -> None:
        while len(self._idle) < count:
            if self._failures >= TRIES:
                raise CannotShip(self._trouble)
            try:
                self._idle.append(Process(self._recipe))
            except OSError as error:
                self._failed(f"no process can be started ({error})")

    def _failed(self, why: str) -> None:
        self._failures, self._trouble = self._failures + 1, why

    def has_room(self, patience: float) -> bool:
        """Whether a process has the objective and waits."""
        deadline = time.monotonic() + patience
        self._look(0.0)
        while not any(process.is_ready for process in self._idle):
            self._warm(1)
            if (left := deadline - time.monotonic()) <= 0.0 or self._interrupts.any:
                return False
            self._look(min(left, STARTING_SECONDS))
        return True

    def _look(self, seconds: float) -> None:
        for process, answer in self._heard(self._idle, seconds):
            self._found_idle(process, answer)
        for process in [process for process in self._idle if process.is_late]:
            self._found_idle(process, Answer(Kind.DIED, reason=f"was not ready within {STARTING_SECONDS:.0f} seconds"))

    def _found_idle(self, process: Process, answer: Answer) -> None:
        """One that waits for work has said something: that it is ready, or its last."""
        if answer.kind is Kind.READY:
            self._failures = 0
            return
        self._idle.remove(process)
        process.kill()
        if answer.kind is Kind.REFUSED:
            self._failures, self._trouble = TRIES, f"it cannot be loaded there ({answer.reason})"
        elif not process.is_ready:
            self._failed(f"a worker process {answer.reason} while it started")

    # -- evaluations -------------------------------------------------------------------------------------------------

    def reserve(self, trial: int) -> None:
        process = next(process for process in self._idle if process.is_ready)
        self._idle.remove(process)
        self._owned[trial] = process

    def begin(self, run: Run, config: Config) -> None:
        process = self._owned[run.trial]
        process.run = run
        stored = self._space.store_config(config)
        process.send(Begin(run.trial, stored, run.step, run.folder, run.left(), run.speed))
        self._keep_warm(self._spares)

    def _keep_warm(self, spares: int) -> None:
        self._spares = spares
        with suppress(CannotShip):  # whoever needs it will be told
            self._warm(spares)

    def step(self, trial: int) -> None:
        process = self._owned[trial]
        assert process.run is not None
        process.send(Step(process.run.left()))

    def wait(self, seconds: float | None) -> list[Happened]:
        owned = {process: trial for trial, process in self._owned.items()}
        happened = []
        for process, answer in self._heard([*owned, *self._idle], seconds):
            if process not in owned:
                self._found_idle(process, answer)
                continue
            happened.append(Happened(owned[process], answer))
            if answer.kind is Kind.YIELDED:
                self._keep_warm(1)  # it may keep its process while others go on
        return happened

    def _heard(self, processes: Iterable[Process], seconds: float | None) -> list[tuple[Process, Answer]]:
        """What they say next, nothing if that takes longer or a signal came."""
        of = {sign: process for process in processes for sign in process.signs}
        silent = {process for process in of.values() if process.is_silent}
        if silent:
            seconds = NO_PIDFD_POLL if seconds is None else min(seconds, NO_PIDFD_POLL)
        woken = wait([*of, *self._interrupts.wakes], seconds)
        news = dict.fromkeys([*(of[sign] for sign in woken if sign in of), *silent])  # each once, in order
        return [(process, answer) for process in news if (answer := process.receive()) is not None]

    def close(self, trials: Collection[int], seconds: float) -> None:
        """Those of iterative learners may clean up, all at once; a process that did its work well is left for the
        next."""
        closing: dict[Process, int] = {}
        for process, trial in [(self._owned.pop(trial), trial) for trial in trials if trial in self._owned]:
            if process.is_idle:
                self._release(process)
            else:
                process.send(Close())
                closing[process] = trial
        deadline = time.monotonic() + seconds
        while closing and (left := deadline - time.monotonic()) > 0.0 and self._interrupts.interrupted < 2:
            for process, answer in self._heard(closing, left):
                self._closed(process, closing.pop(process), answer)
            self._interrupts.heard()
        for process, trial in closing.items():
            warn_of_closing(trial, "took too long, and was killed")
            process.kill()

    def _closed(self, process: Process, trial: int, answer: Answer) -> None:
        if answer.kind is not Kind.ENDED:
            warn_of_closing(trial, answer.reason or f"was {answer.kind}")
            process.kill()
            return
        if answer.evaluation is not None:
            warn_of_closing(trial, f"raised {answer.evaluation.outcome.error}")
        self._release(process)

    def _release(self, process: Process) -> None:
        if self._reuse and len(self._idle) <= self._workers:
            self._idle.insert(0, process)
        else:
            process.kill()

    def process_of(self, trial: int) -> int:
        return self._owned[trial].pid

    def tell_to_end(self, trial: int) -> None:
        self._owned[trial].tell_to_end()

    def kill(self, trial: int) -> None:
        if trial in self._owned:
            self._owned.pop(trial).kill()
            self._spares = 1
