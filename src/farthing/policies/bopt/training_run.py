"""A trial seen at two levels of training: at the end of its fast period, and at the end of its complete training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from farthing.history import TrackedTrial
from farthing.numerics.arrays import Array
from farthing.trial import Status

ValueIs: TypeAlias = Literal["best", "last"]  # the value at a level: the best that was reported so far, or the last


@dataclass(frozen=True)
class TrainingRun:
    """A trial at its two levels of training."""

    trial: TrackedTrial
    fast: float  # y_e
    complete: float | None  # y_c
    fast_cost: float | None
    complete_cost: float | None  # of the rest, after the fast period

    @classmethod
    def of(cls, trial: TrackedTrial, step: int | None, value_is: ValueIs) -> TrainingRun | None:
        """From the step at which its fast period ended; None while that lasts. A trial that is complete without a
        report counts for both levels."""
        if trial.status is Status.COMPLETE and not len(trial.curve) and trial.value is not None:
            return cls(trial, trial.value, trial.value, trial.cost, None)
        if step is None or step > len(trial.curve):
            return None
        ended = trial.status in (Status.COMPLETE, Status.STOPPED)
        values, costs = np.array(trial.curve.values), [cost or 0.0 for cost in trial.curve.costs]
        value_of = np.min if value_is == "best" else _last
        known = any(cost is not None for cost in trial.curve.costs)
        return cls(
            trial, float(value_of(values[:step])), float(value_of(values)) if ended else None,
            sum(costs[:step]) if known else None, sum(costs[step:]) if known and ended else None,
        )  # fmt: skip


def _last(values: Array) -> float:
    return float(values[-1])
