"""Functions of two levels, a complete one and a cheap one, all to be minimised in the unit cube.

Currin exponential and Park (Xiong et al. 2013), to be maximised, are negated; Rosenbrock and its two cheap versions are
those of Mainini et al. (2022), on [-2, 2]^10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """Both levels take points (n, p) and give values (n,)."""

    name: str
    title: str
    complete: Callable[[Array], Array]
    cheap: Callable[[Array], Array]
    p: int
    optimum: float
    initial: int  # complete runs of the first design; twice as many cheap ones
    budget: float


def currin(X: Array) -> Array:
    x1, x2 = X.T
    first = np.where(x2 > 0.0, 1.0 - np.exp(-1.0 / (2.0 * np.maximum(x2, 1e-12))), 1.0)
    return np.asarray(
        -first * (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)
    )


def currin_cheap(X: Array) -> Array:
    """The mean of four points around."""
    around = product((-0.05, 0.05), repeat=2)
    return np.mean([currin(np.column_stack([X[:, 0] + a, np.maximum(0.0, X[:, 1] + b)])) for a, b in around], axis=0)


def park(X: Array) -> Array:
    x1, x2, x3, x4 = np.maximum(X, 1e-6).T
    root = np.sqrt(1.0 + (x2 + x3**2) * x4 / x1**2)
    return np.asarray(-(x1 / 2.0 * (root - 1.0) + (x1 + 3.0 * x4) * np.exp(1.0 + np.sin(x3))))


def park_cheap(X: Array) -> Array:
    x1, x2, x3, _ = X.T
    return np.asarray((1.0 + np.sin(x1) / 10.0) * park(X) + 2.0 * x1 - x2**2 - x3**2 - 0.5)


def rosenbrock(X: Array) -> Array:
    x = 4.0 * X - 2.0
    return np.asarray((100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2).sum(axis=1))


def rosenbrock_2(X: Array) -> Array:
    x = 4.0 * X - 2.0
    valley = (50.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (-2.0 - x[:, :-1]) ** 2).sum(axis=1)
    return np.asarray(valley - 0.5 * x.sum(axis=1))


def rosenbrock_3(X: Array) -> Array:
    x = 4.0 * X - 2.0
    return np.asarray((rosenbrock(X) - 4.0 - 0.5 * x.sum(axis=1)) / (10.0 + 0.25 * x.sum(axis=1)))


FUNCTIONS = {
    function.name: function
    for function in (
        Function("currin", "Currin exponential (2d)", currin, currin_cheap, 2, -13.798722044728436, 5, 30.0),
        Function("park", "Park (4d)", park, park_cheap, 4, -25.589254158606547, 5, 30.0),
        Function("rosenbrock-f2", "Rosenbrock (10d), cheap f2", rosenbrock, rosenbrock_2, 10, 0.0, 30, 100.0),
        Function("rosenbrock-f3", "Rosenbrock (10d), cheap f3", rosenbrock, rosenbrock_3, 10, 0.0, 30, 100.0),
    )
}
