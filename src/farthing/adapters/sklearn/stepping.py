"""Which estimators of scikit-learn train step by step, and at what pace.

A unit is a tree, a boosting round or an epoch; a step is some units, so that there are at most twenty of them. Two ways
to add units to a model:

    warm_start   `fit` with a larger n_estimators (max_iter for histogram boosting) goes on from what is there; the
                 model is the same as if it had been fitted at once
    partial_fit  one call is one epoch over the same rows; how rows are shuffled differs from `fit`
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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

# Steps of a complete training: few where going on has a price (data are binned again, trees gathered).
MANY, FEW = 20, 10
EARLY_STOPPING_ROWS = 10_000  # from which on histogram boosting stops by itself unless told otherwise

Boosting = GradientBoostingClassifier | GradientBoostingRegressor
HistogramBoosting = HistGradientBoostingClassifier | HistGradientBoostingRegressor
Network = MLPClassifier | MLPRegressor
Linear = SGDClassifier | SGDRegressor | Perceptron


@dataclass(frozen=True)
class Pace:
    """How an estimator is trained: by which parameter it counts units, how many there are, how many make a step."""

    parameter: str  # with the name of its step in a pipeline
    by: Literal["warm_start", "partial_fit"]
    total: int
    units: int

    @property
    def steps(self) -> int:
        return math.ceil(self.total / self.units)

    def units_at(self, step: int) -> int:
        """Units after that many steps."""
        return min(step * self.units, self.total)


def pace_of(
    estimator: Any, searched: Sequence[str], y: Any, rows: int, fit_params: Mapping[str, Any], max_steps: int | None,
    asked_for: bool,
) -> Pace | str:  # fmt: skip
    """The pace of an estimator, or why it is not trained step by step. Some are only if that is asked for.

    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> pace_of(GradientBoostingClassifier(n_estimators=100), ["max_depth"], None, 100, {}, None, asked_for=False)
    Pace(parameter='n_estimators', by='warm_start', total=100, units=5)
    """
    prefix, last = last_step(estimator)
    way = _way(last)
    if way is None:
        return f"{type(last).__name__} has neither warm_start with n_estimators nor partial_fit with max_iter"
    name, by, steps = way
    if reason := _hindrance(last, name, by, prefix, searched, rows, asked_for):
        return reason
    if fit_params and (prefix or by == "partial_fit"):
        return f"{', '.join(map(repr, fit_params))} given to fit cannot be passed on to the steps of {name}"
    if by == "partial_fit" and is_classifier(last) and np.ndim(y) != 1:
        return "partial_fit needs one label per row"
    total = max_steps or last.get_params(deep=False)[name]
    if not isinstance(total, int | np.integer) or total < 1:
        return f"{name}={total!r} is no number of steps"
    return Pace(prefix + name, by, int(total), math.ceil(total / steps))


def last_step(estimator: Any) -> tuple[str, Any]:
    """What is trained: the estimator itself, or the last step of a pipeline, with what its parameters begin with."""
    if type(estimator) is not Pipeline:  # others may do what they like between steps
        return "", estimator
    name, last = estimator.steps[-1]
    return f"{name}__", last


def _way(last: Any) -> tuple[str, Literal["warm_start", "partial_fit"], int] | None:
    """Parameter, means and number of steps."""
    params = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    if {"warm_start", "n_estimators"} <= params.keys():
        return "n_estimators", "warm_start", MANY if isinstance(last, Boosting) else FEW
    if isinstance(last, HistogramBoosting):
        return "max_iter", "warm_start", FEW
    if hasattr(last, "partial_fit") and "max_iter" in params:
        return "max_iter", "partial_fit", MANY
    return None


def _hindrance(
    last: Any, name: str, by: str, prefix: str, searched: Sequence[str], rows: int, asked_for: bool
) -> str | None:
    """Why an estimator that could is not trained step by step."""
    params = last.get_params(deep=False)
    decisive = {name, "warm_start", "early_stopping", "n_iter_no_change", "solver"}
    decisive |= {"tol", "class_weight"} if by == "partial_fit" else set()
    for own in searched:
        if own.removeprefix(prefix) in decisive and own.startswith(prefix):
            return f"{own!r} is searched, and decides how long or whether it trains in steps"
        if own == prefix.removesuffix("__"):
            return f"{own!r}, the estimator itself, is searched"
    if _stops_early(last, params, rows):
        return f"{type(last).__name__} stops early by itself; switched off, the search decides how long it trains"
    if by == "warm_start" or isinstance(last, Network):
        return None
    if params.get("class_weight") == "balanced":
        return "partial_fit does not take class_weight='balanced'"
    if not asked_for and not isinstance(last, Linear):
        return f"one partial_fit of {type(last).__name__} may not be one epoch; iterative=True takes it for one"
    if not asked_for and params.get("tol") is not None:
        return f"{type(last).__name__} stops at tol, mostly long before max_iter; tol=None leaves that to the search"
    return None


def _stops_early(last: Any, params: Mapping[str, Any], rows: int) -> bool:
    early = params.get("early_stopping", False)
    if isinstance(last, Boosting):
        return params["n_iter_no_change"] is not None
    return early is True or (early == "auto" and rows > EARLY_STOPPING_ROWS)
