"""What the two levels of training cost: of new configurations and of paused runs, from the runs so far.

Symbols: t_e(x) the cost of the fast period, t_c(x) that of complete training, r(x) = (t_c - t_e) / t_e the ratio of the
rest to the fast period. BOPT-HPO (section 6) names models of t_e(x) and t_c(x) as the way to weigh both levels by cost,
and leaves them open. Ours: t_e(x) from every run, r(x) from the complete ones, and t_c(x) = t_e(x) (1 + r(x)).

Of a paused run t_e is known, so only the ratio is predicted. A model of the cost of the rest that does not use t_e
would have to learn more from the same few complete runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from farthing.history import Way, units
from farthing.history.cost_knowledge import CostKnowledge
from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import expit
from farthing.policies.bopt.two_levels import TrainingRun
from farthing.policies.cost_models import CostFromCounts
from farthing.space import Space
from farthing.surrogates.cost import choice, log_cost
from farthing.surrogates.cost.choice import COUNTING, CostModelName
from farthing.surrogates.cost.log_cost import CostModel

CompleteCost: TypeAlias = Literal["ratio", "model"]  # the rest of a run: by the median ratio, or by the model of r(x)

FEWEST_COMPLETE = 5  # runs: fewer say little about where the ratio differs from its median


@dataclass(frozen=True, eq=False)
class LevelCosts:
    """What new and paused runs will cost, from the runs so far."""

    runs: Sequence[TrainingRun]
    max_steps: int | None
    start: float  # cost until a process is ready for a new run
    space: Space
    way: Way = Way.FULL
    complete: CompleteCost = "ratio"
    model: CostModelName = "auto"
    knowledge: CostKnowledge | None = None  # counts of what a training does, for models that need them

    # -- prices --------------------------------------------------------------------------------------------------------

    def price_of_new(self) -> float:
        """What a new configuration costs to the end of its fast period, and until it can begin."""
        return self.of_new() + self.start

    def price_of_new_and_complete(self, x: Array | None = None) -> float:
        """What a new configuration costs to the end of complete training, and until it can begin: at features x (f,),
        if costs are modelled."""
        if x is not None and self._is_modelled and self.complete_cost_model is not None:
            return float(np.exp(self.complete_cost_model.mean_at(x[None, :])[0])) + self.start
        return self.of_new() * (1.0 + (self.rest_ratio or 0.0)) + self.start

    def price_of_rest(self, run: TrainingRun) -> float:
        """What a paused run costs to the end, and until it can go on."""
        return self.of_rest(run) + self.start * run.trial.needs_start

    def of_new(self, x: Array | None = None) -> float:
        """What a new configuration costs to the end of its fast period: at features x (f,), if costs are modelled, else
        the median so far."""
        if x is not None and self._is_modelled and self.fast_cost_model is not None:
            return float(np.exp(self.fast_cost_model.mean_at(x[None, :])[0]))
        known = [run.fast_cost for run in self.runs if run.fast_cost is not None]
        return float(np.median(known)) if known else 0.0

    def of_rest(self, run: TrainingRun) -> float:
        """What a paused run costs from where it can be resumed to the end: the steps that are trained again, and the
        rest by the ratio of the levels' costs, or by its own cost per step while there is no such ratio."""
        trial, max_steps = run.trial, self.max_steps
        costs = [cost or 0.0 for cost in trial.curve.costs]
        if run.fast_cost is None or max_steps is None:
            return 0.0
        again = sum(costs[trial.kept_step :])
        ratio = self._ratios.get(trial.number, self.rest_ratio)
        if ratio is not None:
            spent = sum(costs) - run.fast_cost
            return again + max(ratio * run.fast_cost - spent, 0.0)
        return again + sum(costs) / len(costs) * max(max_steps - len(costs), 0)

    @property
    def _is_modelled(self) -> bool:
        """Whether prices are those of a configuration, and there is time for a model."""
        return self.complete == "model" and self.way is not Way.NONE

    # -- the ratio of the levels ---------------------------------------------------------------------------------------

    @cached_property
    def rest_ratio(self) -> float | None:
        """Cost of training after the fast period, divided by the cost of the fast period: the median so far."""
        ratios = [rest / fast for _, fast, rest in self._complete]
        return float(np.median(ratios)) if ratios else None

    @cached_property
    def _complete(self) -> list[tuple[TrainingRun, float, float]]:
        """Complete runs, with what their fast period and the rest cost."""
        known = ((run, run.fast_cost, run.complete_cost) for run in self.runs)
        return [(run, fast, rest) for run, fast, rest in known if rest is not None and fast]

    @cached_property
    def _ratios(self) -> dict[int, float]:
        """r(x) of each run by the number of its trial, where there is a model of it."""
        if self.rest_ratio_model is None:
            return {}
        logs = self.rest_ratio_model.mean_at(self._features(self.runs))
        return {run.trial.number: float(np.exp(log)) for run, log in zip(self.runs, logs, strict=True)}

    # -- models --------------------------------------------------------------------------------------------------------

    @cached_property
    def fast_cost_model(self) -> CostModel | None:
        """t_e(x): what the fast period costs."""
        known = [run for run in self.runs if run.fast_cost is not None]
        b = log_cost.logs(np.array([run.fast_cost for run in known], dtype=np.float64))
        if not known or self.model not in COUNTING:
            return self._fitted(known, b, self.model)
        if self.knowledge is None or self.knowledge.features is None:
            return self._fitted(known, b, "auto")
        configs = [run.trial.config for run in known]
        own = CostFromCounts.from_costs(self.space, configs, np.exp(b), self.knowledge, self.model)
        return self._fitted(known, b, self.model, own)

    @cached_property
    def rest_ratio_model(self) -> CostModel | None:
        """r(x), in logs like a cost; None where the median ratio is used. A ratio has nothing that could be counted."""
        if self.complete == "ratio" or self.way is Way.NONE or len(self._complete) < FEWEST_COMPLETE:
            return None
        runs, fast, rest = zip(*self._complete, strict=True)
        b = log_cost.logs(np.array(rest)) - np.log(fast)
        return self._fitted(runs, b, "auto" if self.model in COUNTING else self.model)

    @cached_property
    def complete_cost_model(self) -> CostModel | None:
        """t_c(x): what complete training costs, its fast period included; by the median ratio, where r(x) has no model.
        None while no run is complete."""
        ratio = self.rest_ratio_model
        if ratio is None and self.rest_ratio:
            ratio = FixedCost(float(np.log(self.rest_ratio)))
        if self.fast_cost_model is None or ratio is None:
            return None
        return Completed(self.fast_cost_model, ratio)

    def _fitted(
        self, runs: Sequence[TrainingRun], b: Array, model: CostModelName, own: CostFromCounts | None = None
    ) -> CostModel | None:
        """The model of logs b (n,) at runs; None without any."""
        if not runs:
            return None
        X, space, refit = self._features(runs), self.space, self.way.refits
        return choice.choose(X, b, space.groups, space.ratios, own=own, refit=refit, model=model).model

    def _features(self, runs: Sequence[TrainingRun]) -> Array:
        return self.space.features(units([run.trial for run in runs], len(self.space)))


@dataclass(frozen=True, eq=False)
class Completed(CostModel):
    """log t_c = log t_e + log(1 + r). With w = r / (1 + r) the slope of the last term is w d log r; by the first term
    of its series the variance is that of log t_e and w^2 that of log r."""

    fast: CostModel
    ratio: CostModel  # log r

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,)."""
        fast, fast_variance = self.fast.predict(X)
        ratio, ratio_variance = self.ratio.predict(X)
        return fast + np.logaddexp(0.0, ratio), fast_variance + expit(ratio) ** 2 * ratio_variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        fast, fast_variance, fast_slope, fast_spread = self.fast.predict_with_gradient(X)
        ratio, ratio_variance, ratio_slope, ratio_spread = self.ratio.predict_with_gradient(X)
        share = expit(ratio)[:, None]
        slope_of_square = 2.0 * share**2 * (1.0 - share) * ratio_slope  # dw = w (1 - w) d log r
        spread = fast_spread + share**2 * ratio_spread + ratio_variance[:, None] * slope_of_square
        variance = fast_variance + expit(ratio) ** 2 * ratio_variance
        return fast + np.logaddexp(0.0, ratio), variance, fast_slope + share * ratio_slope, spread

    def mean_at(self, X: Array) -> Array:
        """Mean (m,)."""
        return np.asarray(self.fast.mean_at(X) + np.logaddexp(0.0, self.ratio.mean_at(X)))

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and d mean / dX (m, f)."""
        fast, fast_slope = self.fast.mean_with_gradient(X)
        ratio, ratio_slope = self.ratio.mean_with_gradient(X)
        return fast + np.logaddexp(0.0, ratio), fast_slope + expit(ratio)[:, None] * ratio_slope


@dataclass(frozen=True, eq=False)
class FixedCost(CostModel):
    """The same everywhere, and known."""

    log_cost: float

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,)."""
        return np.full(len(X), self.log_cost), np.zeros(len(X))

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        return *self.predict(X), np.zeros_like(X), np.zeros_like(X)
