"""The Gaussian process over configurations and training time, without the constraint that curves only fall.

Symbols and shapes
    X      (n, f)  configurations in the unit cube, one row per observation
    t      (n,)    times as shares of t_max
    y      (n,)    values; standardised inside
    l      (g,)    length-scales over X;  eta  noise variance divided by the signal variance;  phi: see `time_kernels`
    K      (n, n)  K_x(X, X) * K_t(t, t) + eta I, Matern-5/2 times a kernel over time;  L its lower Cholesky factor
    alpha  (n,)    K^-1 (y - mean)

Mean and signal variance are in closed form as in `likelihood`; theta = (log l, log eta, phi) minimises the loss of
`curves.likelihood`. Every prediction is the mean and covariance of probes: values and slopes of curves at given times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrs

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import backward, cholesky, extend_cholesky, forward, squared_distances
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.likelihood import Loss
from farthing.surrogates.curves.probes import Probes, different_rows
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.fitting import grouped, number_of_groups, search, starts
from farthing.surrogates.gp import TINY_VARIANCE
from farthing.surrogates.kernels import matern52
from farthing.surrogates.likelihood import profile, standardised

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

    @property
    def theta(self) -> Array:
        return np.array([*self.log_scales, self.log_noise, *self.time])


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
    if warm is not None and (len(warm.log_scales) != g or warm.kernel != kernel):
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
