"""What the models are shown of a task, and what they are asked.

Symbols and shapes
    m          trainings that were begun, the first of them complete, the others cut
    c, k       trainings that were cut, configurations that were not begun
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.extrapolation.tasks import Task

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

NEW = 20  # configurations that are asked for and were not begun


@dataclass(frozen=True)
class Setting:
    """How many runs are begun, how many of these are complete, and the share of their steps that is left of others."""

    runs: int
    complete: int
    share: float

    @property
    def title(self) -> str:
        return f"{self.runs} runs, {self.complete} complete"


@dataclass(frozen=True, eq=False)
class Scene:
    """What is shown, and the final values that are asked for: of the cut trainings, then of those not begun."""

    X: Array  # (m, f)
    groups: Ints  # (f,)
    curves: Sequence[Array]  # (m,) of what each has reported
    complete: int
    T: int
    new: Array  # (k, f)
    final: Array  # (c + k,)

    @property
    def cut(self) -> Ints:
        """(c,) rows of X."""
        return np.arange(self.complete, len(self.X))

    @property
    def asked(self) -> Array:
        """(c + k, f)"""
        return np.concatenate([self.X[self.cut], self.new])

    @property
    def ends(self) -> Array:
        """(c + k,) the step that is asked for."""
        return np.full(len(self.final), float(self.T))

    @property
    def reached(self) -> Array:
        """(m,) the best values so far of the trainings that were begun."""
        return np.array([curve.min() for curve in self.curves])

    def points(self) -> tuple[Array, Array, Array]:
        """Features (n, f), steps (n,) and best values so far (n,) of at most three points of each curve."""
        running = [np.minimum.accumulate(curve) for curve in self.curves]
        steps = [points_of(len(curve)) for curve in running]
        y = np.concatenate([curve[t - 1] for curve, t in zip(running, steps, strict=True)])
        return np.repeat(self.X, [len(t) for t in steps], axis=0), np.concatenate(steps).astype(np.float64), y


def points_of(end: int) -> Ints:
    """The points, at most three, of a curve of `end` steps that a Gaussian process gets."""
    return np.unique([max(end // 4, 1), max(end // 2, 1), end])


def scene_of(task: Task, setting: Setting, rng: np.random.Generator) -> Scene:
    """Random trainings of a task."""
    T = task.Y.shape[1]
    chosen = rng.choice(len(task.X), setting.runs + NEW, replace=False)
    begun, new = chosen[: setting.runs], chosen[setting.runs :]
    cut = max(int(setting.share * T), 1)
    curves = [task.Y[row, : T if i < setting.complete else cut] for i, row in enumerate(begun)]
    final = task.running[np.concatenate([begun[setting.complete :], new]), -1]
    return Scene(task.X[begun], task.groups, curves, setting.complete, T, task.X[new], final)
