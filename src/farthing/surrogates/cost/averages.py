"""Models of log cost made of others: an average, and a prior mean with a model of how the observations differ from it.

The average of models with weights w, means mu and variances s^2 has

    mean = sum w mu,   variance = sum w (s^2 + mu^2) - mean^2,   d variance = sum w (ds^2 + 2 (mu - mean) dmu)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.surrogates.cost.log_cost import CostModel


@dataclass(frozen=True, eq=False)
class Average(CostModel):
    """A weighted mixture of models, represented by its mean and variance."""

    models: tuple[CostModel, ...]
    weights: Array  # (k,), sum 1

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        means, variances = (np.array(part) for part in zip(*(model.predict(X) for model in self.models), strict=True))
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        parts = zip(*(model.predict_with_gradient(X) for model in self.models), strict=True)
        means, variances, mean_slopes, variance_slopes = (np.array(part) for part in parts)  # (k, m) and (k, m, f)
        w, mean = self.weights, self.weights @ means
        apart = means - mean
        slope = np.tensordot(w, mean_slopes, 1)
        spread = np.tensordot(w, variance_slopes + 2.0 * apart[:, :, None] * mean_slopes, 1)  # sum w apart = 0
        return mean, w @ (variances + apart**2), slope, spread

    def mean_at(self, X: Array) -> Array:
        return np.asarray(self.weights @ np.array([model.mean_at(X) for model in self.models]))

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        parts = zip(*(model.mean_with_gradient(X) for model in self.models), strict=True)
        means, slopes = (np.array(part) for part in parts)
        return self.weights @ means, np.tensordot(self.weights, slopes, 1)


@dataclass(frozen=True, eq=False)
class Corrected(CostModel):
    """A prior mean, and a model of how the observations differ from it."""

    prior: CostModel
    correction: CostModel

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f): only the correction is uncertain."""
        mean, variance = self.correction.predict(X)
        return self.prior.mean_at(X) + mean, variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, mean_slope, variance_slope = self.correction.predict_with_gradient(X)
        prior, prior_slope = self.prior.mean_with_gradient(X)
        return prior + mean, variance, prior_slope + mean_slope, variance_slope

    def mean_at(self, X: Array) -> Array:
        return self.prior.mean_at(X) + self.correction.mean_at(X)

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        prior, prior_slope = self.prior.mean_with_gradient(X)
        mean, slope = self.correction.mean_with_gradient(X)
        return prior + mean, prior_slope + slope
