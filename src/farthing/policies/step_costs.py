"""What one more training step costs, learned from the costs that trials reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from farthing.history import History, TrackedTrial, units
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.ways import MOST_FEW
from farthing.numerics.arrays import Array
from farthing.numerics.rows import few_rows
from farthing.policies.cost_models import CostFromCounts
from farthing.space import Space
from farthing.surrogates.cost import choice, log_cost
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.linear_in_steps import MOST_VARIANCE, LinearInSteps

StepCostModel: TypeAlias = Literal["lines", "process"]


@dataclass(frozen=True, eq=False)
class StepCosts:
    """The cost of a step: the same for every step of one configuration.

    With "lines" it is learned from the mean over the steps of each run, and a run that has begun is priced at its own
    mean. With "process" it is the process times the steps (`linear_in_steps`), for every run.
    """

    model: log_cost.CostModel | None
    fits: dict[str, Any]
    space: Space
    own: bool = True  # whether runs that have begun are priced at their own mean

    @classmethod
    def of(cls, kind: StepCostModel, model: CostModelName, space: Space, history: History) -> StepCosts:
        """From every trial with costs; `model` is the model of log costs that "lines" uses."""
        way = history.way
        begun = [trial for trial in history.trials if any(cost is not None for cost in trial.curve.costs)]
        priced = [begun[i] for i in way.known(len(begun))]
        if not priced:
            return cls(None, {}, space)
        X = space.features(units(priced, len(space)))
        t, c = np.array([_steps_and_cost(trial) for trial in priced], dtype=np.float64).T
        if kind == "process":
            most = len(X) if way.refits else MOST_FEW  # it has no hyperparameters to keep
            some = few_rows(len(X), None, most)
            return cls(LinearInSteps.of(X[some], t[some], c[some], space.groups), {}, space, own=False)
        b = log_cost.logs(c / t)
        stored, own = history.fits.get("step_cost"), _counted(model, space, priced, c / t, history.cost_knowledge)
        chosen = choice.choose(
            X, b, space.groups, space.ratios, stored, own=own, refit=way.refits,
            model="auto" if model in choice.COUNTING and own is None else model, seen=len(begun),
        )  # fmt: skip
        return cls(chosen.model, {"step_cost": chosen.state} if way.refits else {}, space)

    def log_per_step(self, X: Array) -> Array:
        """log of the mean cost (c,) at X (c, f), above the log of the median if uncertain; 0 while nothing is known."""
        if self.model is None:
            return np.zeros(len(X))
        mean, variance = self.model.predict(X)
        return np.asarray(mean + 0.5 * np.minimum(variance, MOST_VARIANCE))

    def log_per_step_of(self, trial: TrackedTrial) -> float:
        """log of the mean cost of a step of a trial that has begun; 0 while it is not known."""
        if self.model is None:
            return 0.0
        if not self.own:
            return float(self.log_per_step(self.space.features(trial.unit[None, :]))[0])
        steps, cost = _steps_and_cost(trial)
        return float(np.log(cost / steps)) if cost else 0.0


def _counted(
    model: CostModelName, space: Space, priced: Sequence[TrackedTrial], per_step: Array, knowledge: CostKnowledge
) -> CostFromCounts | None:
    """The user's counts as a model of the cost of a step, where a model by name needs them."""
    if model not in choice.COUNTING or knowledge.features is None:
        return None
    return CostFromCounts.from_costs(space, [trial.config for trial in priced], per_step, knowledge, model)


def _steps_and_cost(trial: TrackedTrial) -> tuple[int, float]:
    """The number of steps of a trial whose cost is known, and what they cost together; without the first step of one
    of the first trainings, which pays for what is done once, such as imports and data."""
    known = [cost for cost in trial.curve.costs if cost is not None]
    known = known[1:] if trial.cold and len(known) > 1 else known
    return len(known), float(np.sum(known))
