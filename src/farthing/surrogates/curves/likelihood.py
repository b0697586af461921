"""The loss that a process over training curves minimises, and its gradient.

Symbols and shapes (those of `unconstrained` keep their meaning)
    R      (m, f)  the different configurations;  tau (u,) the different times
    theta = (log l, log eta, phi), phi the parameters of the kernel over time
    loss  = (n + nu) / 2 log(q + nu) + log|K| / 2 + priors,        dloss/dtheta = sum(W * dK) / 2 + prior,
    W     = K^-1 - c alpha alpha'            with q, nu and c as in `likelihood`

Sums over W are taken per pair of configurations, W * K_t, and per pair of times, W * K_x, before they meet the
derivatives: kernels and derivatives are computed for m configurations and u times only, not for n^2 pairs.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import squared_distances
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.probes import different_rows
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.fitting import LOG_SCALE_BOUNDS, LOG_SCALE_SD, MEDIUM, NormalPrior, by_log_scales, log_median
from farthing.surrogates.kernels import matern52_with_decay
from farthing.surrogates.likelihood import VARIANCE_STRENGTH, profile

LOG_NOISE_MEAN, LOG_NOISE_SD = -6.0, 1.0  # a validation curve is never free of noise, so narrower than in `likelihood`
LOG_NOISE_BOUNDS = (float(np.log(1e-3)), float(np.log(1.0)))


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
        """d loss / d log l (g,): W * K_t summed over each pair of runs, then as in `likelihood`."""
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
