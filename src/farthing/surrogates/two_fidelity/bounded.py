"""One process whose values may be known to lie between bounds: its loss, and the search for its hyperparameters.

Symbols and shapes (those of `gp` keep their meaning)
    y, low   (n,)    what is observed and what is subtracted from it: d = y - rho low, in units of about its own spread
    mu, s2, rho      mean and variance of the process, and the factor; rho is given or estimated
    E        (n, n)  covariance of d on top of the process: the uncertainty of `low` where it was imputed
    C        (n, n)  s2 (k(X / l) + eta I) + E
    k, b1, b2        the first k rows of d lie in [b1, b2];  Z = P(b1 <= d_1..k <= b2) under N(mu, C)

BOPT-HPO, Lemma 1, Eq. (3.5): the density of d is that of N(mu, C) divided by Z (Z does not depend on rho, because the
box moves with rho low). The loss is minus its logarithm, and the priors of `gp`,

    loss = log|C| / 2 + (d - mu)' C^-1 (d - mu) / 2 + log Z + nu (log s2 + 1 / s2) / 2 + priors of l, eta (and mu)
    dloss = tr(G dC) - 1'alpha dmu + dlog Z / dmu dmu + ...,    G = (C^-1 - alpha alpha') / 2 + dlog Z / dC

with alpha = C^-1 (d - mu). Without bounds and E the best mu, rho and s2 have closed forms, as in `gp`: theta is
(log l, log eta). Otherwise theta is (log l, log eta, mu, log s2), and only rho has a closed form, cut to where d stays
in its bounds. The likelihood of a truncated process hardly tells a wide process from a flat tilted one, so there mu has
a prior: Normal(0, 2) in units of the spread. Where mu lies many standard deviations outside of the bounds, Z is too
small to be estimated: there the loss is infinite.

`Estimation(priors=False)` is maximum likelihood, as the paper has it: nu = 0 and no priors. `Estimation(noise=False)`
is a process without noise, Eq. (2.1): eta is as small as a Cholesky factor allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import dpotrf, dpotri, dpotrs
from farthing.numerics.linalg import backward, cholesky, extend_cholesky, forward, squared_distances
from farthing.numerics.truncated import log_box_with_gradient, net
from farthing.surrogates.fitting import (
    COLD_ITERATIONS,
    LOG_SCALE_BOUNDS,
    LOG_SCALE_SD,
    LONG,
    NormalPrior,
    best_of,
    by_log_scales,
    log_median,
    number_of_groups,
    polished,
    starts,
)
from farthing.surrogates.gp import (
    GP,
    LOG_NOISE_BOUNDS,
    LOG_NOISE_MEAN,
    LOG_NOISE_SD,
    START_LOG_NOISE,
    VARIANCE_STRENGTH,
    WARM_ITERATIONS,
    Hyperparameters,
)
from farthing.surrogates.kernels import matern52_with_decay

Kernel = Literal["matern52", "gaussian"]


@dataclass(frozen=True)
class Estimation:
    """How hyperparameters are estimated: with priors or by the likelihood alone, of values with noise or without."""

    priors: bool = True
    noise: bool = True


MOST_PROBABLE = Estimation()


def gaussian_with_decay(s: Array) -> tuple[Array, Array]:
    """k(s) = exp(-s / 2) of squared scaled distances, and its decay -2 k'(s), which is k itself."""
    k = np.exp(-0.5 * s)
    return k, k


KERNELS: dict[Kernel, Callable[[Array], tuple[Array, Array]]] = {
    "matern52": matern52_with_decay,
    "gaussian": gaussian_with_decay,
}


class GaussianGP(GP):
    """The process of `gp` with the Gaussian kernel, which the paper uses."""

    def cross(self, X: Array) -> tuple[Array, Array, Array]:
        A = X / self.scales
        return *gaussian_with_decay(squared_distances(A, self._scaled)), A

    def predict(self, X: Array) -> tuple[Array, Array]:
        K = self.cross(X)[0]
        return self.mean + K @ self.alpha, self.posterior_variance(forward(self.L, K.T))

    def mean_at(self, X: Array) -> Array:
        return np.asarray(self.mean + self.cross(X)[0] @ self.alpha)

    def covariance(self, X: Array) -> tuple[Array, Array]:
        K, _, A = self.cross(X)
        V = forward(self.L, K.T)
        return self.mean + K @ self.alpha, self.variance * (gaussian_with_decay(squared_distances(A, A))[0] - V.T @ V)

    def condition(self, X: Array, y: Array) -> GP:
        K, _, A = self.cross(X)
        new = gaussian_with_decay(squared_distances(A, A))[0]
        new[np.diag_indices(len(X))] += np.exp(self.hyperparameters.log_noise)
        L = extend_cholesky(self.L, K.T, new)
        both = np.concatenate([self.y, y])
        alpha = backward(L, forward(L, both - self.mean))
        return GaussianGP(
            np.concatenate([self.X, X]), both, self.groups, self.hyperparameters, self.mean, self.variance, L, alpha
        )


def process(
    kernel: Kernel, X: Array, y: Array, groups: Ints, hyperparameters: Hyperparameters,
    mean: float, variance: float, extra: Array | None = None,
) -> GP:  # fmt: skip
    """The process with all its parts given; `extra` (n, n) is covariance of y on top of signal and noise."""
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[groups]
    K = KERNELS[kernel](squared_distances(scaled, scaled))[0]
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    if extra is not None:
        K += extra / variance
    L = cholesky(K.T)
    family = GP if kernel == "matern52" else GaussianGP
    return family(X, y, groups, hyperparameters, mean, variance, L, backward(L, forward(L, y - mean)))


POINTS = 256  # of the net behind Z in a fit: its error of 0.01 in log Z hardly moves the hyperparameters
BOUNDED_ITERATIONS = 8  # each costs a Z and its gradient
MEAN_SD = 2.0  # of the prior on mu
SHORT_SHIFTS = (float(np.log(0.1)), float(np.log(0.2)))  # log l less log(g) / 2 at more starts, without priors
NO_NOISE = (LOG_NOISE_BOUNDS[0], LOG_NOISE_BOUNDS[0])
# Standard deviations that mu may lie outside of the bounds. Farther out one of the points carries all of Z, and log Z
# is too low by tens to millions, which would look like the best fit of all.
MOST_OUTSIDE = 4.0
# Far beyond any process fitted to data of spread 1.
MEAN_BOUNDS = (-20.0, 20.0)
LOG_VARIANCE_BOUNDS = (float(np.log(1e-6)), float(np.log(1e4)))
LEAST_VARIANCE = 1e-12  # of the spread of d: without a prior, equal values would have a variance of 0


@dataclass(frozen=True, eq=False)
class Observations:
    """The data of one process, in units of about the spread of d."""

    X: Array  # (n, f)
    y: Array  # (n,)
    low: Array  # (n,)
    groups: Ints  # (f,)
    rho: float | None  # None: estimated
    bounds: tuple[float, float] = (-np.inf, np.inf)
    boxed: int = 0  # k
    extra: Array | None = None  # E
    factors: tuple[float, float] = (-np.inf, np.inf)  # the smallest and the largest rho, if it is estimated

    @property
    def g(self) -> int:
        return number_of_groups(self.groups)

    @property
    def is_bounded(self) -> bool:
        return self.boxed > 0 and bool(np.isfinite(self.bounds).any())

    @property
    def has_closed_forms(self) -> bool:
        return not self.is_bounded and self.extra is None

    @property
    def unbounded(self) -> Observations:
        return Observations(self.X, self.y, self.low, self.groups, self.rho)


@dataclass(frozen=True, eq=False)
class Profiled:
    """The parts of a process at one theta: rho, mu, s2, the factor L of C, and alpha."""

    rho: float
    mean: float
    variance: float
    L: Array
    alpha: Array
    residual: Array  # d - mu


@dataclass(eq=False)
class Loss:
    """The loss of the module's docstring and its gradient in theta."""

    data: Observations
    kernel: Kernel = "matern52"
    points: int = POINTS
    estimation: Estimation = MOST_PROBABLE

    def __post_init__(self) -> None:
        self.centred = self.data.X - self.data.X.mean(axis=0)  # squared distances by products lose fewer digits
        self.strength = VARIANCE_STRENGTH if self.estimation.priors else 0.0  # nu
        g = self.data.g
        self.bounds = [LOG_SCALE_BOUNDS] * g + [LOG_NOISE_BOUNDS if self.estimation.noise else NO_NOISE]
        centres, spreads = [*[log_median(LONG, g)] * g, LOG_NOISE_MEAN], [*[LOG_SCALE_SD] * g, LOG_NOISE_SD]
        if not self.data.has_closed_forms:
            self.bounds += [MEAN_BOUNDS, LOG_VARIANCE_BOUNDS]
            centres, spreads = [*centres, 0.0, 0.0], [*spreads, MEAN_SD if self.data.is_bounded else np.inf, np.inf]
        if not self.estimation.priors:
            spreads = [np.inf] * len(spreads)
        self.prior = NormalPrior(np.array(centres), np.array(spreads))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        data, g, n = self.data, self.data.g, len(self.data.y)
        scaled = self.centred / np.exp(theta[:g])[data.groups]
        k, decay = KERNELS[self.kernel](squared_distances(scaled, scaled))
        parts = self.profiled(theta, k)
        if parts is None or not self.has_box_probability(theta):
            return np.inf, np.zeros_like(theta)
        s2, alpha = parts.variance, parts.alpha
        inverse = dpotri(parts.L, lower=1)[0]
        G = np.tril(inverse, -1)
        G = 0.5 * (G + G.T + np.diag(np.diag(inverse)) - alpha[:, None] * alpha)
        value = float(np.log(np.diag(parts.L)).sum()) + 0.5 * float(parts.residual @ alpha)
        value += 0.5 * self.strength * (np.log(s2) + 1.0 / s2)
        by_mean = -float(alpha.sum())
        if data.is_bounded:
            b, (lower, upper) = data.boxed, (np.full(data.boxed, bound) for bound in data.bounds)
            log_z, z_mean, z_covariance = log_box_with_gradient(
                np.full(b, parts.mean), parts.L[:b, :b], lower, upper, net(self.points, b)
            )
            value, by_mean = value + log_z, by_mean + float(z_mean.sum())
            G[:b, :b] += z_covariance

        gradient = np.zeros_like(theta)
        trace = s2 * float(np.trace(G))  # of the noise-free diagonal, which is s2
        eta = float(np.exp(theta[g]))
        gradient[g] = eta * trace
        W = s2 * G * decay
        Z = W @ np.column_stack([scaled, np.ones(n)])
        gradient[:g] = 2.0 * by_log_scales(scaled, Z[:, :-1], Z[:, -1], data.groups, g)
        if not data.has_closed_forms:
            gradient[g + 1] = by_mean
            gradient[g + 2] = s2 * float((G * k).sum()) + eta * trace + 0.5 * self.strength * (1.0 - 1.0 / s2)
        prior, by_prior = self.prior(theta)
        return value + prior, gradient + by_prior

    def profiled(self, theta: Array, k: Array | None = None) -> Profiled | None:
        """The parts at theta; None if C has no Cholesky factor."""
        data, g, n = self.data, self.data.g, len(self.data.y)
        if k is None:
            scaled = self.centred / np.exp(theta[:g])[data.groups]
            k = KERNELS[self.kernel](squared_distances(scaled, scaled))[0]
        C = k.copy()
        C[np.diag_indices(n)] += np.exp(theta[g])
        if not data.has_closed_forms:
            C *= np.exp(theta[g + 2])
            C += 0.0 if data.extra is None else data.extra
        L, info = dpotrf(C, lower=1, clean=1)
        if info != 0:
            return None
        one, low, y = dpotrs(L, np.column_stack([np.ones(n), data.low, data.y]), lower=1)[0].T  # C^-1 of each
        if not data.has_closed_forms:
            mean, s2 = float(theta[g + 1]), float(np.exp(theta[g + 2]))
            rho = self._factor(float(low @ (data.y - mean)), float(low @ data.low))
            residual, alpha = data.y - rho * data.low - mean, y - rho * low - mean * one
            return Profiled(rho, mean, s2, L, alpha, residual)
        # Generalised least squares for y on (1, low): low less its own regression on 1 first.
        ones = float(one.sum())
        apart = low - float(low.sum()) / ones * one
        rho = self._factor(float(apart @ data.y), float(apart @ data.low))
        mean = float((y - rho * low).sum()) / ones
        residual, alpha = data.y - rho * data.low - mean, y - rho * low - mean * one
        s2 = (max(float(residual @ alpha), 0.0) + self.strength) / (n + self.strength)
        s2 = max(s2, LEAST_VARIANCE)
        return Profiled(rho, mean, s2, np.sqrt(s2) * L, alpha / s2, residual)

    def has_box_probability(self, theta: Array) -> bool:
        """Whether Z can be estimated at theta."""
        if not self.data.is_bounded:
            return True
        g, (lower, upper) = self.data.g, self.data.bounds
        outside = MOST_OUTSIDE * float(np.sqrt(np.exp(theta[g + 2]) * (1.0 + np.exp(theta[g]))))
        return bool(lower - outside <= theta[g + 1] <= upper + outside)

    def begun(self, theta: Array) -> Array:
        """theta, or one with mu at the nearest bound, where a search can begin."""
        if self.has_box_probability(theta):
            return theta
        mean = self.data.g + 1
        return np.concatenate([theta[:mean], [np.clip(theta[mean], *self.data.bounds)], theta[mean + 1 :]])

    def _factor(self, product: float, square: float) -> float:
        """The rho in its range that minimises (d - mu)' C^-1 (d - mu): a parabola, so clipping is exact."""
        if self.data.rho is not None:
            return self.data.rho
        best = product / square if square > 1e-12 else 1.0
        return float(np.clip(best, *self.data.factors))


def best_theta(
    data: Observations, kernel: Kernel, warm: Array | None, cold: bool, estimation: Estimation = MOST_PROBABLE
) -> Array:
    """The theta of least loss from `warm`, or, when cold, from several starts without bounds and then with them."""
    loss = Loss(data, kernel, estimation=estimation)
    if cold or warm is None:
        free = Loss(data.unbounded, kernel, estimation=estimation)
        g = data.g
        begins = starts(g, START_LOG_NOISE)
        if not estimation.priors:  # the likelihood alone has more valleys, down to scales that connect no two runs
            begins += [np.append(np.full(g, log_median(shift, g)), START_LOG_NOISE[0]) for shift in SHORT_SHIFTS]
        tried = [polished(free, start, COLD_ITERATIONS) for start in begins]
        tried += [] if warm is None else [polished(free, warm[: g + 1], COLD_ITERATIONS)]
        best = best_of(free, tried)
        if data.has_closed_forms:
            return best
        parts = free.profiled(best)
        assert parts is not None  # the polish ended at a finite loss
        begin = loss.begun(np.append(best, [parts.mean, np.log(parts.variance)]))
        chosen = begin if warm is None else best_of(loss, [begin, warm])
        return polished(loss, chosen, 2 * BOUNDED_ITERATIONS)
    return polished(loss, loss.begun(warm), WARM_ITERATIONS if data.has_closed_forms else BOUNDED_ITERATIONS)
