"""What one more run would teach about complete training, where the bias has no bounds (DGP, Eq. 3.2).

Symbols: f the low fidelity and delta the bias at x, both normal; v_f and v_d their variances, c their covariance. A run
of low fidelity shows f, without noise: it is that run which would be continued. What it leaves open is delta given f,
with variance v_d - c^2 / v_f. A complete run leaves nothing open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.surrogates.two_fidelity.joint import Pair
from farthing.surrogates.two_fidelity.model import TwoFidelity


@dataclass(frozen=True, eq=False)
class Outlook:
    """Mean and variance of complete training, and the variance that one more run would leave: each (k,), or (k, f)
    where it is their gradient."""

    mean: Array
    variance: Array
    left: Array


@dataclass(frozen=True, eq=False)
class AfterLow:
    """One more run of low fidelity."""

    model: TwoFidelity

    def predict(self, X: Array) -> Outlook:
        """At X (k, f)."""
        mean, variance = self.model.predict(X)
        return Outlook(mean, variance, np.clip(_left(self.model.joint.predict(X)), 0.0, variance))

    def predict_with_gradient(self, X: Array) -> tuple[Outlook, Outlook]:
        """At X (k, f), and the gradients by X."""
        mean, variance, mean_slope, variance_slope = self.model.predict_with_gradient(X)
        pair, by_x = self.model.joint.predict_with_gradient(X)
        left, known = _left(pair), (pair.covariance / pair.low_variance)[:, None]
        slope = by_x.bias_variance - 2.0 * known * by_x.covariance + known**2 * by_x.low_variance
        inside = ((left > 0.0) & (left < variance))[:, None]
        at = Outlook(mean, variance, np.clip(left, 0.0, variance))
        return at, Outlook(mean_slope, variance_slope, np.where(inside, slope, 0.0))


@dataclass(frozen=True, eq=False)
class AfterComplete:
    """One more complete run."""

    model: TwoFidelity

    def predict(self, X: Array) -> Outlook:
        """At X (k, f)."""
        mean, variance = self.model.predict(X)
        return Outlook(mean, variance, np.zeros_like(variance))

    def predict_with_gradient(self, X: Array) -> tuple[Outlook, Outlook]:
        """At X (k, f), and the gradients by X."""
        mean, variance, mean_slope, variance_slope = self.model.predict_with_gradient(X)
        return Outlook(mean, variance, np.zeros_like(variance)), Outlook(mean_slope, variance_slope, np.zeros_like(X))


def _left(pair: Pair) -> Array:
    return np.asarray(pair.bias_variance - pair.covariance**2 / pair.low_variance)
