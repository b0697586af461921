"""Paused iterative learners that are alive, and the folders of their checkpoints."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from farthing.runner.checkpoints import Checkpoints
from farthing.runner.places import Place
from farthing.study import Study
from farthing.trial import Status

_temporary: weakref.WeakKeyDictionary[Study, Path] = weakref.WeakKeyDictionary()


class LiveRuns:
    """What a run of a study keeps: paused iterative learners, at most `most` of them, and where checkpoints go.

    The paused one that has to go when there are too many is that of the worst value.
    """

    def __init__(self, study: Study, place: Place, most: int) -> None:
        self._study, self._place, self._most = study, place, most
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
        kept = [(number, self._closed(number)) for number in list(self._paused)]
        for number, step in kept:
            self._study.course.drop(number, step)

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
            worst = max(self._paused, key=self._loss)
            self._study.course.drop(worst, self._closed(worst))

    def _loss(self, number: int) -> tuple[float, int]:
        value = self._study.trial(number).value or 0.0
        return -value if self._study.maximize else value, number

    def _closed(self, number: int) -> int:
        """The step from which a learner can go on once it was closed, which may have written a last checkpoint."""
        checkpoints, trial = self._paused.pop(number), self._study.trial(number)
        checkpoints.written()
        self._place.close(number)
        if checkpoints.written():
            return trial.kept_step
        return trial.saved_step if checkpoints else 0


def checkpoint_root(study: Study) -> Path:
    """Where a study's checkpoints are: beside its file; of one in memory, a folder that goes when the study goes."""
    if study.storage is not None:
        return Path(f"{study.storage}.checkpoints").absolute()
    if study not in _temporary:
        folder = tempfile.mkdtemp(prefix="farthing-")
        weakref.finalize(study, shutil.rmtree, folder, ignore_errors=True)
        _temporary[study] = Path(folder)
    return _temporary[study]
