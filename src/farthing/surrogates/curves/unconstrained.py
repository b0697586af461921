"""The Gaussian process over configurations and training time, without the constraint that curves only fall.

Symbols and shapes
    X      (n, f)  configurations in the unit cube, one row per observation
    t      (n,)    times as shares of t_max
    y      (n,)    values; standardised inside
    l      (g,)    length-scales over X;  eta  noise variance divided by the signal variance;  phi: see `time_kernels`
    K      (n, n)  K_x(X, X) * K_t(t, t) + eta I, Matern-5/2 times a kernel over time;  L its lower Cholesky factor
    alpha  (n,)    K^-1 (y - mean)

    R      (m, f)  the different configurations;  tau (u,) the different times

Every prediction is the mean and covariance of probes: values and slopes of curves at given times. Mean and signal
variance are in closed form as in `gp`; theta = (log l, log eta, phi), phi the parameters of the kernel over time,
minimises
    loss  = (n + nu) / 2 log(q + nu) + log|K| / 2 + priors,        dloss/dtheta = sum(W * dK) / 2 + prior,
    W     = K^-1 - c alpha alpha'            with q, nu and c as in `gp`

Sums over W are taken per pair of configurations, W * K_t, and per pair of times, W * K_x, before they meet the
derivatives: kernels and derivatives are computed for m configurations and u times only, not for n^2 pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import dpotrf, dpotri, dpotrs
from farthing.numerics.linalg import backward, cholesky, extend_cholesky, forward, squared_distances
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.fitting import (
    LOG_SCALE_BOUNDS,
    LOG_SCALE_SD,
    MEDIUM,
    NormalPrior,
    by_log_scales,
    grouped,
    log_median,
    number_of_groups,
    search,
    starts,
)
from farthing.surrogates.gp import TINY_VARIANCE, VARIANCE_STRENGTH, profile, standardised
from farthing.surrogates.kernels import matern52, matern52_with_decay


@dataclass(frozen=True, eq=False)
class Probes:
    """What curves do at p places: their values (order 0) or their slopes in t (order 1).

    X (p, f) configurations, t (p,) times as shares of t_max, order (p,).
    """

    X: Array
    t: Array
    order: Ints

    @classmethod
    def values(cls, X: Array, t: Array) -> Probes:
        return cls(X, t, np.zeros(len(t), dtype=np.intp))

    @classmethod
    def slopes(cls, X: Array, t: Array) -> Probes:
        """At every time of t (v,) for every configuration of X (c, f), one configuration after the other."""
        return cls(np.repeat(X, len(t), axis=0), np.tile(t, len(X)), np.ones(len(X) * len(t), dtype=np.intp))

    def __add__(self, other: Probes) -> Probes:
        X, t = np.concatenate([self.X, other.X]), np.concatenate([self.t, other.t])
        return Probes(X, t, np.concatenate([self.order, other.order]))

    def __getitem__(self, rows: Any) -> Probes:
        return Probes(self.X[rows], self.t[rows], self.order[rows])

    def __len__(self) -> int:
        return len(self.t)

    def each(self) -> Iterator[tuple[Array, float, int]]:
        return zip(self.X, self.t, self.order, strict=True)


def different_rows(X: Array) -> tuple[Array, Ints]:
    """The different rows (m, f) in order of first appearance, and the index (n,) of each row among them.

    >>> different_rows(np.array([[2.0], [1.0], [2.0]]))
    (array([[2.],
           [1.]]), array([0, 1, 0]))
    """
    if X.shape[1] == 0:
        return X[:1], np.zeros(len(X), dtype=np.intp)
    numbers: dict[bytes, int] = {}
    rows = np.ascontiguousarray(X)
    of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], dtype=np.intp)
    first = np.unique(of, return_index=True)[1]
    return rows[first], of


LOG_NOISE_MEAN, LOG_NOISE_SD = -6.0, 1.0  # a validation curve is never free of noise, so narrower than in `gp`
# A floor of 1e-3 held every fit to curves without noise. With 1e-4 the error of their predicted ends is 0.71 to 0.92
# of that, and as before on LCBench. 1e-6 has still less error, but is too sure of itself where few runs are complete.
LOG_NOISE_BOUNDS = (float(np.log(1e-4)), float(np.log(1.0)))


class Loss:
    """The loss of the module's docstring and its gradient by theta. Work arrays are made once per fit."""

    def __init__(self, X: Array, t: Array, y: Array, groups: Ints, g: int, kernel: TimeKernel) -> None:
        rows, of_run = different_rows(X)
        by_run = np.argsort(of_run, kind="stable")  # rows of one run next to each other: sums over runs are slices
        self.R, self.run, self.y = rows - rows.mean(axis=0), of_run[by_run], y[by_run]
        self.tau, of_time = np.unique(t[by_run], return_inverse=True)
        self.time = of_time.astype(np.intp)
        self.groups, self.g, self.kernel, self.n = groups, g, kernel, len(y)
        self.first = np.flatnonzero(np.diff(self.run, prepend=-1))
        self.pairs = (self.time[:, None] * len(self.tau) + self.time).ravel()
        shape = (self.n, self.n)
        self.K_x, self.K_t, self.W = (np.empty(shape) for _ in range(3))
        middle, wide = time_kernels.PRIOR_MEAN[kernel], time_kernels.PRIOR_SD[kernel]
        self.bounds = [*[LOG_SCALE_BOUNDS] * g, LOG_NOISE_BOUNDS, *time_kernels.BOUNDS[kernel]]
        self.prior = NormalPrior(
            np.array([*[log_median(MEDIUM, g)] * g, LOG_NOISE_MEAN, *middle]),
            np.array([*[LOG_SCALE_SD] * g, LOG_NOISE_SD, *wide]),
        )

    def __call__(self, theta: Array) -> tuple[float, Array]:
        g, eta = self.g, float(np.exp(theta[self.g]))
        scaled = self.R / np.exp(theta[:g])[self.groups]
        k_x, decay = matern52_with_decay(squared_distances(scaled, scaled))  # (m, m)
        k_t, by_phi = time_kernels.with_gradient(self.kernel, theta[g + 1 :], self.tau)  # (u, u)
        _gather(k_x, self.run, self.K_x)
        _gather(k_t, self.time, self.K_t)
        K = np.multiply(self.K_x, self.K_t, out=self.W)
        K[np.diag_indices(self.n)] += eta
        L, info = dpotrf(K.T, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            return np.inf, np.zeros_like(theta)
        solved = dpotrs(L, np.column_stack([np.ones(self.n), self.y]), lower=1)[0]
        log_determinant = 2.0 * float(np.log(L.diagonal()).sum())
        _, variance, alpha = profile(self.y, solved)
        inverse = dpotri(L, lower=1, overwrite_c=1)[0].T  # upper triangle, C order; 0 below
        trace = float(inverse.diagonal().sum())
        # Sums over symmetric pairs are twice those over one triangle.
        inverse *= 2.0
        inverse[np.diag_indices(self.n)] *= 0.5
        inverse -= alpha[:, None] * (alpha / variance)
        gradient = np.empty_like(theta)
        gradient[g] = 0.5 * eta * (trace - float(alpha @ alpha) / variance)
        gradient[:g] = self._by_scales(scaled, decay, inverse)
        gradient[g + 1 :] = self._by_phi(by_phi, inverse)
        strength = self.n + VARIANCE_STRENGTH
        value = 0.5 * (strength * np.log(variance * strength) + log_determinant)
        prior, prior_gradient = self.prior(theta)
        return float(value + prior), gradient + prior_gradient

    def _by_scales(self, scaled: Array, decay: Array, W: Array) -> Array:
        """d loss / d log l (g,): W * K_t summed over each pair of runs, then as in `gp`."""
        self.K_t *= W
        pairs = np.add.reduceat(np.add.reduceat(self.K_t, self.first, axis=0), self.first, axis=1)  # (m, m)
        weights = 0.5 * (pairs + pairs.T) * decay
        Z = weights @ np.column_stack([scaled, np.ones(len(scaled))])
        return by_log_scales(scaled, Z[:, :-1], Z[:, -1], self.groups, self.g)

    def _by_phi(self, by_phi: list[Array], W: Array) -> Array:
        """d loss / d phi: W * K_x summed over each pair of times, then with each derivative."""
        self.K_x *= W
        pairs = np.bincount(self.pairs, weights=self.K_x.ravel(), minlength=len(self.tau) ** 2)
        return np.array([0.5 * float(pairs @ derivative.ravel()) for derivative in by_phi])


def _gather(small: Array, index: Ints, out: Array) -> None:
    """out = small[index][:, index]."""
    np.take(small.take(index, axis=1), index, axis=0, out=out, mode="clip")


WARM_ITERATIONS = 8  # of L-BFGS: a few new observations move the optimum little
COLD_RUNS = 50  # at most this many configurations try the starting points of a cold fit, to bound its time


@dataclass(frozen=True)
class Hyperparameters:
    """theta, and the number of observations at the last cold fit."""

    kernel: TimeKernel
    log_scales: tuple[float, ...]
    log_noise: float
    time: tuple[float, ...]  # phi
    cold_at: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel, "log_scales": list(self.log_scales), "log_noise": self.log_noise,
            "time": list(self.time), "cold_at": self.cold_at,
        }  # fmt: skip

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Hyperparameters:
        scales, time = (tuple(float(v) for v in stored[name]) for name in ("log_scales", "time"))
        return cls(stored["kernel"], scales, float(stored["log_noise"]), time, int(stored["cold_at"]))

    @classmethod
    def expected(cls, kernel: TimeKernel, g: int) -> Hyperparameters:
        """The means of their priors for g parameters: what is known before any fit."""
        return cls(kernel, (log_median(MEDIUM, g),) * g, LOG_NOISE_MEAN, time_kernels.PRIOR_MEAN[kernel])

    @property
    def theta(self) -> Array:
        return np.array([*self.log_scales, self.log_noise, *self.time])

    def suits(self, kernel: TimeKernel, g: int) -> bool:
        """Whether they are of this kernel and of as many parameters."""
        return self.kernel == kernel and len(self.log_scales) == g


@dataclass(frozen=True, eq=False)
class CurveGP:
    """A fitted process. Means and variances are in the units of y, times in those of t_max, slopes are per t_max."""

    X: Array
    t: Array  # shares of t_max
    y: Array
    groups: Ints
    t_max: float
    hyperparameters: Hyperparameters
    mean: float
    variance: float  # of the signal
    L: Array
    alpha: Array

    @cached_property
    def scales(self) -> Array:
        """Length-scale of each column, (f,)."""
        return np.asarray(np.exp(np.array(self.hyperparameters.log_scales))[self.groups])

    @cached_property
    def phi(self) -> Array:
        return np.array(self.hyperparameters.time)

    @cached_property
    def runs(self) -> tuple[Array, Ints]:
        """The different configurations R (m, f), and the one of each observation (n,)."""
        return different_rows(self.X)

    @cached_property
    def times(self) -> tuple[Array, Ints]:
        """The different times (u,), and the one of each observation (n,)."""
        tau, of = np.unique(self.t, return_inverse=True)
        return tau, of.astype(np.intp)

    @cached_property
    def _scaled_runs(self) -> Array:
        return self.runs[0] / self.scales

    @property
    def noise(self) -> float:
        """Noise variance in the units of y squared."""
        return float(np.exp(self.hyperparameters.log_noise)) * self.variance

    def cross(self, probes: Probes) -> Array:
        """Covariance (p, n) of probes and observations, in units of the signal variance."""
        (_, run), (tau, time) = self.runs, self.times
        K_x = matern52(squared_distances(probes.X / self.scales, self._scaled_runs))
        K_t = self._over_time(probes, Probes.values(tau[:, None], tau))
        K = K_x.take(run, axis=1)
        K *= K_t.take(time, axis=1)
        return K

    def prior(self, a: Probes, b: Probes) -> Array:
        """Covariance (p, q) of probes before any observation, in units of the signal variance."""
        return matern52(squared_distances(a.X / self.scales, b.X / self.scales)) * self._over_time(a, b)

    def prior_variance(self, probes: Probes) -> Array:
        """The diagonal (p,) of `prior`."""
        return time_kernels.variance(self.hyperparameters.kernel, self.phi, probes.t, probes.order)

    def _over_time(self, a: Probes, b: Probes) -> Array:
        return time_kernels.covariance(self.hyperparameters.kernel, self.phi, a.t, a.order, b.t, b.order)

    def whitened(self, probes: Probes) -> tuple[Array, Array]:
        """Posterior mean (p,), and V = L^-1 cross' (n, p), from which every posterior covariance is made."""
        K = self.cross(probes)
        return self.mean * (probes.order == 0) + K @ self.alpha, forward(self.L, K.T)

    def moments(self, probes: Probes) -> tuple[Array, Array]:
        """Posterior mean (p,) and variance (p,) of probes."""
        mean, V = self.whitened(probes)
        prior = self.prior_variance(probes)
        return mean, self.variance * np.maximum(prior - np.einsum("ij,ij->j", V, V), TINY_VARIANCE * prior)

    def predict(self, X: Array, t: Array) -> tuple[Array, Array]:
        """Mean (p,) and variance (p,) of the values at X (p, f) after t (p,) steps."""
        return self.moments(Probes.values(X, t / self.t_max))

    def condition(self, X: Array, t: Array, y: Array) -> CurveGP:
        """The same process with more observations: hyperparameters, mean and variance stay."""
        new = Probes.values(X, t / self.t_max)
        K = self.prior(new, new)
        K[np.diag_indices(len(K))] += np.exp(self.hyperparameters.log_noise)
        L = extend_cholesky(self.L, self.cross(new).T, K)
        both = np.concatenate([self.y, y])
        alpha = backward(L, forward(L, both - self.mean))
        seen = np.concatenate([self.X, X]), np.concatenate([self.t, new.t])
        return replace(self, X=seen[0], t=seen[1], y=both, L=L, alpha=alpha)


def fit(
    X: Array, t: Array, y: Array, groups: Sequence[int] | Ints | None, t_max: float, kernel: TimeKernel,
    warm: Hyperparameters | None = None,
) -> CurveGP:  # fmt: skip
    """The process with the most probable hyperparameters, searched as in `gp.fit`; t in steps."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    columns, n = grouped(groups, X.shape[1]), len(X)
    g = number_of_groups(columns)
    if warm is not None and not warm.suits(kernel, g):
        warm = None
    z = standardised(y)[0]
    loss = Loss(X, t / t_max, z, columns, g, kernel)

    def subset() -> Loss:
        run = different_rows(X)[1]
        if run.max(initial=0) < COLD_RUNS:
            return loss
        some = np.isin(run, np.linspace(0, run.max(), COLD_RUNS).round().astype(np.intp))
        return Loss(X[some], t[some] / t_max, z[some], columns, g, kernel)

    theta, cold_at = search(loss, subset, starts(g, _other_starts(kernel)), n, warm, WARM_ITERATIONS)
    best = theta.tolist()
    return from_hyperparameters(
        X, t, y, Hyperparameters(kernel, tuple(best[:g]), best[g], tuple(best[g + 1 :]), cold_at), t_max, columns
    )


def _other_starts(kernel: TimeKernel) -> list[list[float]]:
    """(log eta, phi) at the three starts: phi at the mean of its prior and to both sides of it."""
    middle = np.array(time_kernels.PRIOR_MEAN[kernel])
    aside = np.arange(len(middle) - 1, -1, -1)
    return [[log_noise, *(middle + shift * aside)] for log_noise, shift in ((-6.0, 0.0), (-4.0, -0.5), (-6.0, 0.5))]


def from_hyperparameters(
    X: Array, t: Array, y: Array, hyperparameters: Hyperparameters, t_max: float, groups: Ints | None = None
) -> CurveGP:  # fmt: skip
    """The process with given hyperparameters; mean and signal variance in closed form."""
    columns = np.arange(X.shape[1]) if groups is None else groups
    z, centre, spread = standardised(y)
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[columns]
    share = np.asarray(t, dtype=np.float64) / t_max
    K = matern52(squared_distances(scaled, scaled))
    tau, of = np.unique(share, return_inverse=True)
    K *= time_kernels.with_gradient(hyperparameters.kernel, np.array(hyperparameters.time), tau)[0][np.ix_(of, of)]
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    L = cholesky(K.T)
    solved = dpotrs(L, np.column_stack([np.ones(len(X)), z]), lower=1)[0]
    mean, variance, alpha = profile(z, solved)
    return CurveGP(
        X, share, np.asarray(y, dtype=np.float64), columns, float(t_max), hyperparameters,
        centre + spread * mean, spread**2 * variance, L, spread * alpha,
    )  # fmt: skip
