"""Seconds that real learners take to train, as a child process: one JSON line in, one out.

    python -m benchmarks.cost_models.peers.timing < tasks.jsonl

A task names a learner, the data it is trained on and a configuration; the answer has its wall-clock seconds
(`time.perf_counter`, what a study meters) and its processor seconds (`time.process_time`, which other programs do not
slow down). A fit shorter than SHORT_SECONDS is done REPEATS times, and both are medians. One thread. Data sets are
those that scikit-learn carries, and generated ones, so nothing is fetched.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier, XGBRegressor

Array = NDArray[np.float64]
Config = dict[str, Any]

SHORT_SECONDS, REPEATS = 0.1, 3
VERSIONS = {name: version(name) for name in ("scikit-learn", "xgboost-cpu", "numpy", "scipy")}
BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}


@cache
def load(name: str) -> tuple[Array, Array, bool]:
    """X, y and whether y are classes.

    `digits` is a bundled set, `digits:600` its first 600 rows after a shuffle, `classes:5000x20x3` a generated set of
    5,000 rows, 20 columns and 3 classes, `regression:5000x20` one with a number to predict.
    """
    kind, _, size = name.partition(":")
    if kind in BUNDLED:
        X, y = BUNDLED[kind](return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(X))[: int(size) if size else len(X)]
        return X[rows], y[rows], kind != "diabetes"
    shape = tuple(map(int, size.split("x")))
    useful = max(3, shape[1] // 2)
    if kind == "classes":
        X, y = datasets.make_classification(
            shape[0], shape[1], n_informative=useful, n_redundant=0, n_classes=shape[2], flip_y=0.05, random_state=0
        )
        return X, y, True
    X, y = datasets.make_regression(shape[0], shape[1], n_informative=useful, noise=10.0, random_state=0)
    return X, y, False


def xgboost(config: Config, classes: bool) -> Any:
    return (XGBClassifier if classes else XGBRegressor)(**config, tree_method="hist", n_jobs=1, random_state=0)


def random_forest(config: Config, classes: bool) -> Any:
    return RandomForestClassifier(**config, n_jobs=1, random_state=0)


def hist_boosting(config: Config, classes: bool) -> Any:
    return HistGradientBoostingClassifier(**config, early_stopping=False, random_state=0)


def boosting(config: Config, classes: bool) -> Any:
    return GradientBoostingRegressor(**config, random_state=0)


def mlp(config: Config, classes: bool) -> Any:
    """`epochs` are all trained: the rule that stops for want of progress waits for longer than that."""
    own = {key: value for key, value in config.items() if key not in ("units_1", "units_2", "epochs")}
    layers, epochs = (config["units_1"], config["units_2"]), config["epochs"]
    return MLPClassifier(layers, **own, max_iter=epochs, n_iter_no_change=epochs + 1, random_state=0)


LEARNERS: dict[str, Callable[[Config, bool], Any]] = {
    "xgboost": xgboost,
    "random_forest": random_forest,
    "hist_boosting": hist_boosting,
    "boosting": boosting,
    "mlp": mlp,
}


def fitted(learner: str, config: Config, data: str) -> tuple[float, float]:
    """Wall-clock and processor seconds of one fit."""
    X, y, classes = load(data)
    model = LEARNERS[learner](config, classes)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X / 16.0 if learner == "mlp" else X, y)
    return time.perf_counter() - wall, time.process_time() - cpu


def timed(learner: str, config: Config, data: str) -> dict[str, Any]:
    """The answer to one task."""
    runs = [fitted(learner, config, data)]
    if runs[0][0] < SHORT_SECONDS:
        runs += [fitted(learner, config, data) for _ in range(REPEATS - 1)]
    wall, cpu = np.median(runs, axis=0).tolist()
    return {"wall": wall, "cpu": cpu}


def main() -> None:
    warnings.simplefilter("ignore")  # an MLP that has not converged is what a short budget of epochs asks for
    for line in sys.stdin:
        task = json.loads(line)
        if task == "versions":
            answer: dict[str, Any] = VERSIONS
        else:
            answer = timed(task["learner"], task["config"], task["data"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
