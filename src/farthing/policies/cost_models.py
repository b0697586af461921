"""The model of cost that a policy sees: from what the user knows beforehand and from every trial with a known cost.

What a trial spent that was cut short, or is still running, is a lower bound: complete, it would cost more. Bounds are
raised to what the other trials imply before any model is fitted (`surrogates.cost.censored`). What the first trials
took is an upper bound: imports, data and compiled code are there for all that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from farthing.errors import InvalidArgument
from farthing.history import History, TrackedTrial, Way, units
from farthing.history.cost_knowledge import CostKnowledge, CostPrior, Task
from farthing.numerics.arrays import Array, Mask
from farthing.numerics.deadline import keep_to_deadline
from farthing.policies.cost_hints import hinted_cost
from farthing.space import Space
from farthing.surrogates.cost import censored, choice, flops, lines, log_cost, transfer
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.hinted import HintedCost
from farthing.surrogates.cost.log_cost import CostModel
from farthing.trial import Config, Status

# Fits a model of log cost to a history, and says what to store for the next fit; None without any known cost.
CostModelFit = Callable[[Space, History], tuple[CostModel | None, dict[str, Any]]]

KNOWN_SPREAD = 0.01  # standard deviation of the log of a known cost: no meter is more exact
LEAST_COST = 1e-300  # keeps the log of a predicted cost of zero finite, below any that is measured
ZERO_COST = 1e-12  # stands for a known cost of zero, whose log would be infinite
STEP = 1e-4  # of the unit cube, in a difference quotient: large against rounding, small against any feature


def chosen_cost_model(
    space: Space, history: History, model: CostModelName = "auto", hints: bool = True
) -> tuple[CostModel | None, dict[str, Any]]:
    """The known cost, else the average of models that predicts best, on top of a prior if there is one, or of what
    `hints` say; and its fit. A `model` by name takes the place of the average, and needs no hints."""
    knowledge, way = history.cost_knowledge, history.way
    if way is Way.NONE:
        return None, {}
    if knowledge.known is not None:
        return CostOfConfig(space, _known_law(knowledge)), {}
    prior: transfer.Transferred | HintedCost | None = None
    if knowledge.prior is not None:
        prior = _transferred(space, knowledge.prior, tuple(knowledge.task.items()))
    if not history.costed or (knowledge.prior is not None and knowledge.prior.fixed):
        return prior, {}
    if prior is None and hints and model == "auto":
        prior = hint_at_cost(space, knowledge)
    strength = 0.0 if prior is None else prior.intercept_strength
    costed = history.costed
    known = [costed[i] for i in way.known(len(costed))]
    X, b = _log_costs(space, known, prior, strength)
    own = None if knowledge.features is None else CostFromCounts.of(space, known, b, knowledge, model)
    stored = history.fits.get("cost")
    chosen = choice.choose(
        X, b, space.groups, space.ratios, stored, prior=prior, intercept_strength=strength, own=own, refit=way.refits,
        model=model, seen=len(costed),
    )  # fmt: skip
    return chosen.model, {"cost": chosen.state} if way.refits else {}


def hint_at_cost(space: Space, knowledge: CostKnowledge) -> HintedCost | None:
    """What names and `cheap` hint at, where nobody knows better: neither a formula nor counts nor earlier studies."""
    if knowledge.speaks_at_once or knowledge.features is not None:
        return None
    return hinted_cost(space, knowledge.cheap)


def named_cost_model(model: CostModelName, hints: bool = True) -> CostModelFit:
    """`chosen_cost_model` with that model."""
    return partial(chosen_cost_model, model=model, hints=hints)


def require_counts(policy: Any, knowledge: CostKnowledge) -> None:
    """An error if the policy's cost model counts what nobody has said how to count."""
    model = getattr(policy, "cost_model", "auto")
    replaced = knowledge.known is not None or (knowledge.prior is not None and knowledge.prior.fixed)
    if isinstance(model, str) and model in choice.COUNTING and knowledge.features is None and not replaced:
        raise InvalidArgument(f"{policy.name}: cost_model: {model!r} needs {choice.COUNTS_NEEDED}")


def linear_cost_model(space: Space, history: History) -> tuple[CostModel | None, dict[str, Any]]:
    """The simplest model, for policies that only show a cost and do not choose by it."""
    knowledge = history.cost_knowledge
    if knowledge.speaks_at_once or knowledge.features is not None:
        return chosen_cost_model(space, history)
    known = history.way.of(history.costed)
    if not known:
        return None, {}
    X, b = _log_costs(space, known)
    features = log_cost.LogFeatures(space.ratios)
    return log_cost.OnLogFeatures(lines.fit(features(X), b, space.groups), features), {}


def _log_costs(
    space: Space, known: Sequence[TrackedTrial], prior: CostModel | None = None, intercept_strength: float = 0.0
) -> tuple[Array, Array]:
    """Features and log costs of trials whose cost is known: a failed evaluation's cost teaches too."""
    X, b = space.features(units(known, len(space))), log_cost.logs(_costs(known))
    b = _raised(space, X, b, _bounds(known), prior, intercept_strength)
    return X, _warmed(space, X, b, known, prior, intercept_strength)


def _costs(trials: Sequence[TrackedTrial]) -> Array:
    return np.array([trial.cost for trial in trials], dtype=np.float64)


def _bounds(trials: Sequence[TrackedTrial]) -> Mask:
    """Whose cost is only what was spent so far: a running trial counts too, if it reported steps or was resumed."""
    return np.array([trial.censored or trial.status is Status.RUNNING for trial in trials], dtype=np.bool_)


def _colds(trials: Sequence[TrackedTrial]) -> Mask:
    """Whose cost is at most that: the first evaluations, as far as they came to their end."""
    return np.array([trial.cold and not trial.censored for trial in trials], dtype=np.bool_)


def _raised(
    space: Space, X: Array, b: Array, bound: Mask, prior: CostModel | None = None, intercept_strength: float = 0.0
) -> Array:
    """Log costs (n,) with their bounds raised; relative to the prior, where there is one."""
    if not bound.any():
        return b
    expected, Z = _expected(X, prior), log_cost.LogFeatures(space.ratios)(X)
    return expected + censored.imputed(Z, b - expected, bound, space.groups, intercept_strength)


def _warmed(
    space: Space, X: Array, b: Array, known: Sequence[TrackedTrial], prior: CostModel | None, intercept_strength: float
) -> Array:
    """Log costs (n,) without what the first evaluations have paid for all."""
    if not (cold := _colds(known)).any():
        return b
    expected, Z = _expected(X, prior), log_cost.LogFeatures(space.ratios)(X)
    return expected + censored.warmed(Z, b - expected, cold, space.groups, intercept_strength)


def _expected(X: Array, prior: CostModel | None) -> Array:
    return np.zeros(len(X)) if prior is None else prior.mean_at(X)


# -- functions of configurations ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CostOfConfig(CostModel):
    """A function of configurations as a model of features, with slopes along continuous columns by differences.

    The search looks at forbidden configurations too, before it leaves them out. The function is not called there; they
    get the cost of the most expensive of the others.
    """

    space: Space
    law: Callable[[Sequence[Config]], tuple[Array, Array]]  # mean (m,) and variance (m,) of log cost

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        mean, variance = self._where_allowed(X)
        return _filled(mean), _filled(variance)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        columns, m = self.space.real_columns, len(X)
        step = np.where(X > 0.5, -STEP, STEP)  # away from the nearer end of the range
        moved = np.repeat(X[None], 1 + len(columns), axis=0)  # (1 + c, m, f)
        for i, column in enumerate(columns, start=1):
            moved[i, :, column] += step[:, column]
        mean, variance = (part.reshape(len(moved), m) for part in self._where_allowed(moved.reshape(-1, X.shape[1])))
        slopes = np.zeros((2, *X.shape))
        for i, column in enumerate(columns, start=1):
            slopes[0, :, column] = (mean[i] - mean[0]) / step[:, column]
            slopes[1, :, column] = (variance[i] - variance[0]) / step[:, column]
        slopes = np.nan_to_num(slopes, nan=0.0)
        return _filled(mean[0]), _filled(variance[0]), slopes[0], slopes[1]

    def _where_allowed(self, X: Array) -> tuple[Array, Array]:
        """The law at X (m, f), NaN where the space forbids the configuration."""
        U = self.space.coordinates(X)
        allowed = self.space.allowed(U)
        law = np.full((2, len(U)), np.nan)
        law[:, allowed] = self.law(self.space.decode_many(U[allowed]))
        return law[0], law[1]


def _filled(part: Array) -> Array:
    """NaN as the largest of the others, 0 where there are no others."""
    others = part[~np.isnan(part)]
    return np.where(np.isnan(part), others.max() if len(others) else 0.0, part)


def _in_time(knowledge: CostKnowledge, config: Config) -> float:
    """The known cost, if there is time to ask for it: it is the user's function, and may be slow."""
    keep_to_deadline()
    return knowledge.cost_of(config)


def _known_law(knowledge: CostKnowledge) -> Callable[[Sequence[Config]], tuple[Array, Array]]:
    def law(configs: Sequence[Config]) -> tuple[Array, Array]:
        cost = np.array([_in_time(knowledge, config) for config in configs])
        return np.log(np.where(cost > 0.0, cost, ZERO_COST)), np.full(len(cost), KNOWN_SPREAD**2)

    return law


@dataclass(frozen=True, eq=False)
class CostFromCounts(CostOfConfig):
    """Cost as prices times what the user's `cost_features` counts."""

    fitted: flops.FlopCost

    @classmethod
    def of(
        cls, space: Space, known: Sequence[TrackedTrial], b: Array, knowledge: CostKnowledge, model: CostModelName
    ) -> CostFromCounts:
        """From trials and their log costs b (n,), of which bounds were replaced."""
        costs = np.where(_bounds(known) | _colds(known), np.exp(b), _costs(known))
        return cls.from_costs(space, [trial.config for trial in known], costs, knowledge, model)

    @classmethod
    def from_costs(
        cls, space: Space, configs: Sequence[Config], costs: Array, knowledge: CostKnowledge, model: CostModelName
    ) -> CostFromCounts:
        """From the costs (n,) of configurations."""
        names = tuple(knowledge.counts_of(configs[0]))
        priced = flops.fit_runtime if model == "flops-huber" else flops.fit
        fitted = priced(knowledge.features_of(configs, names), costs)
        return cls(space, lambda configs: fitted.predict(knowledge.features_of(configs, names)), fitted)

    def log_densities(self) -> Array:
        """log density (n,) of each cost seen, given all the others."""
        return self.fitted.log_densities()


# -- earlier studies ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _transferred(space: Space, prior: CostPrior, task: tuple[tuple[str, float | str], ...]) -> transfer.Transferred:
    """What earlier studies say about this task: the same at every ask, so computed once."""
    studies = prior.studies
    U = np.concatenate([earlier.U for earlier in studies])
    X, b = space.features(U), log_cost.logs(np.concatenate([earlier.costs for earlier in studies]))
    which = np.repeat(np.arange(len(studies)), [len(earlier.costs) for earlier in studies])
    for i, earlier in enumerate(studies):
        b[which == i] = _raised(space, X[which == i], b[which == i], earlier.bounds)
    M = task_features([*(earlier.task for earlier in studies), dict(task)])
    return transfer.fit(X, b, which, space.groups, space.ratios, M[:-1], M[-1])


def task_features(tasks: Sequence[Task]) -> Array:
    """Features (t, q) of tasks, from what all of them state: sizes as logs, a column for each text that occurs.

    >>> task_features([{"rows": 0, "gpu": "A"}, {"rows": 99, "gpu": "B", "columns": 3}]).round(2).tolist()
    [[0.0, 1.0, 0.0], [4.61, 0.0, 1.0]]
    """
    columns = []
    for name in tasks[-1]:
        stated = [task.get(name) for task in tasks]
        numbers = [value for value in stated if isinstance(value, int | float)]
        if len(numbers) == len(tasks):
            columns.append(np.sign(numbers) * np.log1p(np.abs(numbers)))
        elif all(isinstance(value, str) for value in stated):
            columns += [np.array([value == text for value in stated], dtype=np.float64) for text in sorted(set(stated))]  # type: ignore[type-var]
    return np.column_stack(columns) if columns else np.empty((len(tasks), 0))
