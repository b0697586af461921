"""Paused iterative learners that are alive, and the folders of their checkpoints."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from farthing.runner.checkpoint_folders import checkpoint_root, folder_of, remove
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.executors import Executor
from farthing.session import Session
from farthing.trial import Status

CLOSING_SECONDS = 5.0  # for all paused learners together to clean up: a checkpoint takes less, a hanging one is cut
LEAST_CLOSING_SECONDS = 0.2  # where the budget leaves no time: enough for a `finally` that only closes files


class PausedLearners:
    """Paused iterative learners that are kept alive, at most `limit` of them, and where checkpoints go.

    Beyond the limit the one with the worst value is closed.
    """

    def __init__(self, session: Session, executor: Executor, clock: Clock, limit: int) -> None:
        self._session, self._executor, self._clock, self._limit = session, executor, clock, limit
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
        """Keep a learner alive."""
        self._paused[number] = checkpoints
        if len(self._paused) > self._limit:
            self._close([max(self._paused, key=self._badness)])

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
        checkpoints, trial = self._paused.pop(number), self._session.history.trials[number]
        self._executor.kill(number)
        self._session.drop(number, trial.saved_step if checkpoints else 0)

    def close(self, numbers: list[int]) -> None:
        """Let learners that wait after a step clean up, for as long as the budget allows."""
        left = min(self._clock.seconds_left(()), CLOSING_SECONDS)
        self._executor.close(numbers, max(left, LEAST_CLOSING_SECONDS))
