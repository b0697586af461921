"""Cost, modelled in logarithms: a ridge regression that is useful from the second evaluation on.

Symbols: X (n, f) features in the unit cube, c (n,) costs above zero, b = log c.
The weights are normal around 0 with the variance RIDGE times that of the residuals: with few points the prediction is
the geometric mean, with more it follows the trend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RIDGE = 1.0
SMALLEST_COST = 1e-12


@dataclass(frozen=True)
class LogCost:
    """log cost = level + (x - centre) . weights."""

    level: float
    centre: Array  # (f,)
    weights: Array  # (f,)

    def predict(self, X: Array) -> Array:
        """Mean log cost (m,) at X (m, f)."""
        return self.level + (X - self.centre) @ self.weights


def fit(X: Array, cost: Array) -> LogCost:
    """The regression on some costs; a cost of zero counts as the smallest.

    >>> X = np.array([[0.0], [0.5], [1.0]])
    >>> float(fit(X, np.exp(8 * X[:, 0])).predict(np.array([[0.5]]))[0].round(3))
    4.0
    """
    b = np.log(np.maximum(cost, SMALLEST_COST))
    centre, level = X.mean(axis=0), float(b.mean())
    A = X - centre
    normal = A.T @ A + RIDGE / len(X) * np.eye(X.shape[1])
    return LogCost(level, centre, np.linalg.solve(normal, A.T @ (b - level)))
