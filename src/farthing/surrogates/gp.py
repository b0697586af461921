"""The exact Gaussian process: Matern-5/2 with a length-scale for each parameter, noise, and a constant mean.

Symbols and shapes
    X      (n, f)  inputs in the unit cube, one row per observation
    y      (n,)    outputs; standardised inside, so any affine scale gives the same fit
    groups (f,)    the parameter each input column belongs to; g parameters share g length-scales
    l      (g,)    length-scales;  eta  noise variance divided by the signal variance
    K      (n, n)  k(X / l) + eta I;  L its lower Cholesky factor
    alpha  (n,)    K^-1 (y - mean)

The loss is minus the log marginal likelihood, and priors. Given (l, eta) the mean is the generalised least-squares
estimate 1'K^-1 y / 1'K^-1 1 and the signal variance (q + nu) / (n + nu) with q = (y - mean)' alpha. That is the maximum
of the likelihood under a weak inverse-gamma prior centred on the variance of the outputs and worth nu = 1 observation,
so that one point or equal outputs still give a positive variance. What remains is minimised over theta = (log l, log
eta) by `fitting`:

    loss = (n + nu) / 2 log(q + nu) + log|K| / 2 + priors of log l (see `fitting`) and log eta
    dloss/dtheta = tr(K^-1 dK) / 2 - c alpha' dK alpha / 2 + prior,     c = (n + nu) / (q + nu)

(mean and variance are at their optimum, so their own derivatives vanish). The derivatives by log l are weighted sums of
squared coordinate differences with weights W = (K^-1 - c alpha alpha') * decay: one product of W with [X, 1] gives them
all (`fitting.by_log_scales`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.lapack import dpotrf, dpotri
from farthing.numerics.late_scipy import dpotrs, dsymm
from farthing.numerics.linalg import (
    DistancesTo,
    backward,
    cholesky,
    extend_cholesky,
    forward,
    lower_inverse,
    squared_distances,
)  # fmt: skip
from farthing.surrogates.fitting import (
    LOG_SCALE_BOUNDS,
    LOG_SCALE_SD,
    LONG,
    NormalPrior,
    by_log_scales,
    grouped,
    log_median,
    number_of_groups,
    search,
    starts,
)
from farthing.surrogates.kernels import matern52, matern52_with_decay

WARM_ITERATIONS = 12  # of L-BFGS: a few new observations move the optimum little
COLD_ROWS = 150  # at most this many observations try the starting points of a cold fit: its cost grows with their cube
START_LOG_NOISE = ((-7.0,), (-4.0,), (-9.0,))  # log eta at the three starts: little, some, hardly any
TINY_VARIANCE = 1e-12  # of the signal: a smaller variance is rounding


@dataclass(frozen=True)
class Hyperparameters:
    """theta, and the number of observations at the last cold fit and at the last fit."""

    log_scales: tuple[float, ...]
    log_noise: float
    cold_at: int = 0
    at: int = 0

    def as_json(self) -> dict[str, object]:
        scales = list(self.log_scales)
        return {"log_scales": scales, "log_noise": self.log_noise, "cold_at": self.cold_at, "at": self.at}

    @classmethod
    def from_json(cls, stored: dict[str, object]) -> Hyperparameters:
        return cls(
            tuple(float(v) for v in stored["log_scales"]),  # type: ignore[attr-defined]
            float(stored["log_noise"]),  # type: ignore[arg-type]
            int(stored["cold_at"]),  # type: ignore[call-overload]
            int(stored.get("at", 0)),  # type: ignore[call-overload]
        )

    @property
    def theta(self) -> Array:
        return np.array([*self.log_scales, self.log_noise])


@dataclass(frozen=True, eq=False)
class GP:
    """A fitted process. Predictions are of the noise-free function, in the units of y."""

    X: Array  # (n, f)
    y: Array  # (n,) as given
    groups: Ints  # (f,)
    hyperparameters: Hyperparameters
    mean: float
    variance: float  # of the signal
    L: Array  # (n, n) lower factor of K
    alpha: Array  # (n,)

    @cached_property
    def scales(self) -> Array:
        """Length-scale of each column, (f,)."""
        return np.asarray(np.exp(np.array(self.hyperparameters.log_scales))[self.groups])

    @cached_property
    def _scaled(self) -> Array:
        return self.X / self.scales

    @cached_property
    def _distances(self) -> DistancesTo:
        return DistancesTo(self._scaled)

    @cached_property
    def _scaled_with_one(self) -> Array:
        return np.column_stack([self._scaled, np.ones(len(self.X))])

    @property
    def noise(self) -> float:
        """Noise variance in the units of y squared."""
        return float(np.exp(self.hyperparameters.log_noise)) * self.variance

    @property
    def least_variance(self) -> float:
        """A smaller posterior variance is rounding."""
        return self.variance * TINY_VARIANCE

    def prior_mean(self, X: Array) -> Array | float:
        """What is expected at X (m, f) before anything is observed: a constant, or one for each (m,)."""
        return self.mean

    def prior_slope(self, X: Array) -> Array | float:
        """d prior mean / dX, 0 or (m, f)."""
        return 0.0

    def cross(self, X: Array) -> tuple[Array, Array, Array]:
        """Between X (m, f) and the data: k (m, n), decay (m, n); and X divided by the length-scales."""
        A = X / self.scales
        return *matern52_with_decay(self._distances(A)), A

    def between(self, X: Array) -> Array:
        """k (m, n) between X (m, f) and the data."""
        return matern52(self._distances(X / self.scales))

    def posterior_variance(self, V: Array) -> Array:
        """Posterior variance (m,) from V = L^-1 k' (n, m)."""
        return np.asarray(self.variance * np.maximum(1.0 - np.einsum("ij,ij->j", V, V), TINY_VARIANCE))

    def pull(self, A: Array, weights: Array) -> Array:
        """Gradient (m, f) by X of sum_j w_j k(x, x_j), from weights (m, n) that are w times decay."""
        pulled = weights @ self._scaled_with_one  # (m, f + 1)
        return np.asarray((pulled[:, :-1] - pulled[:, -1:] * A) / self.scales)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean (m,) and variance (m,) at X (m, f)."""
        K = self.between(X)
        return self.prior_mean(X) + K @ self.alpha, self.posterior_variance(forward(self.L, K.T))

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        K, decay, A = self.cross(X)
        V = forward(self.L, K.T)
        variance = self.posterior_variance(V)
        both = np.concatenate([decay * self.alpha, decay * backward(self.L, V).T])  # (2m, n)
        mean_slope, explained_slope = np.split(self.pull(np.concatenate([A, A]), both), 2)
        free = (variance > self.least_variance)[:, None]
        return (
            self.prior_mean(X) + K @ self.alpha,
            variance,
            self.prior_slope(X) + mean_slope,
            np.where(free, -2.0 * self.variance * explained_slope, 0.0),
        )

    def mean_at(self, X: Array) -> Array:
        """Posterior mean (m,) alone: no triangular solve."""
        return np.asarray(self.prior_mean(X) + self.between(X) @ self.alpha)

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """mean (m,) and d mean / dX (m, f)."""
        K, decay, A = self.cross(X)
        return self.prior_mean(X) + K @ self.alpha, self.prior_slope(X) + self.pull(A, decay * self.alpha)

    def explained(self, X: Array) -> Array:
        """V (n, m) at X (m, f): the data explain variance * V'V of the covariance there."""
        return forward(self.L, self.between(X).T)

    def covariance(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean (m,) and full covariance (m, m) at X (m, f)."""
        V = self.explained(X)
        return self.mean_at(X), self.covariance_between(X, V, X, V)

    def covariance_between(self, X: Array, V: Array, Z: Array, W: Array) -> Array:
        """Posterior covariance (m, k) of X (m, f) and Z (k, f), of which the data explain V (n, m) and W (n, k)."""
        prior = matern52(squared_distances(X / self.scales, Z / self.scales))
        return np.asarray(self.variance * (prior - V.T @ W))

    def condition(self, X: Array, y: Array) -> GP:
        """The same process with more observations: hyperparameters, mean and variance stay."""
        A = X / self.scales
        cross = matern52(squared_distances(self._scaled, A))
        new = matern52(squared_distances(A, A))
        new[np.diag_indices(len(X))] += np.exp(self.hyperparameters.log_noise)
        L = extend_cholesky(self.L, cross, new)
        inputs, both = np.concatenate([self.X, X]), np.concatenate([self.y, y])
        alpha = backward(L, forward(L, both - self.prior_mean(inputs)))
        return replace(self, X=inputs, y=both, L=L, alpha=alpha)

    @cached_property
    def precision(self) -> Array:
        """Diagonal of K^-1, (n,)."""
        return np.diag(lower_inverse(self.L))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Residual (n,) of each observation and variance (n,) of its prediction, noise included, given the others."""
        return self.alpha / self.precision, self.variance / self.precision


def fit(
    X: Array, y: Array, groups: Sequence[int] | Ints | None = None, warm: Hyperparameters | None = None, m: float = LONG
) -> GP:  # fmt: skip
    """The process with the most probable hyperparameters, searched from `warm` or, on a schedule, from several starts.

    >>> X = np.linspace(0, 1, 8)[:, None]
    >>> mean, variance = fit(X, np.sin(6 * X[:, 0])).predict(np.array([[0.5]]))
    >>> abs(mean[0] - np.sin(3.0)) < 0.01
    np.True_
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    columns, n = grouped(groups, X.shape[1]), len(X)
    g = number_of_groups(columns)
    if warm is not None and len(warm.log_scales) != g:
        warm = None
    z = standardised(y)[0]
    loss = Loss(X, z, columns, g, m)

    def subset() -> Loss:
        some = np.linspace(0, n - 1, min(n, COLD_ROWS)).round().astype(np.intp)
        return loss if len(some) == n else Loss(X[some], z[some], columns, g, m)

    best, cold_at = search(loss, subset, starts(g, START_LOG_NOISE), n, warm, WARM_ITERATIONS)
    found = Hyperparameters(tuple(best[:-1].tolist()), float(best[-1]), cold_at, at=n)
    return from_hyperparameters(X, y, found, columns)


def from_hyperparameters(X: Array, y: Array, hyperparameters: Hyperparameters, groups: Ints | None = None) -> GP:
    """The process with given hyperparameters; mean and signal variance in closed form."""
    columns = np.arange(X.shape[1]) if groups is None else groups
    z, centre, spread = standardised(y)
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[columns]
    K = matern52(squared_distances(scaled, scaled))
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    L = cholesky(K.T)
    solved = dpotrs(L, np.column_stack([np.ones(len(X)), z]), lower=1)[0]
    mean, variance, alpha = profile(z, solved)
    return GP(
        X, np.asarray(y, dtype=np.float64), columns, hyperparameters,
        centre + spread * mean, spread**2 * variance, L, spread * alpha,
    )  # fmt: skip


VARIANCE_STRENGTH = 1.0  # nu: how many observations the prior on the signal variance is worth
LOG_NOISE_MEAN, LOG_NOISE_SD = -9.0, 3.0  # wide: most programs are deterministic, some are not at all
LOG_NOISE_BOUNDS = (float(np.log(1e-8)), float(np.log(1e2)))  # from what a Cholesky factor needs to almost only noise


def standardised(y: Array) -> tuple[Array, float, float]:
    """y with mean 0 and variance 1 (all 0 if y is constant), its centre and its spread. Nothing overflows."""
    y = np.asarray(y, dtype=np.float64)
    largest = float(np.max(np.abs(y), initial=0.0)) or 1.0
    z = y / largest
    centre, spread = float(z.mean()), float(z.std())
    if spread <= 1e-14:  # of the largest value: rounding
        return np.zeros_like(y), centre * largest, largest * 1e-8
    return (z - centre) / spread, centre * largest, spread * largest


def profile(y: Array, solved: Array) -> tuple[float, float, Array]:
    """Mean, signal variance and alpha from K^-1 [1, y]."""
    mean = float(solved[:, 1].sum() / solved[:, 0].sum())
    alpha = solved[:, 1] - mean * solved[:, 0]
    q = max(float((y - mean) @ alpha), 0.0)
    return mean, (q + VARIANCE_STRENGTH) / (len(y) + VARIANCE_STRENGTH), alpha


class Loss:
    """The loss of the module's docstring and its gradient by theta. Work arrays are made once per fit."""

    def __init__(self, X: Array, y: Array, groups: Ints, g: int, m: float = LONG) -> None:
        self.y, self.groups, self.g, self.n = y, groups, g, len(X)
        self.X = X - X.mean(axis=0)  # centred: squared distances by products lose fewer digits
        self.bounds = [LOG_SCALE_BOUNDS] * g + [LOG_NOISE_BOUNDS]
        self.prior = NormalPrior(
            np.array([*[log_median(m, g)] * g, LOG_NOISE_MEAN]), np.array([*[LOG_SCALE_SD] * g, LOG_NOISE_SD])
        )
        shape = (self.n, self.n)
        self.K, self.decay, self.work = (np.empty(shape, order="F") for _ in range(3))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        eta = float(np.exp(theta[-1]))
        scaled = self.X / np.exp(theta[:-1])[self.groups]
        self._fill_kernel(scaled, eta)
        L, info = dpotrf(self.K, clean=False, overwrite=True)
        if info != 0:
            return np.inf, np.zeros_like(theta)
        solved = dpotrs(L, np.column_stack([np.ones(self.n), self.y]), lower=1)[0]
        log_determinant = 2.0 * float(np.log(L.diagonal()).sum())
        _, variance, alpha = profile(self.y, solved)
        inverse = dpotri(L, overwrite=True)

        strength = self.n + VARIANCE_STRENGTH
        value = 0.5 * (strength * np.log(variance * strength) + log_determinant)
        gradient = np.empty_like(theta)
        gradient[-1] = 0.5 * eta * (float(inverse.diagonal().sum()) - float(alpha @ alpha) / variance)
        gradient[:-1] = self._scale_gradient(scaled, inverse, alpha / np.sqrt(variance))
        prior, prior_gradient = self.prior(theta)
        return float(value + prior), gradient + prior_gradient

    def _fill_kernel(self, scaled: Array, eta: float) -> None:
        """K and decay (without its factor 5 / 3) as in `kernels`, without a new array."""
        K, a, e = self.K, self.decay, self.work
        norms = np.einsum("ij,ij->i", scaled, scaled)
        np.matmul(scaled, (-2.0 * scaled).T, out=K.T)
        K += norms[:, None]
        K += norms
        np.maximum(K, 0.0, out=K)
        np.multiply(K, 5.0, out=a)
        np.sqrt(a, out=a)
        np.negative(a, out=e)
        np.exp(e, out=e)
        a += 1.0
        K *= 5.0 / 3.0
        K += a
        K *= e
        a *= e
        K[np.diag_indices(self.n)] += eta

    def _scale_gradient(self, scaled: Array, inverse: Array, alpha: Array) -> Array:
        """d loss / d log l (g,) before the prior; alpha is times sqrt(c). Reads the lower triangles only."""
        W = np.multiply(alpha[:, None], alpha, out=self.work)
        np.subtract(inverse, W, out=W)
        W *= self.decay
        Z = dsymm(5.0 / 3.0, W, np.column_stack([scaled, np.ones(self.n)]), lower=1)
        return by_log_scales(scaled, Z[:, :-1], Z[:, -1], self.groups, self.g)
