"""What one more training step costs, learned from the costs that trials reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from farthing.history import History, TrackedTrial, units
from farthing.history.ways import few_rows
from farthing.numerics.arrays import Array
from farthing.space import Space
from farthing.surrogates import gp
from farthing.surrogates.cost import choice, log_cost

StepCostModel: TypeAlias = Literal["lines", "process"]

MOST_VARIANCE = 2.0  # of log cost that raises its mean: beyond a factor of four, uncertainty is not a reason to avoid
LEAST_SHARE = 0.1  # of the smallest cost seen, below which a process that may turn negative is cut off
ZERO_COST = 1e-12  # stands for the smallest cost where all are zero, since its log would be infinite


@dataclass(frozen=True, eq=False)
class StepCosts:
    """The cost of a step: the same for every step of one configuration, learned from the mean over its steps."""

    model: log_cost.CostModel | None
    fits: dict[str, Any]

    @classmethod
    def of(cls, kind: StepCostModel, model: str, space: Space, history: History) -> StepCosts:
        """From every trial with costs; `model` is the one of the logs, with "lines"."""
        way = history.way
        priced = way.of([trial for trial in history.trials if _per_step(trial) is not None])
        if not priced:
            return cls(None, {})
        X = space.features(units(priced, len(space)))
        slopes = np.array([_per_step(trial) for trial in priced], dtype=np.float64)
        if kind == "process":
            some = np.arange(len(X)) if way.refits else few_rows(len(X))  # it has no hyperparameters to keep
            return cls(LinearInSteps.of(X[some], slopes[some], space), {})
        b = log_cost.logs(slopes)
        chosen = choice.choose(X, b, space.groups, space.ratios, history.fits.get("step_cost"), refit=way.refits)
        return cls(chosen.model, {"step_cost": chosen.state} if way.refits else {})

    def log_per_step(self, X: Array) -> Array:
        """log of the mean cost (c,) at X (c, f), above the log of the median if uncertain; 0 while nothing is known."""
        if self.model is None:
            return np.zeros(len(X))
        mean, variance = self.model.predict(X)
        return np.asarray(mean + 0.5 * np.minimum(variance, MOST_VARIANCE))

    def log_per_step_of(self, trial: TrackedTrial) -> float:
        """log of the mean cost of a trial's own steps; 0 while it is not known."""
        measured = _per_step(trial)
        return 0.0 if self.model is None or not measured else float(np.log(measured))


def _per_step(trial: TrackedTrial) -> float | None:
    """Mean cost of the steps of a trial; None if no step has a cost."""
    known = [cost for cost in trial.curve.costs if cost is not None]
    return float(np.mean(known)) if known else None


@dataclass(frozen=True, eq=False)
class LinearInSteps(log_cost.CostModel):
    """The paper's model: a process over x times a line through 0 over t, which is a process on the cost of a step."""

    process: gp.GP
    least: float  # lower bound of the mean

    @classmethod
    def of(cls, X: Array, slopes: Array, space: Space) -> LinearInSteps:
        positive = slopes[slopes > 0.0]
        return cls(gp.fit(X, slopes, space.groups), LEAST_SHARE * float(positive.min()) if len(positive) else ZERO_COST)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of the log, by the first terms of its series."""
        mean, variance = self.process.predict(X)
        held = np.maximum(mean, self.least)
        return np.log(held), variance / held**2
