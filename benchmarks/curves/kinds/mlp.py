"""Neural networks of scikit-learn, some rows of the data per step.

A step sees a fixed number of rows, drawn with replacement, a quarter more than there are: its cost
depends on the network and the batch size only. scikit-learn raises ValueError when weights stop being finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.curves.scores import relative_rmse

Array = NDArray[Any]

SPACE: list[dict[str, Any]] = [
    {"name": "learning_rate", "type": "uniform_float", "lower": 1e-5, "upper": 1.0, "log": True},
    {"name": "units", "type": "uniform_int", "lower": 32, "upper": 256, "log": True},
    {"name": "layers", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "batch", "type": "uniform_int", "lower": 64, "upper": 1024, "log": True},
    {"name": "alpha", "type": "uniform_float", "lower": 1e-7, "upper": 1.0, "log": True},
    {"name": "momentum", "type": "uniform_float", "lower": 0.0, "upper": 0.99, "log": False},
    {"name": "activation", "type": "categorical", "choices": ["relu", "tanh", "logistic"]},
    {"name": "solver", "type": "categorical", "choices": ["adam", "sgd"]},
]
STEPS = 40
TASKS = ("checkerboard", "parity", "arm", "vibration")
ROWS = 7500  # that one step sees


@dataclass(frozen=True)
class Task:
    X: Array
    y: Array
    X_valid: Array
    y_valid: Array
    classes: bool


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """After each step the log loss (classes), or the error relative to the mean's (numbers), on validation rows."""
    data, rng = load(task), np.random.default_rng(seed)
    model = new_model(config, data.classes, seed)
    for _ in range(STEPS):
        rows = rng.choice(len(data.y), ROWS)
        yield step(model, data, rows)


def new_model(config: dict[str, Any], classes: bool, seed: int) -> MLPClassifier | MLPRegressor:
    return (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(config["units"],) * config["layers"],
        activation=config["activation"], solver=config["solver"],
        learning_rate_init=config["learning_rate"], batch_size=config["batch"], alpha=config["alpha"],
        momentum=config["momentum"], beta_1=config["momentum"],  # both are the weight of past gradients
        # A number would shuffle the rows of every step in the same way.
        random_state=np.random.RandomState(seed),
    )  # fmt: skip


def step(model: MLPClassifier | MLPRegressor, data: Task, rows: Array) -> float:
    """Train on some rows, and measure; overflow shows in the value, not in warnings."""
    with np.errstate(all="ignore"):
        if data.classes:
            model.partial_fit(data.X[rows], data.y[rows], classes=np.unique(data.y))
            return log_loss(model.predict_proba(data.X_valid), data.y_valid)
        model.partial_fit(data.X[rows], data.y[rows])
        return relative_rmse(model.predict(data.X_valid), data.y_valid)


def log_loss(P: Array, y: Array) -> float:
    """NaN stays NaN; a probability of 0 counts as 1e-15."""
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean())


# -- data --------------------------------------------------------------------------------------------------------------


@cache
def load(task: str) -> Task:
    """Made once per process, always the same."""
    make = {"checkerboard": checkerboard, "parity": parity, "arm": arm, "vibration": vibration}[task]
    return make(np.random.default_rng(TASKS.index(task)))


def checkerboard(rng: np.random.Generator) -> Task:
    """The colours of a board of 3 x 3 fields; in a third of the rows the sign of one column decides; 8 % are wrong."""
    X = rng.uniform(-1.7, 1.7, (6400, 5))
    fields = np.floor((X[:, :2] + 1.7) / 3.4 * 3.0).astype(int)
    y = np.where(np.abs(X[:, 2]) > 1.1, X[:, 2] > 0, fields.sum(axis=1) % 2)
    return split(X, flipped(y, 0.08, rng), 400, classes=True)


def parity(rng: np.random.Generator) -> Task:
    """The sign of a product of three of eight columns, seen late; in a third of the rows one decides; 5 % are wrong."""
    X = rng.normal(size=(6300, 8))
    y = np.where(np.abs(X[:, 3]) > 1.0, X[:, 3] > 0, X[:, :3].prod(axis=1) > 0).astype(int)
    return split(X, flipped(y, 0.05, rng), 300, classes=True)


def arm(rng: np.random.Generator) -> Task:
    """The height of the hand of an arm with five joints, by their angles, measured with noise."""
    angles = rng.uniform(-1.5, 1.5, (6400, 5))
    heights = np.sin(angles.cumsum(axis=1)) @ np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    return split(angles, heights + rng.normal(0.0, 0.1, 6400), 400, classes=False)


def vibration(rng: np.random.Generator) -> Task:
    """A damped oscillation by its time, frequency, damping and phase, and four columns of noise."""
    X = rng.uniform(-1.7, 1.7, (6300, 8))
    time, frequency, damping, phase = X[:, :4].T + 2.0
    y = np.exp(-0.2 * damping * time) * np.sin(frequency * time + phase)
    return split(X, y + rng.normal(0.0, 0.08, len(y)), 300, classes=False)


def flipped(y: Array, share: float, rng: np.random.Generator) -> Array:
    return np.where(rng.random(len(y)) < share, 1 - y, y)


def split(X: Array, y: Array, held_out: int, classes: bool) -> Task:
    """Rows are in random order already: the last ones validate."""
    return Task(X[:-held_out], y[:-held_out], X[-held_out:], y[-held_out:], classes)
