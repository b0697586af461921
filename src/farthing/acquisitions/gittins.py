"""The Pandora's-box Gittins index (Xie et al. 2024, arXiv 2406.20062), where the cost of a point is uncertain.

Symbols: mu_i and s the posterior means (of k fantasies i) and standard deviation at x, E[c] the expected cost there, P
the chance that an evaluation has a value, h(z) = z Phi(z) + phi(z). For minimisation the index g(x) is the value at
which improving on it is worth just what the evaluation costs, and the point of least index is evaluated next:
    P mean_i EI_i(x; g) = price E[c],     in logarithms     log mean_i s h((g - mu_i) / s) = b(x)
    b = log price + log E[c] - log P,     log E[c] = m + v / 2 for a log cost of mean m and variance v
The left side e(x, g) grows with g, so there is one solution, and by the theorem of implicit functions
    dg / dx = (db / dx - de / dx) / (de / dg).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.improvement import Acquisition, Outcomes, mean_gain
from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h, log_sum_exp
from farthing.surrogates.cost.log_cost import CostModel

ROUNDS = 60  # of Newton's method: five are usual, and bisections take 50
NEAR = 1e-11  # of a standard deviation: the last step
HIGHEST = 300.0  # of b: a point that costs exp(300) is as bad as any, and the index stays finite


@dataclass(frozen=True)
class LessExpectedCost:
    """Minus the log of the expected cost, times a price: the acquisition that an index has to make up for."""

    log_cost: CostModel
    log_price: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        mean, variance = self.log_cost.predict(X)
        return np.asarray(-self.log_price - mean - 0.5 * variance)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        mean, variance, mean_slope, variance_slope = self.log_cost.predict_with_gradient(X)
        return -self.log_price - mean - 0.5 * variance, -mean_slope - 0.5 * variance_slope


@dataclass(frozen=True)
class MinusIndex:
    """-g, which is largest at the point of least index. `worth` is -b: the chances of a point less its cost."""

    fantasies: Outcomes
    worth: Acquisition

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        means, variance = self.fantasies.predict(X)
        return -gittins_index(means, np.sqrt(variance), -self.worth(X))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        worth, worth_slope = self.worth.with_gradient(X)
        gain = mean_gain(self.fantasies, X, lambda means, s: gittins_index(means, s, -worth)[:, None])
        slope = gain.slope + np.where(-worth > HIGHEST, 0.0, 1.0)[:, None] * worth_slope
        return -gain.targets[:, 0], slope / gain.by_target[:, None]


def gittins_index(means: Array, s: Array, log_bar: Array) -> Array:
    """g (m,) with log mean_i s h((g - means_i) / s) = log_bar, for means (m, k), s and log_bar (m,).

    Newton's method, kept between bounds of g: h(z) >= z gives the upper one, and h(z) <= phi(z) below 0 the lower one.

    >>> g = gittins_index(np.array([[0.0]]), np.array([1.0]), np.log(np.array([0.3989422804])))
    >>> bool(abs(g[0]) < 1e-9)
    True
    """
    b = np.minimum(log_bar, HIGHEST)
    high = means.mean(axis=1) + np.exp(b)
    low = means.min(axis=1) - s * np.sqrt(2.0 * np.maximum(np.log(s) - b, 0.0))
    g = low
    for _ in range(ROUNDS):
        log_each, ratio = log_h((g[:, None] - means) / s[:, None])
        log_sum = log_sum_exp(log_each)
        miss = np.log(s) + log_sum - np.log(means.shape[1]) - b
        slope = np.sum(np.exp(log_each - log_sum[:, None]) * ratio, axis=1) / s
        low, high = np.where(miss <= 0.0, g, low), np.where(miss >= 0.0, g, high)
        step = g - miss / slope
        before, g = g, np.where((low <= step) & (step <= high), step, 0.5 * (low + high))
        if np.all(np.abs(g - before) <= NEAR * np.maximum(s, np.abs(g))):
            break
    return np.asarray(g)
