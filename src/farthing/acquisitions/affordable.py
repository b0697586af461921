"""Improvement weighed by the chance that the remaining budget can pay for it.

Symbols: R the remaining budget, mu and s^2 the mean and variance of log cost at x, z = (log R - mu) / s.
The stage value of Astudillo et al. 2021, EI * P(cost <= R), is log EI + log Phi(z) in logarithms. While the budget is
large the second term is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.improvement import Acquisition, Surrogate
from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import log_ndtr
from farthing.numerics.normal import LOG_SQRT_2PI


@dataclass(frozen=True)
class IfAffordable:
    """An acquisition plus the log probability that the remaining budget pays for the point."""

    improvement: Acquisition
    log_cost: Surrogate
    log_remaining: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        mean, variance = self.log_cost.predict(X)
        return np.asarray(self.improvement(X) + log_ndtr((self.log_remaining - mean) / np.sqrt(variance)))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f): d log Phi(z) = phi(z) / Phi(z) dz."""
        value, slope = self.improvement.with_gradient(X)
        mean, variance, mean_slope, variance_slope = self.log_cost.predict_with_gradient(X)
        s = np.sqrt(variance)
        z = (self.log_remaining - mean) / s
        log_chance = log_ndtr(z)
        hazard = np.exp(-0.5 * z * z - LOG_SQRT_2PI - log_chance)
        z_slope = -mean_slope / s[:, None] - (0.5 * z / variance)[:, None] * variance_slope
        return value + log_chance, slope + hazard[:, None] * z_slope
