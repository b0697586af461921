"""Paused iterative learners that are alive, and the folders of their checkpoints."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.executors import Place
from farthing.study import Study
from farthing.trial import Status

CLOSING_SECONDS = 5.0  # that paused learners may take to clean up, together
LEAST_CLOSING_SECONDS = 0.2  # where the budget leaves no time for it

_temporary: weakref.WeakKeyDictionary[Study, Path] = weakref.WeakKeyDictionary()


class LiveRuns:
    """What a run of a study keeps: paused iterative learners, at most `most` of them, and where checkpoints go.

    The paused one that has to go when there are too many is that of the worst value.
    """

    def __init__(self, study: Study, place: Place, clock: Clock, most: int) -> None:
        self._study, self._place, self._clock, self._most = study, place, clock, most
        self._paused: dict[int, Checkpoints] = {}
        self._root = checkpoint_root(study)

    def __enter__(self) -> Self:
        """Checkpoints may be on another machine, or deleted: then training begins anew, and the policy has to know."""
        for trial in self._study.course.history.trials:
            resting = trial.status in (Status.PAUSED, Status.INTERRUPTED)
            if resting and trial.saved_step > 0 and not Checkpoints(self._folder(trial.number)):
                self._study.course.drop(trial.number, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go(list(self._paused))

    def folder(self, number: int, new: bool) -> Path:
        """Where a trial's checkpoints go. What an earlier study of the same name left is not this trial's."""
        folder = self._folder(number)
        if new and folder.exists():
            shutil.rmtree(folder)
        return folder

    def _folder(self, number: int) -> Path:
        return self._root / f"trial-{number}"

    def resume(self, number: int) -> Checkpoints | None:
        """Those of a paused learner that is still alive."""
        return self._paused.pop(number, None)

    def pause(self, number: int, checkpoints: Checkpoints) -> None:
        """Keep a learner alive."""
        self._paused[number] = checkpoints
        if len(self._paused) > self._most:
            self._let_go([max(self._paused, key=self._loss)])

    def _loss(self, number: int) -> tuple[float, int]:
        value = self._study.trial(number).value or 0.0
        return -value if self._study.maximize else value, number

    def _let_go(self, numbers: list[int]) -> None:
        """Close learners. Each goes on from its last checkpoint, which it may have written while it was closed."""
        for number in numbers:
            self._paused[number].written()
        self.close(numbers)
        for number in numbers:
            checkpoints, trial = self._paused.pop(number), self._study.trial(number)
            step = trial.kept_step if checkpoints.written() else trial.saved_step if checkpoints else 0
            self._study.course.drop(number, step)

    def lose(self, number: int) -> None:
        """A paused learner's process is gone: it goes on from its last checkpoint."""
        checkpoints, trial = self._paused.pop(number), self._study.trial(number)
        self._place.kill(number)
        self._study.course.drop(number, trial.saved_step if checkpoints else 0)

    def close(self, numbers: list[int]) -> None:
        """Let learners that rest after a step clean up, for as long as the budget allows."""
        left = min(self._clock.seconds_left(()), CLOSING_SECONDS)
        self._place.close(numbers, max(left, LEAST_CLOSING_SECONDS))


def checkpoint_root(study: Study) -> Path:
    """Where a study's checkpoints are: beside its file; of one in memory, a folder that goes when the study goes."""
    if study.storage is not None:
        return Path(f"{study.storage}.checkpoints").absolute()
    if study not in _temporary:
        folder = tempfile.mkdtemp(prefix="farthing-")
        weakref.finalize(study, shutil.rmtree, folder, ignore_errors=True)
        _temporary[study] = Path(folder)
    return _temporary[study]
