"""What an evaluation costs together with something that every evaluation costs alike: log(c + s).

With m and v the mean and variance of log c, the log of the sum is m' = log(exp(m) + s); by the first term of its series
its variance is w^2 v, where w = exp(m - m') is the share of the evaluation in the sum, and dm' = w dm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.surrogates.cost.log_cost import CostModel


@dataclass(frozen=True, eq=False)
class Shifted(CostModel):
    """A model of cost, and a constant above zero that is added to every cost."""

    model: CostModel
    constant: float

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,)."""
        mean, variance = self.model.predict(X)
        sum_, share = self._sum(mean)
        return sum_, share**2 * variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, slope, variance_slope = self.model.predict_with_gradient(X)
        sum_, share = self._sum(mean)
        w = share[:, None]
        slope_of_square = 2.0 * w**2 * (1.0 - w) * slope  # dw = w (1 - w) dm
        return sum_, share**2 * variance, w * slope, w**2 * variance_slope + variance[:, None] * slope_of_square

    def mean_at(self, X: Array) -> Array:
        """Mean (m,)."""
        return self._sum(self.model.mean_at(X))[0]

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and d mean / dX (m, f)."""
        mean, slope = self.model.mean_with_gradient(X)
        sum_, share = self._sum(mean)
        return sum_, share[:, None] * slope

    def _sum(self, mean: Array) -> tuple[Array, Array]:
        """log of the sum (m,), and the share of the model in it (m,)."""
        sum_ = np.logaddexp(mean, np.log(self.constant))
        return sum_, np.exp(mean - sum_)


def shifted(model: CostModel | None, constant: float) -> CostModel | None:
    """With the constant added, if there is a model and it is above zero."""
    return model if model is None or constant <= 0.0 else Shifted(model, constant)
