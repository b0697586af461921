"""What the trials of an Optuna study reported, as training curves on one grid of steps.

Optuna's steps are any whole numbers: they may begin at 0 or 1, be reported out of order, at every hundredth or at
different ones in each trial. The grid holds every step that was reported up to the end of the longest complete trial.
A trial has at each of them what it reported, or what lies between two of its reports.
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
    complete = [trial for trial in held if trial.state is TrialState.COMPLETE]
    last = max((max(finite_reports(trial), default=-1) for trial in complete), default=-1)
    steps = np.unique([step for trial in held for step in trial.intermediate_values if step <= last]).astype(np.intp)
    if len(steps) <= MOST_STEPS:
        return steps
    return steps[np.unique(np.linspace(0, len(steps) - 1, MOST_STEPS).round().astype(np.intp))]


def curve_of(trial: FrozenTrial, grid: Ints, direction: Direction) -> Array:
    """What a trial had come to at each step of the grid that it reached, to minimise: one value at least. Between
    reports it is drawn straight; several NaN at the end are a training that stands still, a single one says nothing."""
    reports = finite_reports(trial)
    steps, values = np.array(list(reports)), np.array(list(reports.values()))
    *_, before_last, last = (-1, *sorted(trial.intermediate_values))
    end = max(before_last, steps[-1]) if last not in reports else last
    reached = max(int(np.searchsorted(grid, end, side="right")), 1)
    found = np.interp(grid[:reached], steps, -values if direction.maximize else values)
    return np.asarray(found, dtype=np.float64)


def with_reports(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those whose curves say something: of failed trials nobody knows what their values are worth."""
    return [trial for trial in trials if trial.state is not TrialState.FAIL and finite_reports(trial)]
