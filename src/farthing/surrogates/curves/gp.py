"""The Gaussian process over configurations and training time, without the knowledge that curves only fall.

Symbols and shapes
    X      (n, f)  configurations in the unit cube, one row per observation;  R (m, f) the different ones
    t      (n,)    times as shares of t_max;  tau (u,) the different ones
    y      (n,)    values; standardised inside
    l      (g,)    length-scales over X;  eta  noise variance divided by the signal variance;  phi of curve_kernels
    K      (n, n)  K_x(X, X) * K_t(t, t) + eta I, Matern-5/2 times a kernel over time;  L its lower Cholesky factor
    alpha  (n,)    K^-1 (y - mean)

Mean and signal variance are in closed form as on the page of `gp`; theta = (log l, log eta, phi) minimises its loss,
    (n + nu) / 2 log(q + nu) + log|K| / 2 + priors,        dloss/dtheta = sum(W * dK) / 2 + prior,
    W = K^-1 - c alpha alpha',
and sums over W are taken per pair of configurations, W * K_t, and per pair of times, W * K_x, before they meet the
derivatives: kernels and derivatives are computed for m configurations and u times only, not for n^2 pairs.

A probe is what a curve does at one place: its value (order 0) or its slope in t (order 1). Everything asked of the
process is the mean and covariance of probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import backward, cholesky, extend_cholesky, forward, squared_distances
from farthing.surrogates.curves import kernels as curve_kernels
from farthing.surrogates.curves.kernels import TimeKernel
from farthing.surrogates.gp import (
    COLD_GROWTH,
    LOG_SCALE_BOUNDS,
    LOG_SCALE_SD,
    LONG,
    MEDIUM,
    TINY_VARIANCE,
    VARIANCE_STRENGTH,
    profile,
    standardised,
)
from farthing.surrogates.kernels import matern52, matern52_with_decay

LOG_NOISE_MEAN, LOG_NOISE_SD = -6.0, 1.0
LOG_NOISE_BOUNDS = (float(np.log(1e-3)), float(np.log(1.0)))
WARM_ITERATIONS = 8
COLD_ITERATIONS = 40
COLD_RUNS = 50  # a multi-start looks at so many configurations at most; its best is then polished on all


@dataclass(frozen=True)
class Hyperparameters:
    """theta, and the number of observations at the last cold multi-start."""

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

    @property
    def theta(self) -> Array:
        return np.array([*self.log_scales, self.log_noise, *self.time])


@dataclass(frozen=True, eq=False)
class Probes:
    """Values and slopes of curves: configurations X (p, f), times t (p,) as shares of t_max, order (p,) 0 or 1."""

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


@dataclass(frozen=True, eq=False)
class CurveGP:
    """A fitted process. Means and variances are in the units of y, times in those of t_max, slopes per t_max."""

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
        return curve_kernels.variance(self.hyperparameters.kernel, self.phi, probes.t, probes.order)

    def _over_time(self, a: Probes, b: Probes) -> Array:
        return curve_kernels.covariance(self.hyperparameters.kernel, self.phi, a.t, a.order, b.t, b.order)

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

    def covariance(self, X: Array, t: Array) -> tuple[Array, Array]:
        """Mean (p,) and full covariance (p, p) of the values at X (p, f) after t (p,) steps."""
        probes = Probes.values(X, t / self.t_max)
        mean, V = self.whitened(probes)
        return mean, self.variance * (self.prior(probes, probes) - V.T @ V)

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


def different_rows(X: Array) -> tuple[Array, Ints]:
    """The different rows (m, f) in the order they first come, and which of them each row is, (n,).

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


def fit(
    X: Array, t: Array, y: Array, groups: Sequence[int] | Ints | None, t_max: float, kernel: TimeKernel,
    warm: Hyperparameters | None = None,
) -> CurveGP:  # fmt: skip
    """The process with the most probable hyperparameters, searched as in `gp.fit`; t in steps."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    columns = np.arange(X.shape[1]) if groups is None else np.asarray(groups, dtype=np.intp)
    n, g = len(X), int(columns.max()) + 1 if len(columns) else 0
    if warm is not None and (len(warm.log_scales) != g or warm.kernel != kernel):
        warm = None
    z = standardised(y)[0]
    of_run = different_rows(X)[1]
    loss = Loss(X, t / t_max, z, columns, g, kernel)
    if warm is None or n >= COLD_GROWTH * max(warm.cold_at, 1):
        some = of_run < COLD_RUNS if of_run.max(initial=0) < COLD_RUNS else np.isin(of_run, _spread_runs(of_run))
        few = loss if some.all() else Loss(X[some], t[some] / t_max, z[some], columns, g, kernel)
        starts = [_polished(few, start, COLD_ITERATIONS) for start in _starts(g, kernel)]
        starts += [] if warm is None else [warm.theta]
        cold_at = n
    else:
        starts, cold_at = [warm.theta], warm.cold_at
    start = min(starts, key=lambda theta: loss(theta)[0]) if len(starts) > 1 else starts[0]
    best = _polished(loss, start, WARM_ITERATIONS).tolist()
    return at(X, t, y, Hyperparameters(kernel, tuple(best[:g]), best[g], tuple(best[g + 1 :]), cold_at), t_max, columns)


def at(
    X: Array, t: Array, y: Array, hyperparameters: Hyperparameters, t_max: float, groups: Ints | None = None
) -> CurveGP:  # fmt: skip
    """The process with the hyperparameters given; mean and signal variance in closed form."""
    columns = np.arange(X.shape[1]) if groups is None else groups
    z, centre, spread = standardised(y)
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[columns]
    share = np.asarray(t, dtype=np.float64) / t_max
    K = matern52(squared_distances(scaled, scaled))
    tau, of = np.unique(share, return_inverse=True)
    K *= curve_kernels.with_gradient(hyperparameters.kernel, np.array(hyperparameters.time), tau)[0][np.ix_(of, of)]
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    L = cholesky(K.T)
    solved = dpotrs(L, np.column_stack([np.ones(len(X)), z]), lower=1)[0]
    mean, variance, alpha = profile(z, solved)
    return CurveGP(
        X, share, np.asarray(y, dtype=np.float64), columns, float(t_max), hyperparameters,
        centre + spread * mean, spread**2 * variance, L, spread * alpha,
    )  # fmt: skip


def _spread_runs(of_run: Ints) -> Ints:
    return np.linspace(0, of_run.max(), COLD_RUNS).round().astype(np.intp)


def _starts(g: int, kernel: TimeKernel) -> list[Array]:
    """Where a multi-start begins: scales as in `gp`, the parameters of time at the prior and to its sides."""
    root, middle = 0.5 * np.log(max(g, 1)), np.array(curve_kernels.PRIOR_MEAN[kernel])
    shifts = ((np.log(0.5), -6.0, 0.0), (np.log(1.5), -4.0, -0.5), (LONG, -6.0, 0.5))
    return [
        np.concatenate([np.full(g, root + a), [noise], middle + b * np.arange(len(middle) - 1, -1, -1)])
        for a, noise, b in shifts
    ]


def _polished(loss: Loss, start: Array, iterations: int) -> Array:
    """Where L-BFGS-B gets from a start, within the bounds."""
    bounds = [*[LOG_SCALE_BOUNDS] * loss.g, LOG_NOISE_BOUNDS, *curve_kernels.BOUNDS[loss.kernel]]
    options = {"maxiter": iterations, "ftol": 1e-5, "gtol": 1e-2, "maxls": 10}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x)


class Loss:
    """The loss of the module's docstring and its gradient in theta; work arrays are made once per fit."""

    def __init__(self, X: Array, t: Array, y: Array, groups: Ints, g: int, kernel: TimeKernel) -> None:
        rows, of_run = different_rows(X)
        by_run = np.argsort(of_run, kind="stable")  # observations of a run side by side: sums over runs are slices
        self.R, self.run, self.y = rows - rows.mean(axis=0), of_run[by_run], y[by_run]
        self.tau, of_time = np.unique(t[by_run], return_inverse=True)
        self.time = of_time.astype(np.intp)
        self.groups, self.g, self.kernel, self.n = groups, g, kernel, len(y)
        self.first = np.flatnonzero(np.diff(self.run, prepend=-1))
        self.pairs = (self.time[:, None] * len(self.tau) + self.time).ravel()
        shape = (self.n, self.n)
        self.K_x, self.K_t, self.W = (np.empty(shape) for _ in range(3))
        middle, wide = curve_kernels.PRIOR_MEAN[kernel], curve_kernels.PRIOR_SD[kernel]
        log_scale = MEDIUM + 0.5 * np.log(max(g, 1))
        self.prior_mean = np.array([*[log_scale] * g, LOG_NOISE_MEAN, *middle])
        self.prior_sd = np.array([*[LOG_SCALE_SD] * g, LOG_NOISE_SD, *wide])

    def __call__(self, theta: Array) -> tuple[float, Array]:
        g, eta = self.g, float(np.exp(theta[self.g]))
        scaled = self.R / np.exp(theta[:g])[self.groups]
        k_x, decay = matern52_with_decay(squared_distances(scaled, scaled))  # (m, m)
        k_t, by_phi = curve_kernels.with_gradient(self.kernel, theta[g + 1 :], self.tau)  # (u, u)
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
        z = (theta - self.prior_mean) / self.prior_sd
        return float(value + 0.5 * z @ z), gradient + z / self.prior_sd

    def _by_scales(self, scaled: Array, decay: Array, W: Array) -> Array:
        """d loss / d log l (g,): W * K_t summed over each pair of runs, then as on the page of `gp`."""
        self.K_t *= W
        pairs = np.add.reduceat(np.add.reduceat(self.K_t, self.first, axis=0), self.first, axis=1)  # (m, m)
        weights = 0.5 * (pairs + pairs.T) * decay
        Z = weights @ np.column_stack([scaled, np.ones(len(scaled))])
        columns = Z[:, -1] @ (scaled * scaled) - np.einsum("ij,ij->j", scaled, Z[:, :-1])
        return np.asarray(np.bincount(self.groups, weights=columns, minlength=self.g), dtype=np.float64)

    def _by_phi(self, by_phi: list[Array], W: Array) -> Array:
        """d loss / d phi: W * K_x summed over each pair of times, then with each derivative."""
        self.K_x *= W
        pairs = np.bincount(self.pairs, weights=self.K_x.ravel(), minlength=len(self.tau) ** 2)
        return np.array([0.5 * float(pairs @ derivative.ravel()) for derivative in by_phi])


def _gather(small: Array, index: Ints, out: Array) -> None:
    """out = small[index][:, index]."""
    np.take(small.take(index, axis=1), index, axis=0, out=out, mode="clip")
