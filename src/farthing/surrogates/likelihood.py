"""The loss whose minimum gives a Gaussian process its hyperparameters: minus the log marginal likelihood, and priors.

Symbols and shapes as in `gp`. Given (l, eta) the mean is the generalised least-squares estimate 1'K^-1 y / 1'K^-1 1 and
the signal variance (q + nu) / (n + nu) with q = (y - mean)' alpha. That is the maximum of the likelihood under a weak
inverse-gamma prior centred on the variance of the outputs and worth nu = 1 observation, so that one point or equal
outputs still give a positive variance. What remains is minimised over theta = (log l, log eta):

    loss = (n + nu) / 2 log(q + nu) + log|K| / 2 + priors of log l (see `fitting`) and log eta
    dloss/dtheta = tr(K^-1 dK) / 2 - c alpha' dK alpha / 2 + prior,     c = (n + nu) / (q + nu)

(mean and variance are at their optimum, so their own derivatives vanish). The derivatives by log l are weighted sums of
squared coordinate differences with weights W = (K^-1 - c alpha alpha') * decay: one product of W with [X, 1] gives them
all (`fitting.by_log_scales`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from farthing.numerics.arrays import Array, Ints
from farthing.surrogates.fitting import LOG_SCALE_BOUNDS, LOG_SCALE_SD, LONG, NormalPrior, by_log_scales, log_median

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
        L, info = dpotrf(self.K, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return np.inf, np.zeros_like(theta)
        solved = dpotrs(L, np.column_stack([np.ones(self.n), self.y]), lower=1)[0]
        log_determinant = 2.0 * float(np.log(L.diagonal()).sum())
        _, variance, alpha = profile(self.y, solved)
        inverse = dpotri(L, lower=1, overwrite_c=1)[0]

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
