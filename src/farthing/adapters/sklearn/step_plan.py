"""Which estimators can be trained step by step, and how: the plan. `step_training` carries it out.

A unit is a tree, a boosting round or an epoch. A step is some units, so that there are at most twenty steps. Units are
added to a model in one of three ways:

    warm_start   `fit` with a larger n_estimators (max_iter for histogram boosting) continues with the model there is;
                 the result is the same as of one fit
    partial_fit  one call is one epoch over the same rows; the rows are shuffled differently than by `fit`
    xgb_model, init_model   `fit` of a new estimator begins with the model of the one before: see `boosting`
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline

from farthing.adapters.sklearn.boosting import library_of

# Steps of a complete training: enough to see a curve. Fewer where each step has a price of its own (data are binned
# again, trees collected).
MANY, FEW = 20, 10
EARLY_STOPPING_ROWS = 10_000  # with more rows, scikit-learn's early_stopping="auto" is on

By: TypeAlias = Literal["warm_start", "partial_fit", "xgb_model", "init_model"]
Boosting = GradientBoostingClassifier | GradientBoostingRegressor
HistogramBoosting = HistGradientBoostingClassifier | HistGradientBoostingRegressor
Network = MLPClassifier | MLPRegressor
Linear = SGDClassifier | SGDRegressor | Perceptron


@dataclass(frozen=True)
class StepPlan:
    """How an estimator is trained in steps: which parameter counts units, how many there are, how many make a step."""

    parameter: str  # in a pipeline, with the name of the pipeline's step
    by: By
    total: int
    units: int

    @property
    def steps(self) -> int:
        return math.ceil(self.total / self.units)

    def units_at(self, step: int) -> int:
        """Units after a step."""
        return min(step * self.units, self.total)

    @property
    def stored(self) -> str:
        """The text that is part of the fingerprint in files; the name in it must never change."""
        return f"Pace(parameter={self.parameter!r}, by={self.by!r}, total={self.total!r}, units={self.units!r})"


def step_plan(
    estimator: Any, searched: Sequence[str], y: Any, rows: int, fit_params: Mapping[str, Any], max_steps: int | None,
    asked_for: bool,
) -> StepPlan | str:  # fmt: skip
    """The plan for an estimator, or the reason why it is not trained in steps. `asked_for` allows more estimators.

    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> step_plan(GradientBoostingClassifier(n_estimators=100), ["max_depth"], None, 100, {}, None, asked_for=False)
    StepPlan(parameter='n_estimators', by='warm_start', total=100, units=5)
    """
    prefix, last = last_step(estimator)
    means = _means(last)
    if means is None:
        return f"{type(last).__name__} has neither warm_start with n_estimators nor partial_fit with max_iter"
    name, by, steps = means
    if reason := _reason_against(last, name, by, prefix, searched, rows, asked_for):
        return reason
    if cannot := _unusable(fit_params, prefix, by, last):
        return f"{', '.join(map(repr, cannot))} given to fit cannot be used in steps of {name}"
    if by == "partial_fit" and is_classifier(last) and np.ndim(y) != 1:
        return "partial_fit needs one label per row"
    total = max_steps or _own_total(last, name)
    if not isinstance(total, int | np.integer) or total < 1:
        return f"{name}={total!r} is not a number of steps"
    return StepPlan(prefix + name, by, int(total), math.ceil(total / steps))


def _own_total(last: Any, name: str) -> Any:
    """The number of units that the estimator itself would train."""
    given, library = last.get_params(deep=False).get(name), library_of(last)
    return library.default_rounds if given is None and library else given


def _unusable(fit_params: Mapping[str, Any], prefix: str, by: By, last: Any) -> list[str]:
    """The arguments of `fit` that steps cannot take."""
    if by == "partial_fit":
        return list(fit_params)
    library = library_of(last)
    return [
        name
        for name in fit_params
        if not name.startswith(prefix) or (library and name.removeprefix(prefix) not in library.fit_params)
    ]


def last_step(estimator: Any) -> tuple[str, Any]:
    """What is trained: the estimator, or the last step of a pipeline; before it, the prefix of its parameters."""
    if type(estimator) is not Pipeline:  # subclasses may do anything between steps
        return "", estimator
    name, last = estimator.steps[-1]
    return f"{name}__", last


def _means(last: Any) -> tuple[str, By, int] | None:
    """The parameter that counts units, how they are added, and the number of steps."""
    params = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    if library := library_of(last):
        return library.rounds_name(params), cast(By, library.model_argument), library.steps
    if {"warm_start", "n_estimators"} <= params.keys():
        return "n_estimators", "warm_start", MANY if isinstance(last, Boosting) else FEW
    if isinstance(last, HistogramBoosting):
        return "max_iter", "warm_start", FEW
    if hasattr(last, "partial_fit") and "max_iter" in params:
        return "max_iter", "partial_fit", MANY
    return None


def _reason_against(
    last: Any, name: str, by: str, prefix: str, searched: Sequence[str], rows: int, asked_for: bool
) -> str | None:
    """Why an estimator that could be trained in steps is not."""
    params = last.get_params(deep=False)
    decisive = {name, "warm_start", "early_stopping", "n_iter_no_change", "solver"}
    decisive |= {"tol", "class_weight"} if by == "partial_fit" else set()
    for own in searched:
        if own.removeprefix(prefix) in decisive and own.startswith(prefix):
            return f"{own!r} is searched, and it decides how long or whether the estimator trains in steps"
        if own == prefix.removesuffix("__"):
            return f"{own!r}, the estimator itself, is searched"
    if library := library_of(last):
        if not asked_for:
            return f"continuing a model of {library.package} costs more than steps save; iterative=True takes steps"
        return library.reason_against(params, {own.removeprefix(prefix) for own in searched if own.startswith(prefix)})
    if _stops_early(last, params, rows):
        return (
            f"{type(last).__name__} stops early by itself; switch that off to let the search decide how long it trains"
        )
    if by == "warm_start" or isinstance(last, Network):
        return None
    if params.get("class_weight") == "balanced":
        return "partial_fit does not take class_weight='balanced'"
    if not asked_for and not isinstance(last, Linear):
        return f"one partial_fit of {type(last).__name__} may not be one epoch; iterative=True assumes that it is"
    if not asked_for and params.get("tol") is not None:
        return f"{type(last).__name__} stops at tol, usually long before max_iter; tol=None leaves that to the search"
    return None


def _stops_early(last: Any, params: Mapping[str, Any], rows: int) -> bool:
    early = params.get("early_stopping", False)
    if isinstance(last, Boosting):
        return params["n_iter_no_change"] is not None
    return early is True or (early == "auto" and rows > EARLY_STOPPING_ROWS)
