"""Runs of iterative learners that are alive: their generators, and the folders of their checkpoints."""

from __future__ import annotations

import logging
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from farthing.current import Run, inside
from farthing.runner.checkpoints import Checkpoints
from farthing.study import Study
from farthing.trial import Status

logger = logging.getLogger("farthing")

_temporary: weakref.WeakKeyDictionary[Study, Path] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Training:
    """A run that has begun: its steps, what it may know, and its checkpoints."""

    steps: Iterator[Any]
    run: Run
    checkpoints: Checkpoints

    def close(self) -> None:
        """End it; what it raises on its way out is its own affair."""
        try:
            with inside(self.run):
                getattr(self.steps, "close", lambda: None)()
        except (Exception, SystemExit) as error:
            logger.warning("trial %d: the objective raised %r while it was closed", self.run.trial, error)


class LiveRuns:
    """What a run of a study keeps: paused trainings, at most `most` of them, and where checkpoints go.

    The paused one that has to go when there are too many is that of the worst value.
    """

    def __init__(self, study: Study, most: int, left: Callable[[], float]) -> None:
        self._study, self._most, self._left = study, most, left
        self._paused: dict[int, Training] = {}
        self._root = checkpoint_root(study)

    def __enter__(self) -> Self:
        """Checkpoints may be on another machine, or deleted: then training begins anew, and the policy has to know."""
        for trial in self._study.trials:
            resting = trial.status in (Status.PAUSED, Status.INTERRUPTED)
            if resting and trial.saved_step > 0 and not Checkpoints(self._folder(trial.number)):
                self._study.course.drop(trial.number, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept = [(number, self._closed(number)) for number in list(self._paused)]
        for number, step in kept:
            self._study.course.drop(number, step)

    def run_of(self, number: int, step: int, new: bool) -> Run:
        """What the objective may know. What an earlier study of the same name left is not this trial's."""
        folder = self._folder(number)
        if new and folder.exists():
            shutil.rmtree(folder)
        return Run(number, step, folder, self._left)

    def _folder(self, number: int) -> Path:
        return self._root / f"trial-{number}"

    def resume(self, number: int) -> Training | None:
        """A paused training that is still alive."""
        return self._paused.pop(number, None)

    def pause(self, training: Training) -> None:
        """Keep a training alive."""
        self._paused[training.run.trial] = training
        if len(self._paused) > self._most:
            worst = max(self._paused, key=self._loss)
            self._study.course.drop(worst, self._closed(worst))

    def _loss(self, number: int) -> tuple[float, int]:
        value = self._study.trial(number).value or 0.0
        return -value if self._study.maximize else value, number

    def _closed(self, number: int) -> int:
        """The step from which a training can go on once it was closed, which may have written a last checkpoint."""
        training, trial = self._paused.pop(number), self._study.trial(number)
        training.checkpoints.written()
        training.close()
        if training.checkpoints.written():
            return trial.kept_step
        return trial.saved_step if training.checkpoints else 0


def checkpoint_root(study: Study) -> Path:
    """Where a study's checkpoints are: beside its file; of one in memory, a folder that goes when the study goes."""
    if study.storage is not None:
        return Path(f"{study.storage}.checkpoints").absolute()
    if study not in _temporary:
        folder = tempfile.mkdtemp(prefix="farthing-")
        weakref.finalize(study, shutil.rmtree, folder, ignore_errors=True)
        _temporary[study] = Path(folder)
    return _temporary[study]
