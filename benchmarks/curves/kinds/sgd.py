"""Linear models trained by stochastic gradient descent, on raw columns and random Fourier features.

The number of random features decides how much a step costs, and with the learning rate whether it diverges: they are
not scaled down, as a careless user would leave them. scikit-learn limits gradients, so a regression that diverges has
huge errors, seldom infinite ones.

A, C      number of training rows and of columns
X         (A, C), columns with mean 0 and deviation 1 in the training rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.linear_model import SGDClassifier, SGDRegressor

from benchmarks.curves.scores import relative_rmse

Array = NDArray[Any]
Split = tuple[Array, Array, Array, Array]  # X, y to train on, and to validate

SPACE: list[dict[str, Any]] = [
    {"name": "eta0", "type": "uniform_float", "lower": 1e-6, "upper": 1.0, "log": True},
    {"name": "alpha", "type": "uniform_float", "lower": 1e-8, "upper": 1.0, "log": True},
    {"name": "features", "type": "uniform_int", "lower": 16, "upper": 1024, "log": True},
    {"name": "bandwidth", "type": "uniform_float", "lower": 1e-3, "upper": 1.0, "log": True},
    {"name": "loss", "type": "categorical", "choices": ["margin", "smooth", "squared"]},
    {"name": "schedule", "type": "categorical", "choices": ["constant", "invscaling", "optimal"]},
    {"name": "penalty", "type": "categorical", "choices": ["l2", "l1", "elasticnet"]},
    {"name": "average", "type": "categorical", "choices": ["no", "yes"]},
]
STEPS = 60
TASKS = ("digits_shifted", "topics", "diabetes_jittered", "friedman_outliers")

# A loss of the space is one of the same form for classes and for numbers.
CLASS_LOSSES = {"margin": "hinge", "smooth": "log_loss", "squared": "squared_hinge"}
NUMBER_LOSSES = {"margin": "epsilon_insensitive", "smooth": "huber", "squared": "squared_error"}


@dataclass(frozen=True)
class Task:
    """Data, and the share of the training rows that one step sees."""

    data: Split
    classes: bool
    share: float


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """The validation error after each step: the share of wrong classes, or the error relative to the mean's."""
    given, rng = load(task), np.random.default_rng(seed)
    X, y, X_valid, y_valid = given.data
    features = random_features(config, X.shape[1], rng)
    Z, Z_valid = features(X), features(X_valid)
    model = new_model(config, given.classes, seed)
    known = {"classes": np.unique(y)} if given.classes else {}
    for _ in range(STEPS):
        rows = rng.choice(len(y), int(given.share * len(y)), replace=False)
        model.partial_fit(Z[rows], y[rows], **known)
        predicted = model.predict(Z_valid)
        yield error_rate(predicted, y_valid) if given.classes else relative_rmse(predicted, y_valid)


def new_model(config: dict[str, Any], classes: bool, seed: int) -> SGDClassifier | SGDRegressor:
    kind, losses = (SGDClassifier, CLASS_LOSSES) if classes else (SGDRegressor, NUMBER_LOSSES)
    return kind(
        loss=losses[config["loss"]], penalty=config["penalty"], alpha=config["alpha"], eta0=config["eta0"],
        learning_rate=config["schedule"], average=config["average"] == "yes", l1_ratio=0.5,
        # A number would shuffle the rows of every step in the same way.
        random_state=np.random.RandomState(seed),
    )  # fmt: skip


def random_features(config: dict[str, Any], columns: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """A map from columns to themselves and random Fourier features of a Gaussian kernel."""
    W = rng.normal(0.0, np.sqrt(2.0 * config["bandwidth"]), (columns, config["features"]))
    phase = rng.uniform(0.0, 2.0 * np.pi, config["features"])
    return lambda X: np.hstack([X, np.cos(X @ W + phase)])


def error_rate(predicted: Array, y: Array) -> float:
    return float(np.mean(predicted != y))


# -- data --------------------------------------------------------------------------------------------------------------


@cache
def load(task: str) -> Task:
    """Made once per process, always the same."""
    make = {
        "digits_shifted": lambda rng: Task(digits_shifted(rng), True, 0.4),
        "topics": lambda rng: Task(topics(rng), True, 0.4),
        "diabetes_jittered": lambda rng: Task(diabetes_jittered(rng), False, 0.5),
        "friedman_outliers": lambda rng: Task(friedman_outliers(rng), False, 0.5),
    }[task]
    return make(np.random.default_rng(TASKS.index(task)))


def digits_shifted(rng: np.random.Generator) -> Split:
    """Digits moved by up to a pixel and blurred by noise; copies of a digit are all for training or all not."""
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    inside, outside = order[:1297].repeat(4), order[1297:]
    return standardised(shifted(X[inside], rng), y[inside], shifted(X[outside], rng), y[outside])


def shifted(X: Array, rng: np.random.Generator) -> Array:
    moves = rng.integers(-1, 2, (len(X), 2))
    images = [np.roll(row.reshape(8, 8), move, (0, 1)).ravel() for row, move in zip(X, moves, strict=True)]
    return np.array(images) + rng.normal(0.0, 3.0, X.shape)


def topics(rng: np.random.Generator, rows: int = 5500, words: int = 120, count: int = 10) -> Split:
    """Word counts of short documents about two topics each; the label is the main one, and 4 % are wrong."""
    vocabulary = rng.dirichlet(np.full(words, 0.15), count)  # (count, words)
    main, other = rng.integers(count, size=(2, rows))
    weight = rng.uniform(0.5, 0.9, (rows, 1))
    X = rng.poisson(16.0 * (weight * vocabulary[main] + (1.0 - weight) * vocabulary[other]))
    y = np.where(rng.random(rows) < 0.04, rng.integers(count, size=rows), main)
    return standardised(np.sqrt(X[:5000]), y[:5000], np.sqrt(X[5000:]), y[5000:])


def diabetes_jittered(rng: np.random.Generator) -> Split:
    """Few patients, each many times with jitter: long trainings on many features learn them by heart."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    order = rng.permutation(len(X))
    inside, outside = order[:300].repeat(100), order[300:]
    return standardised(X[inside] + rng.normal(0.0, 0.15, (len(inside), 10)), y[inside], X[outside], y[outside])


def friedman_outliers(rng: np.random.Generator) -> Split:
    """Friedman's first function, few points with jitter, and one target in twenty far off."""
    X, y = make_friedman1(550, 10, random_state=int(rng.integers(1 << 30)))
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    y = y + np.where(rng.random(len(y)) < 0.05, rng.normal(0.0, 4.0, len(y)), rng.normal(0.0, 0.2, len(y)))
    inside, outside = np.arange(400).repeat(75), np.arange(400, 550)
    return standardised(X[inside] + rng.normal(0.0, 0.1, (len(inside), 10)), y[inside], X[outside], y[outside])


def standardised(X: Array, y: Array, X_valid: Array, y_valid: Array) -> Split:
    mean, deviation = X.mean(axis=0), X.std(axis=0) + 1e-9
    return (X - mean) / deviation, y, (X_valid - mean) / deviation, y_valid
