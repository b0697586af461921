"""What the trials of an Optuna study reported, as training curves on one grid of steps.

Optuna's steps are any whole numbers: they may begin at 0 or 1, be reported out of order, at every hundredth or at
different ones in each trial. The grid holds every step that was reported up to the end of the longest complete trial.
A trial has at each of them what it reported last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.trials import finite_reports
from farthing.direction import Direction
from farthing.numerics.arrays import Array, Ints

MOST_STEPS = 1_000  # of the grid; more are thinned out evenly


def grid_of(trials: Iterable[FrozenTrial]) -> Ints:
    """The steps (T,) of a complete training; empty while there is none."""
    held = list(trials)
    last = max((max(finite_reports(trial), default=-1) for trial in held if trial.state is TrialState.COMPLETE), default=-1)
    steps = np.unique([step for trial in held for step in trial.intermediate_values if step <= last]).astype(np.intp)
    if len(steps) <= MOST_STEPS:
        return steps
    return steps[np.unique(np.linspace(0, len(steps) - 1, MOST_STEPS).round().astype(np.intp))]


def curve_of(trial: FrozenTrial, grid: Ints, direction: Direction) -> Array:
    """What a trial had reported at each step of the grid that it reached, to minimise: one value at least."""
    reports = finite_reports(trial)
    steps, values = np.array(list(reports)), np.array(list(reports.values()))
    reached = max(int(np.searchsorted(grid, max(trial.intermediate_values), side="right")), 1)
    at = np.maximum(np.searchsorted(steps, grid[:reached], side="right") - 1, 0)
    return np.asarray(-values[at] if direction.maximize else values[at], dtype=np.float64)


def with_reports(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those whose curves say something: of failed trials nobody knows what their values are worth."""
    return [trial for trial in trials if trial.state is not TrialState.FAIL and finite_reports(trial)]
