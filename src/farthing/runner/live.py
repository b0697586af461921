"""Runs of iterative learners that are alive: their generators, and the folders of their checkpoints."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from farthing.current import Run
from farthing.study import Study

logger = logging.getLogger("farthing")

Stamp = tuple[tuple[str, int, int], ...]


class LiveRuns:
    """What a run of a study keeps: paused generators, at most `most` of them, and where checkpoints go.

    The paused run that has to go when there are too many is that of the worst value.
    """

    def __init__(self, study: Study, most: int) -> None:
        self._study, self._most = study, most
        self._paused: dict[int, Iterator[Any]] = {}
        self._temporary: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in list(self._paused):
            self._drop(number)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def run_of(self, number: int, step: int) -> Run:
        """What the objective may know."""
        return Run(number, step, self.folder(number), lambda: self._study.ledger.remaining)

    def folder(self, number: int) -> Path:
        """Where a trial's checkpoints are: beside the study's file, or for as long as this run."""
        if self._study.storage is not None:
            return Path(f"{self._study.storage}.checkpoints") / f"trial-{number}"
        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="farthing-")
        return Path(self._temporary) / f"trial-{number}"

    def resume(self, number: int) -> Iterator[Any] | None:
        """The steps of a paused run that is still alive."""
        return self._paused.pop(number, None)

    def pause(self, number: int, steps: Iterator[Any]) -> None:
        """Keep a run alive."""
        self._paused[number] = steps
        if len(self._paused) > self._most:
            trials = self._study.trials
            sign = -1.0 if self._study.maximize else 1.0
            self._drop(max(self._paused, key=lambda n: (sign * (trials[n].value or 0.0), n)))

    def _drop(self, number: int) -> None:
        close(self._paused.pop(number))
        self._study.drop(number)


def close(steps: Iterator[Any]) -> None:
    """End a generator; what it raises on its way out is its own affair."""
    try:
        getattr(steps, "close", lambda: None)()
    except Exception as error:
        logger.warning("an objective raised %r while it was closed", error)


def stamp(folder: Path) -> Stamp:
    """What is in a folder: it changes when a checkpoint is written."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                state = os.stat(path)
            except FileNotFoundError:
                continue  # another thread of the objective's is writing
            found.append((path, state.st_mtime_ns, state.st_size))
    return tuple(sorted(found))
