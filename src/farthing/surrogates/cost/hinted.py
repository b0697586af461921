"""Log cost as hints have it, before any cost is known: it grows away from the cheap end of each parameter.

    b(x) = sum_j s_j |z_j - a_j|,      z the log features (see `log_cost`), a_j the cheap end, s_j >= 0

Only differences mean something: nothing says yet what the cheapest evaluation costs. Once costs are known, models of
cost are fitted to what they leave unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.surrogates.cost.log_cost import CostModel, LogFeatures

SPREAD = 0.5  # standard deviation of log cost around a hint: it is out by a factor of 1.6, as often as not


@dataclass(frozen=True, eq=False)
class HintedCost(CostModel):
    """The sum above. Its intercept is worth no observation."""

    slopes: Array  # s (f,)
    ends: Array  # a (f,)
    features: LogFeatures
    intercept_strength: float = 0.0

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        return self.mean_at(X), np.full(len(X), SPREAD**2)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, slope = self.mean_with_gradient(X)
        return mean, np.full(len(X), SPREAD**2), slope, np.zeros_like(slope)

    def mean_at(self, X: Array) -> Array:
        return np.asarray(np.abs(self.features(X) - self.ends) @ self.slopes)

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        side = np.sign(self.features(X) - self.ends)
        return self.mean_at(X), side * self.slopes * self.features.slope(X)
