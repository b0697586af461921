"""Where evaluations happen: in this process, one at a time, or in worker processes, side by side.

A place begins, steps and closes evaluations by the number of their trial, and says what came of them. In this process
nothing can be stopped from outside; a worker can be told to end, and killed.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import farthing
from farthing.current import Run, inside
from farthing.errors import InvalidArgument
from farthing.numerics.threads import THREAD_LIMITS
from farthing.runner.evaluate import Evaluation, evaluate, next_step
from farthing.runner.interrupts import Interrupts
from farthing.runner.messages import Answer, Begin, Close, Kind, Load, Step
from farthing.study import Objective
from farthing.trial import Config

logger = logging.getLogger("farthing")

CLOSING_SECONDS = 5.0  # that an iterative learner may take to clean up once it is closed
STARTING_SECONDS = 120.0  # that a process may take to be ready


class Happened(NamedTuple):
    """An answer, and whose."""

    trial: int
    answer: Answer


class Place(Protocol):
    """Runs evaluations."""

    can_kill: bool

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, run: Run, config: Config) -> None:
        """Call the objective."""

    def step(self, trial: int) -> None:
        """Pull the next step of an iterative learner."""

    def close(self, trial: int) -> None:
        """End an evaluation that waits after a step, or has ended."""

    def wait(self, seconds: float | None) -> list[Happened]:
        """What happened next, nothing if that takes longer or a signal came."""

    def process_of(self, trial: int) -> int:
        """The id of the process in which it runs."""

    def tell_to_end(self, trial: int) -> None:
        """Ask an evaluation to come to its end."""

    def kill(self, trial: int) -> None:
        """End its process with all it started; there will be no answer."""


# -- here --------------------------------------------------------------------------------------------------------------


class Here:
    """This process: what was begun or stepped is done when one waits for it."""

    can_kill = False

    def __init__(self, objective: Objective, maximize: bool, interrupts: Interrupts) -> None:
        self._objective, self._maximize, self._interrupts = objective, maximize, interrupts
        self._steps: dict[int, tuple[Run, Iterator[Any]]] = {}
        self._next: tuple[int, Callable[[], Answer]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for trial in list(self._steps):
            self.close(trial)

    def begin(self, run: Run, config: Config) -> None:
        self._next = run.trial, lambda: self._begun(run, config)

    def step(self, trial: int) -> None:
        self._next = trial, lambda: self._stepped(*self._steps[trial])

    def wait(self, seconds: float | None) -> list[Happened]:
        if self._next is None:
            return []
        (trial, action), self._next = self._next, None
        began = time.perf_counter()
        with self._interrupts.at_once():
            answer = action()
        return [Happened(trial, Answer(answer.kind, answer.evaluation, time.perf_counter() - began))]

    def _begun(self, run: Run, config: Config) -> Answer:
        with inside(run):
            called = evaluate(self._objective, config, self._maximize)
        if isinstance(called, Evaluation):
            return Answer(Kind.RETURNED, called)
        self._steps[run.trial] = run, called
        return self._stepped(run, called)

    def _stepped(self, run: Run, steps: Iterator[Any]) -> Answer:
        with inside(run):
            evaluation = next_step(steps, self._maximize)
        return Answer(Kind.ENDED) if evaluation is None else Answer(Kind.YIELDED, evaluation)

    def close(self, trial: int) -> None:
        if trial not in self._steps:
            return
        run, steps = self._steps.pop(trial)
        try:
            with inside(run):
                getattr(steps, "close", lambda: None)()
        except (Exception, SystemExit) as error:
            _warn_of_closing(trial, repr(error))

    def process_of(self, trial: int) -> int:
        return os.getpid()

    def tell_to_end(self, trial: int) -> None:
        """Nobody can."""

    def kill(self, trial: int) -> None:
        """What was interrupted is closed."""
        self._next = None
        self.close(trial)


# -- in processes ------------------------------------------------------------------------------------------------------


class Process:
    """A worker process, and the pipe to it. It leads a session of its own, so that all it starts can be ended."""

    def __init__(self, load: bytes, threads: int) -> None:
        self.pipe, theirs = Pipe()
        limits = dict.fromkeys(THREAD_LIMITS, str(threads))
        ours = str(Path(farthing.__file__).parent.parent)
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "farthing.runner.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            env={**limits, **os.environ, "PYTHONPATH": ours},
        )  # fmt: skip
        theirs.close()
        self.run: Run | None = None
        self.is_ready, self.is_idle = False, True
        with suppress(OSError):  # if it died at once, that will be seen
            self.pipe.send_bytes(load)

    def send(self, message: Begin | Step | Close) -> None:
        self.is_idle = False
        with suppress(OSError):
            self.pipe.send(message)

    def receive(self) -> Answer:
        """The answer that is there; that of a process which is gone says how it ended."""
        try:
            answer: Answer = self.pipe.recv()
        except (EOFError, OSError):
            return Answer(Kind.DIED, reason=self._end())
        self.is_idle = answer.kind is not Kind.YIELDED
        return answer

    def _end(self) -> str:
        try:
            code = self.popen.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code >= 0:
            return f"ended its process with exit code {code}"
        name = signal.Signals(-code).name
        return f"died of {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")

    def tell_to_end(self) -> None:
        with suppress(OSError):
            os.kill(self.popen.pid, signal.SIGTERM)

    def kill(self) -> None:
        """The process and all it started."""
        with suppress(OSError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        self.pipe.close()


class Processes:
    """Worker processes: each evaluation owns one until it ends, and one that ended well leaves it to the next.

    One process more than needed is kept warm, so that nobody waits for Python to start.
    """

    can_kill = True

    def __init__(self, load: Load, workers: int, interrupts: Interrupts, reuse: bool) -> None:
        self._load, self._interrupts, self._reuse = pickle.dumps(load), interrupts, reuse
        self._threads = max((os.cpu_count() or 1) // workers, 1)
        self._workers = workers
        self._idle: list[Process] = []
        self._owned: dict[int, Process] = {}

    def started(self) -> Self:
        """With the first process ready, so that an objective that cannot be loaded there is known."""
        try:
            self._warm(self._workers)
            self._ready()
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

    def _warm(self, count: int) -> None:
        while len(self._idle) < count:
            self._idle.append(Process(self._load, self._threads))

    def _ready(self) -> Process:
        """A process that has the objective: the first one to have it."""
        self._warm(1)
        deadline = time.monotonic() + STARTING_SECONDS
        while not (ready := [process for process in self._idle if process.is_ready]):
            pipes = {process.pipe: process for process in self._idle}
            for pipe in wait(list(pipes), max(deadline - time.monotonic(), 0.0)):
                assert isinstance(pipe, Connection)
                answer = pipes[pipe].receive()
                if answer.kind is not Kind.READY:
                    raise CannotShip(f"a worker process {answer.reason or 'did not start'}")
                pipes[pipe].is_ready = True
            if time.monotonic() > deadline:
                raise CannotShip(f"no worker process was ready within {STARTING_SECONDS:.0f} seconds")
        return ready[0]

    def begin(self, run: Run, config: Config) -> None:
        process = self._ready()
        self._idle.remove(process)
        self._owned[run.trial] = process
        process.run = run
        process.send(Begin(run.trial, config, run.step, run.folder, run.left(), run.speed))
        self._warm(1)

    def step(self, trial: int) -> None:
        process = self._owned[trial]
        assert process.run is not None
        process.send(Step(process.run.left()))

    def wait(self, seconds: float | None) -> list[Happened]:
        busy = {process.pipe: trial for trial, process in self._owned.items() if not process.is_idle}
        waited: list[Any] = [*busy, *self._interrupts.wakes]
        return [
            Happened(busy[pipe], self._owned[busy[pipe]].receive())
            for pipe in wait(waited, seconds)
            if isinstance(pipe, Connection)
        ]

    def close(self, trial: int) -> None:
        """An iterative learner may clean up; a process that did its work well is left for the next."""
        process = self._owned.pop(trial, None)
        if process is None:
            return
        if not process.is_idle:
            process.send(Close())
            answer = process.receive() if process.pipe.poll(CLOSING_SECONDS) else Answer(Kind.DIED, reason="hung")
            if answer.kind is not Kind.ENDED:
                _warn_of_closing(trial, answer.reason)
            elif answer.evaluation is not None:
                _warn_of_closing(trial, answer.evaluation.outcome.error or "")
            process.is_idle = answer.kind is Kind.ENDED
        if self._reuse and process.is_idle and len(self._idle) <= self._workers:
            self._idle.insert(0, process)
        else:
            process.kill()

    def process_of(self, trial: int) -> int:
        return self._owned[trial].popen.pid

    def tell_to_end(self, trial: int) -> None:
        self._owned[trial].tell_to_end()

    def kill(self, trial: int) -> None:
        if trial in self._owned:
            self._owned.pop(trial).kill()


class CannotShip(InvalidArgument):
    """The objective cannot be run in another process."""


def shipped(objective: Objective, maximize: bool) -> Load:
    """The objective as other processes load it."""
    import cloudpickle

    try:
        code = cloudpickle.dumps(objective)
    except Exception as error:  # whatever its closure holds may raise what it likes
        raise CannotShip(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    return Load(code, list(sys.path), os.environ.get("PYTHONPATH"), os.getcwd(), maximize)


def _warn_of_closing(trial: int, what: str) -> None:
    logger.warning("trial %d: the objective raised %s while it was closed", trial, what)
