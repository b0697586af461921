"""Confidence bounds: how low a value may be, to be minimised.

Symbols: mu and s the mean and standard deviation at x; w = sqrt(beta), beta = 0.2 d log(2 t) in dimension d after t
evaluations (Srinivas et al. 2010, with the factor of BOPT-HPO).
    the bound, to be maximised (BOPT-HPO, section 4.2: phi):   -mu + w s
    the same as an improvement over a target, in logarithms:   log max(target - mu + w s, 0), made smooth
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.improvement import Surrogate
from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import expit


def width(d: int, t: int) -> float:
    """w = sqrt(0.2 d log(2 t)).

    >>> round(width(2, 10), 3)
    1.095
    """
    return float(np.sqrt(0.2 * max(d, 1) * np.log(2.0 * max(t, 1))))


@dataclass(frozen=True)
class ConfidenceBound:
    """-mu + w s."""

    model: Surrogate
    width: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        mean, variance = self.model.predict(X)
        return np.asarray(self.width * np.sqrt(variance) - mean)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        mean, variance, mean_slope, variance_slope = self.model.predict_with_gradient(X)
        s = np.sqrt(variance)
        half = np.where(s > 0.0, 0.5 * self.width / np.maximum(s, 1e-300), 0.0)
        return self.width * s - mean, half[:, None] * variance_slope - mean_slope


@dataclass(frozen=True)
class LogOptimism:
    """log of how far the bound is below a target; softplus keeps it positive. A logarithm can be weighed by cost."""

    bound: ConfidenceBound
    target: float
    softness: float  # in the units of the values

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        return _log_softplus((self.target + self.bound(X)) / self.softness)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f): d log softplus(t) = expit(t) / softplus(t) dt."""
        value, slope = self.bound.with_gradient(X)
        t = (self.target + value) / self.softness
        logs = _log_softplus(t)
        return logs, (np.exp(np.log(np.maximum(expit(t), 1e-300)) - logs) / self.softness)[:, None] * slope


def _log_softplus(t: Array) -> Array:
    """log log(1 + exp(t)), which is t for very negative t."""
    return np.where(t > -30.0, np.log(np.logaddexp(0.0, np.maximum(t, -30.0))), t)
