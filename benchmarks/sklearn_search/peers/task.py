"""What is searched: four estimators with their data and spaces, and the scorer that writes down what was found when.

Spaces are written with scipy.stats, as people do. Sizes of training data are multiples of 243 and iterations multiples
of 9, so that successive halving by 3 ends with all of them. A score counts when all folds of a candidate have one on
all of their test rows: those of halving on fewer rows do not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

FOLDS = 5


@dataclass(frozen=True)
class Task:
    """One estimator on one kind of data. `iterations` is the parameter that counts them, `most` how many there are."""

    name: str
    data: Callable[[int], tuple[Any, Any]]
    rows: int  # to search with; the rest is held out
    estimator: BaseEstimator
    space: Mapping[str, Any]
    scoring: str
    candidates: int  # that successive halving begins with
    iterations: str | None = None
    most: int = 0
    is_classification: bool = True

    def split(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Rows to search with and rows held out: X, X held out, y, y held out."""
        X, y = self.data(seed)
        stratify = y if self.is_classification else None
        return train_test_split(X, y, train_size=self.rows, random_state=seed, stratify=stratify)

    def folds(self, seed: int) -> KFold | StratifiedKFold:
        kind = StratifiedKFold if self.is_classification else KFold
        return kind(FOLDS, shuffle=True, random_state=seed)


def digits(seed: int) -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def groups(seed: int) -> tuple[Any, Any]:
    return make_classification(
        4000, 20, n_informative=10, n_redundant=4, n_clusters_per_class=4, class_sep=0.8, flip_y=0.03, random_state=seed
    )


def friedman(seed: int) -> tuple[Any, Any]:
    return make_friedman1(4000, 10, noise=1.0, random_state=seed)


TASKS = {
    task.name: task
    for task in (
        Task(
            "pipeline", digits, 1215, make_pipeline(StandardScaler(), PCA(random_state=0), SVC()),
            {
                "pca__n_components": randint(4, 61),
                "pca__whiten": [False, True],
                "svc__C": loguniform(1e-2, 1e3),
                "svc__gamma": loguniform(1e-5, 1.0),
                "svc__kernel": ["rbf", "poly", "sigmoid"],
            },
            "accuracy", 26,
        ),
        Task(
            "boosting", groups, 2430, HistGradientBoostingClassifier(max_iter=90, early_stopping=False, random_state=0),
            {
                "learning_rate": loguniform(0.01, 1.0),
                "max_leaf_nodes": randint(3, 65),
                "min_samples_leaf": randint(1, 101),
                "l2_regularization": loguniform(1e-4, 1e2),
                "max_features": uniform(0.1, 0.9),
            },
            "neg_log_loss", 26, "max_iter", 90,
        ),
        Task(
            "network", digits, 1215, MLPClassifier(max_iter=54, random_state=0),
            {
                "hidden_layer_sizes": [(16,), (32,), (64,), (128,), (256,), (64, 64), (128, 128)],
                "alpha": loguniform(1e-6, 10.0),
                "learning_rate_init": loguniform(1e-4, 1e-1),
                "batch_size": [16, 32, 64, 128, 256],
            },
            "neg_log_loss", 26, "max_iter", 54,
        ),
        Task(
            "regressor", friedman, 1215, SVR(),
            {
                "C": loguniform(1e-2, 1e3),
                "gamma": loguniform(1e-3, 1e1),
                "epsilon": loguniform(1e-3, 1.0),
            },
            "r2", 80, is_classification=False,
        ),
    )
}  # fmt: skip


def mark(X: Any) -> str:
    """Which rows these are, in whatever order."""
    rows = np.sort(np.asarray(X, dtype=np.float64).sum(axis=1))
    return f"{len(rows)} {float(rows @ np.arange(1, len(rows) + 1)):.6e}"


@dataclass(frozen=True)
class Scorer:
    """Scores, and appends a line to a file: when, which parameters, which rows, the score.

    A line is shorter than what a write to a file keeps whole, so that several processes may write.
    """

    scoring: str
    path: str
    names: tuple[str, ...]

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        score = float(get_scorer(self.scoring)(estimator, X, y))
        params = estimator.get_params()
        config = {name: repr(_plain(params[name])) for name in self.names if name in params}
        epochs = getattr(estimator, "loss_curve_", ())  # n_iter_ of a network counts from the last partial_fit
        trained = len(epochs) or int(np.max(getattr(estimator, "n_iter_", 0)))
        line = json.dumps([time.monotonic(), config, trained, mark(X), score])
        with open(self.path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")
        return score


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Found:
    """A candidate that all folds have scored: seconds since the search began, mean score, parameters, iterations."""

    seconds: float
    score: float
    config: Mapping[str, str]
    trained: int


def found(path: str, began: float, marks: Sequence[str], searched: Sequence[str]) -> Iterator[Found]:
    """Candidates in the order in which their last fold was scored.

    A candidate is scored again when it has trained on: its n-th scores belong together.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    lines = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []  # noqa: SIM115
    for line in lines:
        moment, config, trained, rows, score = json.loads(line)
        if rows not in marks:
            continue
        chosen = {name: value for name, value in config.items() if name in searched}
        folds = scores.setdefault(json.dumps(chosen, sort_keys=True), {mark: [] for mark in marks})
        folds[rows].append(score)
        n = len(folds[rows])
        if all(len(fold) >= n for fold in folds.values()):
            mean = float(np.mean([fold[n - 1] for fold in folds.values()]))
            yield Found(moment - began, mean, config, trained)
