"""Validation errors of scikit-learn's networks, trained live, pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]
PASSES = 50
DATA_SETS: dict[str, Callable[..., Any]] = {
    "digits": load_digits, "breast_cancer": load_breast_cancer, "wine": load_wine
}  # fmt: skip


def mlp_curves(count: int) -> Iterator[tuple[str, Array, Array]]:
    """Per data set its name, X (count, 4) in the unit cube and Y (count, 50)."""
    for number, (name, load) in enumerate(DATA_SETS.items()):
        X, y = load(return_X_y=True)
        X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
        scaler = StandardScaler().fit(X_train)
        data = scaler.transform(X_train), y_train, scaler.transform(X_valid), y_valid
        U = np.random.default_rng(number).random((count, 4))
        yield name, U, np.array([_curve(u, *data) for u in U])


def _curve(u: Array, X: Array, y: Array, X_valid: Array, y_valid: Array) -> Array:
    """Learning rate 1e-4 to 0.1, penalty 1e-6 to 0.1, batch 8 to 128 and 8 to 128 units, all on logarithmic scales."""
    network = MLPClassifier(
        hidden_layer_sizes=(round(8 * 16 ** u[3]),),
        learning_rate_init=1e-4 * 1e3 ** u[0],
        alpha=1e-6 * 1e5 ** u[1],
        batch_size=min(round(8 * 16 ** u[2]), len(X)),
        random_state=0,
    )
    classes, errors = np.unique(y), []
    for _ in range(PASSES):
        network.partial_fit(X, y, classes=classes)
        errors.append(1.0 - float(network.score(X_valid, y_valid)))
    return np.array(errors)
