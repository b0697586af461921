"""A Gaussian process around what earlier studies predict: their offset and scale, and how far to believe each.

Symbols and shapes
    X (n, f), z (n,)   features and values of this study;  own  the process fitted to them alone, K = L L' its matrix
    m_s(x)             what study s predicts at x: the mean of its own process, standardised over its own points
    M (n, S)           m_s at X;  D (n, 1 + S) log density of each value given the others
    w, b (S,)          weight and scale of each study

    z(x) = a + sum_s w_s b_s m_s(x) + residual process

Both sides are standardised, so a study of the same shape has b = 1, which is what is expected before anything is known:
b_s ~ Normal(1, SCALE_SD^2), in units of the residual's standard deviation. With that prior on its scale, study s alone
gives z the covariance C = K + SCALE_SD^2 m m' around a + m. The offset a has no prior: it is the generalised
least-squares mean. Leaving out one value at a time shows how well each study predicts, the scale being learned from
the others, and `own` competes with them:

    w_s = a_s prod_i exp(D_is) / sum_r a_r prod_i exp(D_ir),   a the weights before anything is known

So a study without relation to this one has lost its weight after about ten values, and then the model is `own` itself.
(The slower weights of `cost.choice` leave it a tenth.)

Only the mean is taken over. Kernel and variance stay those of `own` (as in RGPE, Feurer et al. 2018, arXiv 1802.02219):
residuals of a study that predicts well have less variance, but with that the search would stay where the earlier study
was good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import backward, forward
from farthing.surrogates import fitting, gp
from farthing.surrogates.outputs import Warp

SCALE_SD = 0.5  # of b before anything is known
OWN_SHARE = 0.25  # prior weight of predicting without any earlier study
LEAST_FACTOR = 0.02  # of w_s b_s: a smaller one changes nothing and costs as much to predict


@dataclass(frozen=True, eq=False)
class Earlier:
    """m_s: what one earlier study predicts, with mean 0 and variance 1 over its own points."""

    process: gp.GP  # on some columns of the features
    columns: Ints
    centre: float
    spread: float

    @classmethod
    def of(cls, X: Array, y: Array, columns: Ints, groups: Ints) -> Earlier:
        """From its values y (n,) at X (n, f'), which are the `columns` of this study's features."""
        _, owners = np.unique(groups[columns], return_inverse=True)
        process = gp.fit(X, Warp.of(y)(y), owners, None, fitting.MEDIUM)
        mean = process.mean_at(X)
        return cls(process, columns, float(mean.mean()), float(mean.std()) or 1.0)

    def at(self, X: Array) -> Array:
        """m_s (m,) at X (m, f)."""
        return (self.process.mean_at(X[:, self.columns]) - self.centre) / self.spread

    def slope(self, X: Array) -> Array:
        """d m_s / dX (m, f)."""
        slope = np.zeros_like(X)
        slope[:, self.columns] = self.process.mean_with_gradient(X[:, self.columns])[1] / self.spread
        return slope


@dataclass(frozen=True, eq=False)
class Trend:
    """sum_s factor_s m_s(x), in the units of z."""

    studies: tuple[Earlier, ...]
    factors: tuple[float, ...]

    def at(self, X: Array) -> Array:
        """(m,) at X (m, f)."""
        return sum((c * study.at(X) for c, study in self._parts), start=np.zeros(len(X)))

    def slope(self, X: Array) -> Array:
        """Its gradient (m, f)."""
        return sum((c * study.slope(X) for c, study in self._parts), start=np.zeros_like(X))

    @property
    def _parts(self) -> zip[tuple[float, Earlier]]:
        return zip(self.factors, self.studies, strict=True)


@dataclass(frozen=True, eq=False)
class Trended(gp.GP):
    """A process around a trend: `mean` and `alpha` are those of the residuals, `y` are whole values."""

    trend: Trend

    def prior_mean(self, X: Array) -> Array:
        return self.mean + self.trend.at(X)

    def prior_slope(self, X: Array) -> Array:
        return self.trend.slope(X)


def trended(own: gp.GP, trend: Trend) -> Trended:
    """The study's own process around a trend: the same hyperparameters and variance, another mean."""
    rest = own.y - trend.at(own.X)
    solved = backward(own.L, forward(own.L, np.column_stack([np.ones(len(rest)), rest])))
    offset, _, alpha = gp.profile(rest, solved)
    parts = {field.name: getattr(own, field.name) for field in fields(gp.GP)}
    return Trended(**{**parts, "mean": offset, "alpha": alpha}, trend=trend)


def trend_of(own: gp.GP, studies: Sequence[Earlier]) -> Trend | None:
    """How far each earlier study is believed, given this study's own process; None if not at all."""
    if not studies:
        return None
    weights, scales = believed(own, np.column_stack([study.at(own.X) for study in studies]))
    spread = gp.standardised(own.y)[2]
    kept = [s for s in range(len(studies)) if weights[s] * scales[s] >= LEAST_FACTOR]
    factors = tuple(float(spread * weights[s] * scales[s]) for s in kept)
    return Trend(tuple(studies[s] for s in kept), factors) if kept else None


def believed(own: gp.GP, M: Array) -> tuple[Array, Array]:
    """w (S,) and b (S,) of studies that predict M (n, S) where this one has its values."""
    z, studies = gp.standardised(own.y)[0], M.shape[1]
    alone, _ = _left_out(own, z, np.zeros(len(z)))
    found = [_left_out(own, z, m) for m in M.T]
    D = np.column_stack([alone, *(density for density, _ in found)])
    log_weights = D.sum(axis=0) + np.log([OWN_SHARE, *[(1.0 - OWN_SHARE) / studies] * studies])
    weights = np.exp(log_weights - log_weights.max())
    return weights[1:] / weights.sum(), np.array([max(scale, 0.0) for _, scale in found])


def _left_out(own: gp.GP, z: Array, m: Array) -> tuple[Array, float]:
    """log density (n,) of each value around one study's prediction m (n,), given the others; and the scale b.

    C^-1 = K^-1 - v v' / (SCALE_SD^-2 + m'v) with v = K^-1 m (Sherman and Morrison).
    """
    rest = z - m
    solved = backward(own.L, forward(own.L, np.column_stack([np.ones(len(z)), rest, m])))
    v = solved[:, 2]
    part = v / (SCALE_SD**-2 + float(m @ v))
    inverse = solved[:, :2] - part[:, None] * (m @ solved[:, :2])
    _, variance, alpha = gp.profile(rest, inverse)
    precision = own.precision - part * v
    spread2 = variance / precision
    densities = -0.5 * ((alpha / precision) ** 2 / spread2 + np.log(2.0 * np.pi * spread2))
    return densities, 1.0 + SCALE_SD**2 * float(m @ alpha)
