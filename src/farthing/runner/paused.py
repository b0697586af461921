"""Paused iterative learners that are alive, and the folders of their checkpoints."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from farthing.runner.checkpoint_folders import checkpoint_root, folder_of, remove
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.executors import Executor
from farthing.runner.memory import sizes_if_above
from farthing.session import Session
from farthing.trial import Status

CLOSING_SECONDS = 5.0  # for all paused learners together to clean up: a checkpoint takes less, a hanging one is cut
LEAST_CLOSING_SECONDS = 0.2  # where the budget leaves no time: enough for a `finally` that only closes files


class PausedLearners:
    """Paused iterative learners that are kept alive, at most `limit` of them in at most `memory` bytes, and where
    checkpoints go.

    Beyond a limit the one with the worst value is closed. One that loses less by being closed than a new process takes
    to be ready is not kept at all: its process serves the next evaluation.
    """

    def __init__(self, session: Session, executor: Executor, clock: Clock, limit: int, memory: float) -> None:
        self._session, self._executor, self._clock = session, executor, clock
        self._limit, self._memory = limit, memory
        self._paused: dict[int, Checkpoints] = {}
        self._root = checkpoint_root(session)

    def __enter__(self) -> Self:
        """Checkpoints may be on another machine, or deleted: then training begins anew, and the policy has to know."""
        for trial in self._session.history.trials:
            waits = trial.status in (Status.PAUSED, Status.INTERRUPTED)
            if waits and trial.saved_step > 0 and not Checkpoints(self._folder(trial.number)):
                self._session.drop(trial.number, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(list(self._paused))

    def folder(self, number: int, new: bool) -> Path:
        """Where a trial's checkpoints go. What an earlier study of the same name left is not this trial's."""
        if new:
            remove(self._root, number)
        return self._folder(number)

    def _folder(self, number: int) -> Path:
        return folder_of(self._root, number)

    def resume(self, number: int) -> Checkpoints | None:
        """Those of a paused learner that is still alive."""
        return self._paused.pop(number, None)

    def pause(self, number: int, checkpoints: Checkpoints) -> None:
        """Keep a learner alive, if that is worth a process and there is room."""
        self._paused[number] = checkpoints
        if self._loses_little(number):
            self._close([number])
        if len(self._paused) > self._limit:
            self._close([max(self._paused, key=self._badness)])
        if self._executor.can_kill:
            self._keep_to_memory()

    @property
    def can_give_place(self) -> bool:
        """Whether one more evaluation can begin, but only in the place of a learner that is kept alive."""
        return bool(self._paused) and self._executor.is_full

    def give_place(self) -> None:
        """Close the worst learner, if that is how one more evaluation can begin."""
        if self.can_give_place:
            self._close([max(self._paused, key=self._badness)])

    def _loses_little(self, number: int) -> bool:
        """Whether it has a checkpoint of where it is, or would train again for less time than a process takes to be
        ready. Not where that costs something else than time."""
        trial, speed = self._session.history.trials[number], self._clock.speed(self._session.ledger.unit)
        if trial.saved_step == trial.kept_step:
            return self._executor.can_kill
        anew = sum(cost or 0.0 for cost in trial.curve.costs[trial.saved_step : trial.kept_step])
        return speed > 0.0 and anew < speed * self._executor.start_seconds

    def _keep_to_memory(self) -> None:
        sizes = sizes_if_above(self._memory, {number: self._executor.process_of(number) for number in self._paused})
        while sum(sizes.values()) > self._memory:
            worst = max(sizes, key=self._badness)
            del sizes[worst]
            self._close([worst])

    def _badness(self, number: int) -> tuple[float, int]:
        return self._session.history.trials[number].value or 0.0, number

    def _close(self, numbers: list[int]) -> None:
        """Each goes on from its last checkpoint, which it may have written while it was closed."""
        for number in numbers:
            self._paused[number].written()
        self.close(numbers)
        for number in numbers:
            checkpoints, trial = self._paused.pop(number), self._session.history.trials[number]
            step = trial.kept_step if checkpoints.written() else trial.saved_step if checkpoints else 0
            self._session.drop(number, step)

    def lose(self, number: int) -> None:
        """The process of a paused learner is gone: it goes on from its last checkpoint."""
        if number not in self._paused:  # it was closed for another one that was paused at the same moment
            return
        checkpoints, trial = self._paused.pop(number), self._session.history.trials[number]
        self._executor.kill(number)
        self._session.drop(number, trial.saved_step if checkpoints else 0)

    def close(self, numbers: list[int]) -> None:
        """Let learners that wait after a step clean up, for as long as the budget allows."""
        left = min(self._clock.seconds_left(), CLOSING_SECONDS)
        self._executor.close(numbers, max(left, LEAST_CLOSING_SECONDS))
