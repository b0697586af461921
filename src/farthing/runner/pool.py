"""The executor that runs evaluations in worker processes: in parallel, and each of them can be killed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Self

from farthing.runner.executors import Assignment, TrialAnswer, warn_of_closing
from farthing.runner.failed_starts import FailedStarts
from farthing.runner.interrupts import Interrupts
from farthing.runner.messages import Answer, AnswerKind, Begin, Close, Step
from farthing.runner.supervisor_process import SupervisorProcess
from farthing.runner.worker_process import STARTING_SECONDS, CannotIsolate, WorkerProcess, WorkerSetup
from farthing.text.plain import warn
from farthing.trial import Config

logger = logging.getLogger("farthing")

END_POLL_SECONDS = 0.5  # between checks whether a process has ended, where the system does not notify us


class ProcessPool:
    """Worker processes. Each evaluation has one until it ends; if it ends well, the next evaluation reuses the process.

    A spare is kept ready, so that an evaluation after one that was killed need not wait. A fork costs next to nothing,
    and is made once the first evaluation has ended, or is told to end: then it has all that was imported. A new process
    is a spare only where one is needed for every evaluation, because none is used again or because learners that are
    paused keep theirs, and once one had to be replaced.
    """

    can_kill = True
    is_full = False

    def __init__(
        self, setup: WorkerSetup, store: Callable[[Config], Mapping[str, float | int]], workers: int,
        interrupts: Interrupts, reuse: bool,
    ) -> None:  # fmt: skip
        """`store` makes of a configuration what is sent: options by their index."""
        self._setup, self._store, self._workers = setup, store, workers
        self._interrupts, self._reuse = interrupts, reuse
        self._spares = 1 if setup.forks or not reuse else 0
        self._idle: list[WorkerProcess] = []
        self._assigned: dict[int, WorkerProcess] = {}  # to trials, paused ones included
        self._failed = FailedStarts()
        self._forks = setup.forks  # as far as is known: the objective may need something that does not survive a fork
        self._has_imported = False  # an evaluation has ended, and the nursery knows what it needs
        self._supervisor: SupervisorProcess | None = None
        self._fastest_start = math.inf

    @property
    def start_seconds(self) -> float:
        """The shortest start so far: the first one may have waited for more than a worker, and any for the run."""
        return self._fastest_start if math.isfinite(self._fastest_start) else 0.0

    def started(self, patience: float) -> Self:
        """Start the workers and wait for the first, to learn whether it can load the objective. Give up waiting after
        `patience` seconds, when the budget of the study is over."""
        try:
            self._start_idle(self._workers)
            self.has_room(patience)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        processes = [*self._assigned.values(), *self._idle]
        self._assigned, self._idle = {}, []
        try:
            for process in processes:
                process.kill()
        finally:
            self._setup.payload.close()
            if self._supervisor is not None:
                self._supervisor.close()

    # -- idle processes ----------------------------------------------------------------------------------------------

    def _start_idle(self, count: int) -> None:
        """Start processes until `count` are idle, or one cannot be started now."""
        while len(self._idle) < count:
            self._failed.raise_if_hopeless()
            if self._failed.pause_left > 0.0:
                return
            try:
                self._idle.append(WorkerProcess(self._supervised()))
            except OSError as error:
                self._failed.note_error(error)

    def _supervised(self) -> SupervisorProcess:
        """The supervisor, or another one if it died."""
        if self._supervisor is not None and self._supervisor.is_gone:
            self._supervisor.close()
            self._supervisor = None
        if self._supervisor is None:
            self._supervisor = self._setup.supervisor()
        return self._supervisor

    def has_room(self, patience: float) -> bool:
        """Whether an idle process is ready, within `patience` seconds."""
        deadline = time.monotonic() + patience
        self._wait_for_idle(0.0)
        while not any(process.is_ready for process in self._idle):
            self._start_idle(1)
            if (left := deadline - time.monotonic()) <= 0.0 or self._interrupts.any:
                return False
            pause = STARTING_SECONDS if self._idle else self._failed.pause_left
            self._wait_for_idle(min(left, pause, STARTING_SECONDS))
        return True

    def _wait_for_idle(self, seconds: float) -> None:
        """Take in what idle processes answer, waiting at most `seconds` for it."""
        for process, answer in self._answers(self._idle, seconds):
            self._take_idle_answer(process, answer)
        for process in [process for process in self._idle if process.is_starting_too_long]:
            reason = f"was not ready within {STARTING_SECONDS:.0f} seconds"
            self._take_idle_answer(process, Answer(AnswerKind.DIED, reason=reason))

    def _take_idle_answer(self, process: WorkerProcess, answer: Answer) -> None:
        """An idle process says that it is ready, or that it is of no use."""
        if answer.kind is AnswerKind.READY:
            self._failed = FailedStarts()
            self._note_birth(answer.reason)
            self._fastest_start = min(self._fastest_start, process.age)
            return
        self._idle.remove(process)
        process.kill()
        if answer.kind is AnswerKind.REFUSED:
            self._failed.note_refusal(answer.reason)
        elif process.lost is not None and process.lost.error is not None:
            self._failed.note_error(process.lost.error)
        elif not process.is_ready:
            self._failed.note_death(answer.reason, process.is_loading)

    def _note_birth(self, why_not_forked: str) -> None:
        if why_not_forked and self._forks:
            logger.debug("workers are new processes, not forks: %s", why_not_forked)
            self._spares = 0 if self._reuse else 1
        self._forks = not why_not_forked

    def _keep_spares(self, spares: int) -> None:
        """Keep this many idle processes, so that the next evaluation need not wait for one to start."""
        self._spares = spares
        with suppress(CannotIsolate):  # has_room raises it when a process is needed
            self._start_idle(spares)

    # -- evaluations -------------------------------------------------------------------------------------------------

    def reserve(self, trial: int) -> None:
        process = next(process for process in self._idle if process.is_ready)
        self._idle.remove(process)
        self._assigned[trial] = process

    def begin(self, assignment: Assignment, config: Config) -> None:
        process = self._assigned[assignment.trial]
        process.left = assignment.left
        stored = self._store(config)
        left, speed = assignment.left(), assignment.speed
        process.send(Begin(assignment.trial, stored, assignment.step, assignment.folder, left, speed))
        if not self._forks or self._has_imported:  # a new process needs the time that the evaluation takes
            self._keep_spares(self._spares)

    def step(self, trial: int) -> None:
        process = self._assigned[trial]
        assert process.left is not None
        process.send(Step(process.left()))

    def wait(self, seconds: float | None) -> list[TrialAnswer]:
        trials = {process: trial for trial, process in self._assigned.items()}
        if not self._idle and self._failed.pause_left > 0.0:  # then it is time to try again
            seconds = self._failed.pause_left if seconds is None else min(seconds, self._failed.pause_left)
        happened = []
        for process, answer in self._answers([*trials, *self._idle], seconds):
            if process not in trials:
                self._take_idle_answer(process, answer)
                continue
            happened.append(TrialAnswer(trials[process], answer))
            if answer.kind is AnswerKind.YIELDED:
                self._keep_spares(1)  # if it is paused it keeps its process, and another evaluation needs one
            elif self._forks:  # which has all that this evaluation has imported
                self._has_imported = True
                self._keep_spares(self._spares)
        return happened

    def _answers(
        self, processes: Iterable[WorkerProcess], seconds: float | None
    ) -> list[tuple[WorkerProcess, Answer]]:  # fmt: skip
        """The next answers of some processes; empty if none comes within `seconds`, or if a signal arrives first."""
        owners = {waitable: process for process in processes for waitable in process.waitables}
        polled = {process for process in owners.values() if process.needs_polling}
        if polled:
            seconds = END_POLL_SECONDS if seconds is None else min(seconds, END_POLL_SECONDS)
        supervised = [] if self._supervisor is None else self._supervisor.waitables
        readable = wait([*owners, *self._interrupts.wakeups, *supervised], seconds)
        if any(one in supervised for one in readable):
            self._hear_supervisor()
            polled.update(process for process in owners.values() if not process.is_ready)  # perhaps it is lost
        asked = dict.fromkeys([*(owners[one] for one in readable if one in owners), *polled])  # each once, in order
        return [(process, answer) for process in asked if (answer := process.receive()) is not None]

    def _hear_supervisor(self) -> None:
        assert self._supervisor is not None
        self._supervisor.take_in()
        if self._supervisor.is_gone and any(process.is_ready for process in (*self._idle, *self._assigned.values())):
            warn(
                "the process that supervises the workers died: if this run is killed now, a worker whose objective "
                "holds the interpreter's lock may live on for a while"
            )

    def process_of(self, trial: int) -> int:
        return self._assigned[trial].pid

    # -- ends --------------------------------------------------------------------------------------------------------

    def close(self, trials: Collection[int], seconds: float) -> None:
        """End evaluations. Paused learners clean up at the same time, and are killed after `seconds`."""
        closing: dict[WorkerProcess, int] = {}
        for process, trial in [(self._assigned.pop(trial), trial) for trial in trials if trial in self._assigned]:
            if process.is_idle:
                self._release(process)
            else:
                process.send(Close())
                closing[process] = trial
        deadline = time.monotonic() + seconds
        while closing and (left := deadline - time.monotonic()) > 0.0 and self._interrupts.interrupted < 2:
            for process, answer in self._answers(closing, left):
                self._take_closing_answer(process, closing.pop(process), answer)
            self._interrupts.clear_wakeups()
        for process in closing:
            process.kill()
        for trial in closing.values():
            warn_of_closing(trial, "took too long, and was killed")

    def _take_closing_answer(self, process: WorkerProcess, trial: int, answer: Answer) -> None:
        if answer.kind is not AnswerKind.ENDED:
            process.kill()
            warn_of_closing(trial, answer.reason or f"was {answer.kind}")
            return
        self._release(process)
        if answer.outcome is not None:
            warn_of_closing(trial, f"raised {answer.outcome.error}")

    def _release(self, process: WorkerProcess) -> None:
        """Keep a process for the next evaluation, or end it if there are enough."""
        if self._reuse and not process.is_worn and len(self._idle) <= self._workers:
            self._idle.insert(0, process)
        else:
            process.kill()

    def tell_to_end(self, trial: int) -> None:
        self._assigned[trial].terminate()
        if self._forks:
            self._keep_spares(1)

    def kill(self, trial: int) -> None:
        if trial in self._assigned:
            self._assigned.pop(trial).kill()
            if not self._forks:
                self._spares = 1
