"""A Gaussian process whose mean is the user's own model of cost, which counts what the program does.

"GP whose mean is our low-variance model" (CArBO, section 6), the most accurate model of its Figure 9. The paper does
not say whether that process is on costs or on their logarithms; ours is on the log errors of the user's model:

    b = log(Phi theta) + g(z) + noise,     g ~ GP(0, k)

so that it stays positive and a relative error counts alike everywhere. Prices theta come first, then g. The variance is
that of the log cost of one new evaluation: of the prices, of g, and of the noise. Where both the counts alone and the
process on them are in an average, the counts are asked for once: they are a function of the user and may be slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from farthing.numerics.arrays import Array
from farthing.surrogates import gp
from farthing.surrogates.cost.log_cost import CostModel, LogFeatures, Trend, left_out, log_normal


class FittedTrend(Trend, Protocol):
    @property
    def residuals(self) -> Array: ...  # (n,) of the log costs it was fitted to


class UserCostModel(CostModel, Protocol):
    """A model of the whole log cost at X itself."""

    def log_densities(self) -> Array: ...


@runtime_checkable
class CountingCostModel(UserCostModel, Protocol):
    """One by the features that the user counts: it says how it was fitted, so that a process can stand on it."""

    @property
    def fitted(self) -> FittedTrend: ...


@dataclass(frozen=True, eq=False)
class OnCounts(CostModel):
    """The user's model and a process on its log errors: the second alone, or an average in which it has a `share`."""

    own: CountingCostModel
    process: gp.GP  # on Z
    features: LogFeatures
    share: float = 1.0

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        mean, variance = self.own.predict(X)
        error, error_variance = self.process.predict(self.features(X))
        return mean + self.share * error, self._with(variance, error, error_variance)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, mean_slope, variance_slope = self.own.predict_with_gradient(X)
        error, error_variance, *slopes = self.process.predict_with_gradient(self.features(X))
        error_slope, error_variance_slope = (slope * self.features.slope(X) for slope in slopes)
        apart = 2.0 * (1.0 - self.share) * error[:, None] * error_slope
        return (
            mean + self.share * error,
            self._with(variance, error, error_variance),
            mean_slope + self.share * error_slope,
            variance_slope + self.share * (error_variance_slope + apart),
        )

    def mean_at(self, X: Array) -> Array:
        return self.own.mean_at(X) + self.share * self.process.mean_at(self.features(X))

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, slope = self.own.mean_with_gradient(X)
        error, error_slope = self.process.mean_with_gradient(self.features(X))
        return mean + self.share * error, slope + self.share * error_slope * self.features.slope(X)

    def _with(self, variance: Array, error: Array, error_variance: Array) -> Array:
        """The variance of the user's model with the process, which takes the place of its misfit; an average adds how
        far the two are apart."""
        instead = error_variance + self.process.noise - self.own.fitted.noise
        added = self.share * (instead + (1.0 - self.share) * error**2)
        return np.maximum(variance + added, self.process.least_variance)  # at forbidden points there is no variance

    def leave_one_out(self) -> tuple[Array, Array]:
        """Residual (n,) of each observation and variance (n,) of its prediction, given all the others."""
        return left_out(self.process, self.own.fitted)

    def log_densities(self) -> Array:
        """log density (n,) of each observation given all the others."""
        return log_normal(*self.leave_one_out())
