"""Costs as logarithms, and Gaussian processes on them: plain (a warped GP), on a linear trend, on a few parameters.

Symbols and shapes
    c (n,) costs;  b = log c;  X (n, f) features in the unit cube, Z (n, f) the same with sizes as logs
    groups (f,)    the parameter each column belongs to
    ratios (f,)    last over first value of the range of a column; 1 leaves the column as it is

A size on a linear scale enters as z = log1p(x (ratio - 1)) / log(ratio): the log of its value, from 0 to 1.

`CostProcess` is b = trend(Z) + g(Z[:, columns]) + noise. Its variance is that of the log cost of one new evaluation: of
the trend's coefficients, of g, and of the noise. Leaving observation i out refits the trend too, at fixed Huber weights
v: with Q = K^-1 of g, e the trend's residuals, p_i . p_j v_j its smoother, h_i = v_i |p_i|^2,

    r_i^-i = ((Q e)_i + v_i p_i . (Q P)_i e_i / (1 - h_i)) / Q_ii

The cost of a killed evaluation is only a lower bound. All models see costs through b, and before any of them is fitted,
`censored` replaces such bounds by what the other evaluations suggest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import backward, forward
from farthing.surrogates import gp
from farthing.surrogates.cost.lines import LinearCost
from farthing.surrogates.fitting import grouped

ZERO = 0.1  # of the smallest positive cost: stands for a cost of zero, which has no logarithm


class CostModel(Protocol):
    """Mean and variance of log cost, with gradients, at features (m, f).

    An acquisition that weighs cost needs the mean only, which for a process is much less work.
    """

    def predict(self, X: Array) -> tuple[Array, Array]: ...
    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]: ...

    def mean_at(self, X: Array) -> Array:
        """Mean (m,)."""
        return self.predict(X)[0]

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and d mean / dX (m, f)."""
        mean, _, slope, _ = self.predict_with_gradient(X)
        return mean, slope


def logs(cost: Array) -> Array:
    """log of costs; zero counts as a tenth of the smallest positive one.

    >>> logs(np.array([0.0, 1.0, np.e])).round(3).tolist()
    [-2.303, 0.0, 1.0]
    """
    cost = np.asarray(cost, dtype=np.float64)
    valid = np.isfinite(cost) & (cost >= 0.0)
    if not np.all(valid):
        raise InvalidArgument(f"costs: expected finite numbers of at least 0, got {cost[~valid][0]}")
    b = np.log(cost, where=cost > 0.0, out=np.full(cost.shape, np.inf))
    smallest = b.min(initial=np.inf)
    return np.where(np.isinf(b), np.log(ZERO) + smallest if np.isfinite(smallest) else 0.0, b)


@dataclass(frozen=True, eq=False)
class LogFeatures:
    """X to Z, column by column."""

    ratios: Array  # (f,), above zero

    def __call__(self, X: Array) -> Array:
        """Z (m, f).

        >>> LogFeatures(np.array([1.0, 100.0])).__call__(np.array([[0.3, 9.0 / 99.0]])).round(6).tolist()
        [[0.3, 0.5]]
        """
        curved = self.ratios != 1.0
        if not curved.any():
            return X
        Z, r = np.array(X, dtype=np.float64), self.ratios[curved]
        Z[:, curved] = np.log1p(Z[:, curved] * (r - 1.0)) / np.log(r)
        return Z

    def slope(self, X: Array) -> Array:
        """dz / dx (m, f)."""
        curved = self.ratios != 1.0
        slope, r = np.ones(X.shape), self.ratios[curved]
        slope[:, curved] = (r - 1.0) / (np.log(r) * (1.0 + X[:, curved] * (r - 1.0)))
        return slope


@dataclass(frozen=True, eq=False)
class OnLogFeatures(CostModel):
    """A model of Z as a model of X."""

    model: CostModel
    features: LogFeatures

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        return self.model.predict(self.features(X))

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, mean_slope, variance_slope = self.model.predict_with_gradient(self.features(X))
        slope = self.features.slope(X)
        return mean, variance, mean_slope * slope, variance_slope * slope

    def mean_at(self, X: Array) -> Array:
        return self.model.mean_at(self.features(X))

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, slope = self.model.mean_with_gradient(self.features(X))
        return mean, slope * self.features.slope(X)


@dataclass(frozen=True, eq=False)
class CostProcess(CostModel):
    """A process on log costs, or on the residuals of a linear trend, in some of the columns."""

    process: gp.GP
    columns: Ints
    trend: LinearCost | None = None

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of log cost at Z (m, f)."""
        mean, variance = self.process.predict(Z[:, self.columns])
        variance = variance + self.process.noise
        if self.trend is None:
            return mean, variance
        trend_mean, trend_variance = self.trend.trend(Z)
        return mean + trend_mean, variance + trend_variance

    def predict_with_gradient(self, Z: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dZ (m, f), d variance / dZ (m, f)."""
        mean, variance, *slopes = self.process.predict_with_gradient(Z[:, self.columns])
        variance = variance + self.process.noise
        mean_slope, variance_slope = (self._spread(slope, Z.shape) for slope in slopes)
        if self.trend is None:
            return mean, variance, mean_slope, variance_slope
        line, line_variance, line_slope, line_variance_slope = self.trend.trend_with_gradient(Z)
        return mean + line, variance + line_variance, mean_slope + line_slope, variance_slope + line_variance_slope

    def mean_at(self, Z: Array) -> Array:
        mean = self.process.mean_at(Z[:, self.columns])
        return mean if self.trend is None else mean + self.trend.mean_at(Z)

    def mean_with_gradient(self, Z: Array) -> tuple[Array, Array]:
        mean, slope = self.process.mean_with_gradient(Z[:, self.columns])
        slope = self._spread(slope, Z.shape)
        if self.trend is None:
            return mean, slope
        line, line_slope = self.trend.mean_with_gradient(Z)
        return mean + line, slope + line_slope

    def _spread(self, slope: Array, shape: tuple[int, ...]) -> Array:
        full = np.zeros(shape)
        full[:, self.columns] = slope
        return full

    def leave_one_out(self) -> tuple[Array, Array]:
        """Residual (n,) of each observation and variance (n,) of its prediction, given all the others."""
        return self.process.leave_one_out() if self.trend is None else left_out(self.process, self.trend)

    def log_densities(self) -> Array:
        """log density (n,) of each observation given all the others."""
        return log_normal(*self.leave_one_out())


class Trend(Protocol):
    """What leaving one out has to know of a linear smoother at fixed weights v: e_i = sum_j (delta_ij - h_ij) b_j with
    h_ij = p_i . p_j v_j. The prices of counts are one after a first-order expansion."""

    @property
    def basis(self) -> Array: ...  # (n, q) rows p_i
    @property
    def v(self) -> Array: ...  # (n,)
    @property
    def noise(self) -> float: ...
    @property
    def deleted(self) -> tuple[Array, Array]: ...  # e_i / (1 - h_i) and u_i / (1 - h_i), both (n,)


def left_out(process: gp.GP, trend: Trend) -> tuple[Array, Array]:
    """Residual (n,) and variance (n,) of each observation given the others, from a process on a trend's residuals."""
    residuals, variance = process.leave_one_out()
    deleted, u = trend.deleted
    P, v = trend.basis, trend.v
    solved = backward(process.L, forward(process.L, P))
    moved = v * np.einsum("ij,ij->i", P, solved) * deleted
    return residuals + moved / process.precision, variance + trend.noise * u


def log_normal(residuals: Array, variance: Array) -> Array:
    """log density (n,) of normal residuals."""
    return np.asarray(-0.5 * (residuals**2 / variance + np.log(2.0 * np.pi * variance)))


def process(
    Z: Array,
    b: Array,
    groups: Sequence[int] | Ints | None = None,
    *,
    selected: Sequence[int] | None = None,
    trend: LinearCost | None = None,
    warm: gp.Hyperparameters | None = None,
    refit: bool = True,
) -> CostProcess:
    """The process on log costs b; on the parameters `selected` only, or on the residuals of `trend`.

    With `refit=False` the hyperparameters `warm` are used as they are.

    >>> Z = np.linspace(0.0, 1.0, 9)[:, None]
    >>> float(process(Z, np.sin(6.0 * Z[:, 0])).predict(np.array([[0.5]]))[0][0].round(2))
    0.14
    """
    owners = grouped(groups, Z.shape[1])
    columns = np.arange(Z.shape[1]) if selected is None else np.flatnonzero(np.isin(owners, selected))
    numbers = np.unique(owners[columns], return_inverse=True)[1].astype(np.intp)
    left = b if trend is None else b - trend.trend(Z)[0]
    inputs = np.ascontiguousarray(Z[:, columns])
    if warm is not None and not refit:
        return CostProcess(gp.from_hyperparameters(inputs, left, warm, numbers), columns, trend)
    return CostProcess(gp.fit(inputs, left, numbers, warm), columns, trend)
