"""Gradient boosting by XGBoost, one thread, a block of trees per step.

Two tasks have rare positive rows and a log loss, which grows again when too many trees are added; two have numbers to
predict, and large learning rates diverge. The cost of a tree depends on how it is grown: exactly or
by bins, how deep, and from how many rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_friedman1

from benchmarks.curves.scores import relative_rmse

Array = NDArray[Any]

SPACE: list[dict[str, Any]] = [
    {"name": "eta", "type": "uniform_float", "lower": 3e-4, "upper": 4.0, "log": True},
    {"name": "max_depth", "type": "uniform_int", "lower": 1, "upper": 9, "log": False},
    {"name": "min_child_weight", "type": "uniform_float", "lower": 1e-2, "upper": 100.0, "log": True},
    {"name": "subsample", "type": "uniform_float", "lower": 0.2, "upper": 1.0, "log": False},
    {"name": "colsample_bytree", "type": "uniform_float", "lower": 0.2, "upper": 1.0, "log": False},
    {"name": "lambda", "type": "uniform_float", "lower": 1e-6, "upper": 1e3, "log": True},
    {"name": "gamma", "type": "uniform_float", "lower": 1e-6, "upper": 10.0, "log": True},
    {"name": "max_bin", "type": "uniform_int", "lower": 8, "upper": 256, "log": True},
    {"name": "tree_method", "type": "categorical", "choices": ["hist", "approx", "exact"]},
]
STEPS = 50
TASKS = ("rare_clusters", "rare_events", "friedman_tails", "demand")


@dataclass(frozen=True)
class Task:
    X: Array
    y: Array
    X_valid: Array
    y_valid: Array
    classes: bool
    trees: int  # per step


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """After each block of trees the log loss, or the error relative to the mean's, on validation rows."""
    data = load(task)
    rows, rows_valid = xgb.DMatrix(data.X, data.y, nthread=1), xgb.DMatrix(data.X_valid, nthread=1)
    # XGBoost remembers what its trees so far predict for these rows.
    model = xgb.Booster(parameters(config, data.classes, seed), [rows, rows_valid])
    for step in range(STEPS):
        for tree in range(step * data.trees, (step + 1) * data.trees):
            model.update(rows, tree)
        predicted = model.predict(rows_valid).astype(np.float64)
        yield (log_loss if data.classes else relative_rmse)(predicted, data.y_valid)


def parameters(config: dict[str, Any], classes: bool, seed: int) -> dict[str, Any]:
    exact = config["tree_method"] == "exact"  # has no bins, and warns of them
    return {
        **{name: value for name, value in config.items() if not (exact and name == "max_bin")},
        "objective": "binary:logistic" if classes else "reg:squarederror",
        "seed": seed,
        "nthread": 1,
        "verbosity": 0,
    }


def log_loss(P: Array, y: Array) -> float:
    """NaN stays NaN; a probability of 0 counts as 1e-15."""
    return float(-np.log(np.maximum(np.where(y == 1, P, 1.0 - P), 1e-15)).mean())


# -- data --------------------------------------------------------------------------------------------------------------


@cache
def load(task: str) -> Task:
    """Made once per process, always the same."""
    make = {
        "rare_clusters": rare_clusters,
        "rare_events": rare_events,
        "friedman_tails": friedman_tails,
        "demand": demand,
    }[task]
    return make(np.random.default_rng(TASKS.index(task)))


def rare_clusters(rng: np.random.Generator) -> Task:
    """Six clusters of each class in 25 columns; 8 % of the rows are positive, and 3 % of all labels are random."""
    X, y = make_classification(
        8800, 25, n_informative=8, n_redundant=4, n_clusters_per_class=6, weights=[0.93], flip_y=0.03, class_sep=1.2,
        random_state=int(rng.integers(1 << 30)),
    )  # fmt: skip
    return split(X, y, 800, classes=True, trees=5)


def rare_events(rng: np.random.Generator) -> Task:
    """About one row in twelve has an event. Its odds follow thresholds and pairs of 20 correlated columns."""
    X = rng.normal(size=(8600, 20)) @ (np.eye(20) + 0.15 * rng.normal(size=(20, 20)))
    risk = 2.0 * (X[:, 0] > 1.0) + X[:, 1] * X[:, 2] + 1.5 * np.sin(2.0 * X[:, 3]) - np.abs(X[:, 4])
    y = (rng.logistic(size=len(X)) < risk - 3.0).astype(int)
    return split(X, y, 600, classes=True, trees=5)


def friedman_tails(rng: np.random.Generator) -> Task:
    """Friedman's first function with noise of heavy tails, and seven columns that say nothing."""
    X, y = make_friedman1(8400, 12, random_state=int(rng.integers(1 << 30)))
    return split(X, y + 1.5 * rng.standard_t(2.5, len(y)), 400, classes=False, trees=12)


def demand(rng: np.random.Generator) -> Task:
    """Counts by hour, day, weather and price; five columns say nothing."""
    hour, day = rng.uniform(0.0, 24.0, 8300), rng.integers(0, 7, 8300)
    weather = rng.normal(size=(8300, 8))
    price = rng.lognormal(0.0, 0.4, 8300)
    rush = np.exp(-0.5 * (hour - 8.0) ** 2) + np.exp(-0.25 * (hour - 18.0) ** 2)
    level = 0.5 + 2.0 * rush * (day < 5) + 0.8 * (day >= 5) * np.sin(hour * np.pi / 24.0) + 0.4 * weather[:, 0]
    y = rng.poisson(np.exp(np.minimum(level - 0.3 * (weather[:, 1] > 1.0) - 0.8 * np.log(price), 4.5)))
    X = np.column_stack([hour, day, price, weather])
    return split(X, y.astype(float), 300, classes=False, trees=12)


def split(X: Array, y: Array, held_out: int, classes: bool, trees: int) -> Task:
    """Rows are in random order already: the last ones validate."""
    return Task(X[:-held_out], y[:-held_out], X[-held_out:], y[-held_out:], classes, trees)
