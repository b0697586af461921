"""log of the expected improvement of any surrogate, written from its formula.

Symbols: t the value to beat, mu and s the posterior mean and standard deviation at x, z = (t - mu) / s.
    log EI(x)  = log s + log h(z)
    d log EI   = (1 - z r) ds / s - r dmu / s,     r = h'(z) / h(z)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.improvement import Surrogate
from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h


@dataclass(frozen=True)
class LogEI:
    """log of the expected improvement below `target` under `surrogate`."""

    surrogate: Surrogate
    target: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        mean, variance = self.surrogate.predict(X)
        s = np.sqrt(variance)
        return np.log(s) + log_h((self.target - mean) / s)[0]

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        mean, variance, mean_slope, variance_slope = self.surrogate.predict_with_gradient(X)
        s = np.sqrt(variance)
        z = (self.target - mean) / s
        value, ratio = log_h(z)
        along_s = (0.5 * (1.0 - z * ratio) / variance)[:, None] * variance_slope  # ds = dvariance / (2 s)
        return np.log(s) + value, along_s - (ratio / s)[:, None] * mean_slope
