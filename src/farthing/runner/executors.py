"""What executes evaluations: this process, one at a time, or a pool of worker processes, side by side (pool.py).

An executor begins, steps and closes evaluations by the number of their trial, and says what came of them. In this
process nothing can be stopped from outside; a worker can be told to end, and killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from farthing.run_context import Run, inside
from farthing.runner.evaluate import as_outcome, close_steps, evaluate, next_step
from farthing.runner.interrupts import Interrupts
from farthing.runner.messages import Answer, AnswerKind
from farthing.runner.reports import OVER, Reports
from farthing.text.plain import shown, warn
from farthing.trial import Config, Decision, Objective, Outcome


class TrialAnswer(NamedTuple):
    """An answer, and whose."""

    trial: int
    answer: Answer


@dataclass(frozen=True)
class Assignment:
    """One evaluation that an executor is given."""

    trial: int
    step: int  # to start from
    folder: Path  # of its checkpoints
    left: Callable[[], float]  # of the budget, now
    speed: float  # at which that goes by, per second
    reported: Callable[[Answer], Decision]  # what to do after a step that was reported in this process

    def run(self, reports: Reports) -> Run:
        """As its objective sees it."""
        return Run(self.trial, self.step, self.folder, self.left, reports)


class Executor(Protocol):
    """Runs evaluations."""

    can_kill: bool

    @property
    def is_full(self) -> bool:
        """Whether one more evaluation can only begin in the place of a paused one."""
        ...

    @property
    def start_seconds(self) -> float:
        """That a new worker takes to be ready, as far as known."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def has_room(self, patience: float) -> bool:
        """Whether one more evaluation can begin, now or within `patience` seconds."""
        ...

    def reserve(self, trial: int) -> None:
        """Take a place for an evaluation that is about to begin."""

    def begin(self, assignment: Assignment, config: Config) -> None:
        """Call the objective, in the place that was reserved."""

    def step(self, trial: int) -> None:
        """Pull the next step of an iterative learner."""

    def close(self, trials: Collection[int], seconds: float) -> None:
        """End evaluations that wait after a step, or have ended; those that wait have `seconds` to clean up."""

    def wait(self, seconds: float | None) -> list[TrialAnswer]:
        """What happened next, nothing if that takes longer or a signal came. A paused evaluation may die."""
        ...

    def process_of(self, trial: int) -> int:
        """The id of the process in which it runs; on another machine a number that no process here has, and by which
        the meters of the run know it."""
        ...

    def tell_to_end(self, trial: int) -> None:
        """Ask an evaluation to come to its end."""

    def kill(self, trial: int) -> None:
        """End its process with all it started; there will be no answer."""


class InProcess:
    """This process: what was begun or stepped is done when one waits for it."""

    can_kill = False
    is_full = False
    start_seconds = 0.0

    def __init__(self, objective: Objective, interrupts: Interrupts) -> None:
        self._objective, self._interrupts = objective, interrupts
        self._steps: dict[int, tuple[Run, Iterator[Any]]] = {}
        self._next: tuple[int, Callable[[], Answer | None]] | None = None
        self._began = 0.0  # the step that is being done
        self._error: BaseException | None = None  # of the run itself, while a report was taken in

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close(list(self._steps), 0.0)

    def has_room(self, patience: float) -> bool:
        return True

    def reserve(self, trial: int) -> None:
        """There is always room."""

    def begin(self, assignment: Assignment, config: Config) -> None:
        self._next = assignment.trial, lambda: self._begun(assignment, config)

    def step(self, trial: int) -> None:
        """One that reports goes on by itself."""
        if trial in self._steps:
            self._next = trial, lambda: self._stepped(*self._steps[trial])

    def wait(self, seconds: float | None) -> list[TrialAnswer]:
        if self._next is None:
            wait(self._interrupts.wakeups, seconds or 0.0)
            return []
        (trial, action), self._next = self._next, None
        self._began = time.perf_counter()
        with self._interrupts.raised_at_once():
            answer = action()
        if answer is None:
            return []
        return [TrialAnswer(trial, Answer(answer.kind, answer.outcome, time.perf_counter() - self._began))]

    def _begun(self, assignment: Assignment, config: Config) -> Answer | None:
        """None if the trial was stopped after a report: it has ended already."""
        reports = Reports(assignment.step, lambda given: self._report(assignment, given))
        run = assignment.run(reports)
        with inside(run):
            called = evaluate(self._objective, config, reports)
        if self._error is not None:  # whatever the objective made of it
            raise self._error
        if not isinstance(called, Outcome | None):
            self._steps[run.trial] = run, called
            return self._stepped(run, called)
        reports.refuse(OVER)
        if reports.is_stopped:
            if called is not None:
                warn_of_closing(run.trial, f"raised {called.error_line}")
            return None
        return Answer(AnswerKind.ENDED) if called is None else Answer(AnswerKind.RETURNED, called)

    def _report(self, assignment: Assignment, given: Mapping[str, Any]) -> Decision:
        """Let the run take in a step, as if the objective had yielded it."""
        answer = Answer(AnswerKind.YIELDED, as_outcome(given), time.perf_counter() - self._began)
        try:
            with self._interrupts.noted(), inside(None):
                decision = assignment.reported(answer)
        except BaseException as error:
            self._error = error
            raise
        self._began = time.perf_counter()
        return decision

    def _stepped(self, run: Run, steps: Iterator[Any]) -> Answer:
        with inside(run):
            outcome = next_step(steps)
        return Answer(AnswerKind.ENDED) if outcome is None else Answer(AnswerKind.YIELDED, outcome)

    def close(self, trials: Collection[int], seconds: float) -> None:
        """For as long as they take."""
        for trial in trials:
            if trial not in self._steps:
                continue
            run, steps = self._steps.pop(trial)
            with inside(run):
                error = close_steps(steps)
            if error is not None:
                warn_of_closing(trial, f"raised {shown(error)}")

    def process_of(self, trial: int) -> int:
        return os.getpid()

    def tell_to_end(self, trial: int) -> None:
        """Nobody can."""

    def kill(self, trial: int) -> None:
        """What was interrupted is closed."""
        self._next = None
        self.close([trial], 0.0)


def warn_of_closing(trial: int, what: str) -> None:
    """A result stands, whatever happens while its learner is closed."""
    text = f"trial {trial}: while it was closed the objective {what}"
    warn(text)
