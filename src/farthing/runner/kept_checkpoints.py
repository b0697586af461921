"""Which checkpoints stay: that of the best step beside the last one, and those of the best trials.

A learner usually writes the state after each step over the one before. So before the best trial of a study goes on from
its best step, the state of that step is copied (checkpoint_folders.py says where to). A trial whose next step is not
trained needs no copy, and no other trial gets one: it could only become the best by a better step.

The time of the copies is the user's. Small checkpoints are always copied; of large ones only as many as take a share of
the run's time, and then the best step may be without a copy. After a kill nothing that is half copied has the name of a
whole copy, and the next run removes it.

`keep_checkpoints` says of which trials that ended they are kept. Those of paused and interrupted trials always are:
they may go on, with a larger budget also after the end of the study.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from heapq import nsmallest
from pathlib import Path
from typing import Any, Literal

from farthing import checks
from farthing.errors import InvalidArgument
from farthing.history.history import TrackedTrial
from farthing.runner.checkpoint_folders import (
    PART,
    best_step,
    checkpoint_root,
    copied_steps,
    copies_of,
    folder_of,
    remove_folder,
    remove_half_copies,
    whole_copy,
)  # fmt: skip
from farthing.session import Session
from farthing.trial import Status

logger = logging.getLogger("farthing")

KeepCheckpoints = Literal["all", "best"] | int

ENDED = frozenset({Status.COMPLETE, Status.STOPPED, Status.FAILED, Status.KILLED})
SMALL = 1 << 20  # bytes: copied in about a millisecond, less than a learner takes to write them
TIME_SHARE = 0.05  # of the time since the run began, for copies of larger ones
FIRST_RATE = 200e6  # bytes per second, until one was measured: a slow disk


def checked_keep(given: Any) -> KeepCheckpoints:
    """What a user gives for `keep_checkpoints`.

    >>> checked_keep("best"), checked_keep(3)
    ('best', 3)
    >>> checked_keep(0)
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: keep_checkpoints: expected 'all', 'best' or a whole number of at least 1, got 0
    """
    if isinstance(given, str) and given in ("all", "best"):
        return given  # type: ignore[return-value]  # one of the two
    try:
        return checks.whole_number("keep_checkpoints", given, least=1)
    except InvalidArgument:
        checks.refuse("keep_checkpoints", "'all', 'best' or a whole number of at least 1", given)


class KeptCheckpoints:
    """The checkpoints of a run's trials."""

    def __init__(self, session: Session, keep: KeepCheckpoints) -> None:
        self._session, self._root = session, checkpoint_root(session)
        self._most = None if keep == "all" else 1 if keep == "best" else keep
        self._began, self._copying, self._rate = time.perf_counter(), 0.0, FIRST_RATE
        ended = (trial.number for trial in session.history.trials if trial.status in ENDED)
        self._ended = set[int]() if self._most is None else {n for n in ended if folder_of(self._root, n).exists()}
        remove_half_copies(self._root)
        self._remove_losers()

    def before_step(self, number: int) -> None:
        """A trial is about to go on: the state of its last step is kept if it is the best of the study."""
        trial, best = self._session.history.trials[number], self._session.history.incumbent
        if best is None or best.number != number or trial.saved_step == 0 or trial.saved_step != best_step(trial):
            return
        try:
            self._copy(number, trial.saved_step)
        except OSError as error:  # a full disk, or files that come and go: the run is worth more than the copy
            logger.warning("trial %d: the checkpoint of its best step was not copied: %s", number, error)

    def _copy(self, number: int, step: int) -> None:
        source, copies = folder_of(self._root, number), copies_of(self._root, number)
        whole = whole_copy(self._root, number, step)
        if source.is_symlink() or copies.is_symlink() or not source.is_dir() or whole.exists():
            return
        size = _bytes_in(source)
        if size == 0 or not self._is_affordable(size):
            return
        began, earlier, part = time.perf_counter(), list(copied_steps(self._root, number)), whole.with_suffix(PART)
        remove_folder(part)
        try:
            shutil.copytree(source, part, symlinks=True)
            os.rename(part, whole)
        finally:
            remove_folder(part)
        for _, path in earlier:
            remove_folder(path)
        seconds = time.perf_counter() - began
        self._copying += seconds
        self._rate = size / max(seconds, 1e-6) if size > SMALL else self._rate

    def _is_affordable(self, size: int) -> bool:
        allowed = TIME_SHARE * (time.perf_counter() - self._began)
        return size <= SMALL or self._copying + size / self._rate <= allowed

    def ended(self, number: int) -> None:
        """A trial has ended, or is paused, which is on disk: checkpoints that are not wanted any more are removed."""
        trial = self._session.history.trials[number]
        if trial.saved_step == best_step(trial):
            self._remove(copies_of(self._root, number))  # of an earlier step
        if self._most is not None and trial.status in ENDED:
            self._ended.add(number)
            self._remove_losers()

    def _remove_losers(self) -> None:
        if self._most is None or len(self._ended) <= self._most:
            return
        trials = [self._session.history.trials[number] for number in self._ended]
        winners = {trial.number for trial in nsmallest(self._most, trials, key=_badness)}
        for number in self._ended - winners:
            self._remove(folder_of(self._root, number), copies_of(self._root, number))
        self._ended = winners

    def _remove(self, *folders: Path) -> None:
        for folder in folders:
            try:
                remove_folder(folder)
            except OSError as error:
                logger.warning("checkpoints were not removed: %s", error)


def _badness(trial: TrackedTrial) -> tuple[bool, float, int]:
    """The best first, as the study ranks them."""
    without = trial.value is None or trial.status is Status.FAILED
    return without, trial.value or 0.0, trial.number


def _bytes_in(folder: Path) -> int:
    return sum(os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(folder) for name in names)
