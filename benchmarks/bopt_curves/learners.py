"""Learners of scikit-learn that train step by step, their spaces, and the data they are trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import farthing as ft

Array = NDArray[Any]
Data = tuple[Array, Array, Array, Array]  # X, y to train on, and to validate

SPACES = {
    "sgd": ft.Space(
        alpha=ft.Real(1e-7, 1e-1, log=True), eta0=ft.Real(1e-4, 1.0, log=True),
        loss=ft.Choice(["hinge", "log_loss", "modified_huber"]), schedule=ft.Choice(["constant", "invscaling"]),
    ),
    "mlp": ft.Space(
        learning_rate=ft.Real(1e-5, 1e-1, log=True), alpha=ft.Real(1e-7, 1e-1, log=True),
        batch=ft.Integer(16, 256, log=True), units=ft.Integer(16, 256, log=True), layers=ft.Integer(1, 3),
    ),
    "boosting": ft.Space(
        learning_rate=ft.Real(1e-2, 1.0, log=True), leaves=ft.Integer(3, 63, log=True),
        least=ft.Integer(2, 64, log=True), ridge=ft.Real(1e-6, 10.0, log=True),
    ),
}  # fmt: skip
STEPS = {
    "digits": {"sgd": 60, "mlp": 40, "boosting": 30},
    "mnist": {"sgd": 30, "mlp": 20, "boosting": 15},
}
SECONDS = {
    "digits": {"sgd": 6.0, "mlp": 30.0, "boosting": 45.0},
    "mnist": {"sgd": 45.0, "mlp": 120.0, "boosting": 150.0},
}


def digits() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return halves(X / 16.0, y)


def mnist(where: str) -> Data:
    """From a file with X and y, or from OpenML."""
    if where == "fetch":
        from sklearn.datasets import fetch_openml

        X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    else:
        with np.load(where, allow_pickle=False) as held:
            X, y = held["X"], held["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:15_000]
    return halves(X[rows].astype(np.float64) / 255.0, y[rows].astype(int))


def halves(X: Array, y: Array) -> Data:
    order = np.random.default_rng(0).permutation(len(X))
    half = len(X) // 2
    return X[order[:half]], y[order[:half]], X[order[half:]], y[order[half:]]


# -- learners ----------------------------------------------------------------------------------------------------------


def sgd(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.linear_model import SGDClassifier

    X, y, *_ = data
    model = SGDClassifier(
        loss=config["loss"], alpha=config["alpha"], learning_rate=config["schedule"], eta0=config["eta0"],
        random_state=0,
    )  # fmt: skip
    return lambda: model.partial_fit(X, y, classes=np.unique(y))


def mlp(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.neural_network import MLPClassifier

    X, y, *_ = data
    model = MLPClassifier(
        (config["units"],) * config["layers"], learning_rate_init=config["learning_rate"], alpha=config["alpha"],
        batch_size=config["batch"], random_state=0,
    )  # fmt: skip
    return lambda: model.partial_fit(X, y, classes=np.unique(y))


def boosting(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y, *_ = data
    model = HistGradientBoostingClassifier(
        learning_rate=config["learning_rate"], max_leaf_nodes=config["leaves"], min_samples_leaf=config["least"],
        l2_regularization=config["ridge"], max_iter=1, warm_start=True, early_stopping=False, random_state=0,
    )  # fmt: skip

    def step() -> Any:
        model.fit(X, y)
        model.max_iter += 1
        return model

    return step


LEARNERS: dict[str, Callable[[dict[str, Any], Data], Callable[[], Any]]] = {
    "sgd": sgd,
    "mlp": mlp,
    "boosting": boosting,
}
