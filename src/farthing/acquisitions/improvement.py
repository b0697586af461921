"""Expected improvement in logarithms, averaged over what the running evaluations may turn out to be.

Symbols: mu and s the posterior mean and standard deviation at x, t the value to beat, z = (t - mu) / s, k fantasies i.
CArBO, Algorithm 3, line 12: the mean over fantasies of EI(x | X, Y_i), in logarithms
    log mean EI = log s + log sum_i h(z_i) - log k,      z_i = (t_i - mu_i) / s
    gradient    = sum_i w_i [(1 - z_i r_i) ds / s - r_i dmu_i / s],      w = softmax(log h(z)), r = h' / h.
With one fantasy it is log EI itself.

Where evaluations have noise of variance N, one more of them leaves variance s^2 N / (s^2 + N) at x. The mean that is
believed there moves by b Normal(0, 1), b^2 = s^4 / (s^2 + N), and no more of an improvement will be seen. `Believed`
has b in place of s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h, log_sum_exp


class Surrogate(Protocol):
    """What an acquisition needs of a fitted model."""

    def predict(self, X: Array) -> tuple[Array, Array]: ...
    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]: ...


class Outcomes(Protocol):
    """A surrogate under several possible outcomes of what is running: `Fantasies`, or those of a short list."""

    @property
    def targets(self) -> Array: ...
    def predict(self, X: Array) -> tuple[Array, Array]: ...
    def predict_with_pull(self, X: Array) -> tuple[Array, Array, Array, Callable[[Array], Array]]: ...


@dataclass(frozen=True)
class Believed:
    """What will be believed of points after one evaluation of each, instead of what is true there.

    Next to the best point, all that is left to learn may be less than the noise. What is true there may then be well
    below the mean, but no evaluation would show it.
    """

    outcomes: Outcomes
    noise: float  # N

    @property
    def targets(self) -> Array:
        return self.outcomes.targets

    def predict(self, X: Array) -> tuple[Array, Array]:
        means, variance = self.outcomes.predict(X)
        return means, variance * self._share(variance)

    def predict_with_pull(self, X: Array) -> tuple[Array, Array, Array, Callable[[Array], Array]]:
        means, variance, variance_slope, pull = self.outcomes.predict_with_pull(X)
        share = self._share(variance)
        return means, variance * share, (share * (2.0 - share))[:, None] * variance_slope, pull

    def _share(self, variance: Array) -> Array:
        """Of the variance, what one evaluation explains."""
        return variance / (variance + self.noise)


class Acquisition(Protocol):
    """A log utility of points X (m, f): the larger, the better to evaluate next."""

    def __call__(self, X: Array) -> Array: ...
    def with_gradient(self, X: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class MeanLogEI:
    """log of the expected improvement, averaged over what running evaluations may turn out to be."""

    fantasies: Outcomes

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        means, variance = self.fantasies.predict(X)
        s = np.sqrt(variance)
        log_each = log_h((self.fantasies.targets - means) / s[:, None])[0]  # (m, k)
        return np.asarray(np.log(s) + log_sum_exp(log_each) - np.log(means.shape[1]))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        gain = mean_gain(self.fantasies, X, lambda means, s: self.fantasies.targets)
        return gain.log, gain.slope


class MeanGain(NamedTuple):
    """log mean EI at m points over their own targets, and its derivatives."""

    targets: Array  # (k,) or (m, 1)
    log: Array  # (m,)
    slope: Array  # (m, f), where targets stay as they are
    by_target: Array  # (m,), if the targets of a point move together


def mean_gain(fantasies: Outcomes, X: Array, targets: Callable[[Array, Array], Array]) -> MeanGain:
    """log mean EI at X (m, f) over what `targets` makes of the means (m, k) and standard deviations (m,) there."""
    means, variance, variance_slope, pull = fantasies.predict_with_pull(X)
    s = np.sqrt(variance)
    beaten = targets(means, s)
    z = (beaten - means) / s[:, None]
    log_each, ratio = log_h(z)
    log_sum = log_sum_exp(log_each)
    weight = np.exp(log_each - log_sum[:, None])  # (m, k)
    along_s = (0.5 * np.sum(weight * (1.0 - z * ratio), axis=1) / variance)[:, None] * variance_slope
    by_mean = weight * ratio / s[:, None]
    log_mean = np.asarray(np.log(s) + log_sum - np.log(means.shape[1]))
    return MeanGain(beaten, log_mean, along_s - pull(by_mean), by_mean.sum(axis=1))
