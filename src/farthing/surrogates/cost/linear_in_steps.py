"""BAPI's own model of cost: a process over configurations times a line through 0 over steps (section 3.3).

Symbols and shapes
    X (n, f)   configurations in the unit cube;  t (n,) the steps of each run;  c (n,) what they cost together
    b = c / t  (n,) the mean cost of a step
    l (g,)     length-scales;  sigma^2 variance of the noise of c;  v signal variance of the cost of a step

The paper's kernel is K_c = K_x(x, x') t t' with an RBF kernel over x, and costs have noise:

    c(x, t) = t g(x) + e,    g ~ GP(mean, v K_x),    e ~ Normal(0, sigma^2)

Divided by t this is a process on the cost of a step whose noise shrinks with the square of the steps:

    K = K_x + eta diag((T / t)^2),    eta = sigma^2 / (v T^2),    T the largest t

so the mean over two steps counts for much less than one over fifty. Mean, v and the loss over theta = (log l, log eta)
are as in `gp`. The paper gives no mean function: ours is a line through 0 too, so that costs stay linear in t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import dpotrf, dpotri, dpotrs
from farthing.numerics.linalg import cholesky, forward, squared_distances
from farthing.surrogates.cost.log_cost import CostModel
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
from farthing.surrogates.gp import (
    COLD_ROWS,
    LOG_NOISE_BOUNDS,
    LOG_NOISE_MEAN,
    LOG_NOISE_SD,
    START_LOG_NOISE,
    TINY_VARIANCE,
    VARIANCE_STRENGTH,
    WARM_ITERATIONS,
    profile,
    standardised,
)

LEAST_SHARE = 0.1  # of the smallest cost seen, below which a process that may turn negative is cut off
ZERO_COST = 1e-12  # stands for the smallest cost where all are zero, since its log would be infinite
MOST_VARIANCE = 2.0  # of log cost: beyond a factor of four, uncertainty is not a reason to avoid


def rbf(s: Array) -> Array:
    """exp(-s / 2) of squared scaled distances: K_x, and its derivative by log l_j divided by (a_j - b_j)^2."""
    return np.asarray(np.exp(-0.5 * s))


@dataclass(frozen=True, eq=False)
class StepProcess:
    """The process on the cost of a step, fitted. Predictions are of g, in the units of b."""

    X: Array
    groups: Ints
    theta: Array  # (log l, log eta)
    mean: float
    variance: float  # v
    L: Array
    alpha: Array

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean (m,) and variance (m,) of the cost of a step at X (m, f)."""
        scales = np.exp(self.theta[:-1])[self.groups]
        K = rbf(squared_distances(X / scales, self.X / scales))
        V = forward(self.L, K.T)
        left = np.maximum(1.0 - np.einsum("ij,ij->j", V, V), TINY_VARIANCE)
        return self.mean + K @ self.alpha, self.variance * left


class Loss:
    """Minus the log density of the costs and of the prior of theta, with its gradient."""

    def __init__(self, X: Array, b: Array, noise: Array, groups: Ints, g: int) -> None:
        self.X, self.b, self.noise, self.groups, self.g = X - X.mean(axis=0), b, noise, groups, g
        self.bounds = [LOG_SCALE_BOUNDS] * g + [LOG_NOISE_BOUNDS]
        middle, wide = [log_median(LONG, g)] * g, [LOG_SCALE_SD] * g
        self.prior = NormalPrior(np.array([*middle, LOG_NOISE_MEAN]), np.array([*wide, LOG_NOISE_SD]))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        scaled, added = self.X / np.exp(theta[:-1])[self.groups], np.exp(theta[-1]) * self.noise
        K_x = rbf(squared_distances(scaled, scaled))
        L, info = dpotrf(K_x + np.diag(added), lower=1, clean=1)
        if info != 0:
            return np.inf, np.zeros_like(theta)
        n = len(self.b)
        _, variance, alpha = profile(self.b, dpotrs(L, np.column_stack([np.ones(n), self.b]), lower=1)[0])
        inverse = np.tril(dpotri(L, lower=1)[0])
        W = inverse + np.tril(inverse, -1).T - np.outer(alpha, alpha) / variance
        Z = (W * K_x) @ np.column_stack([scaled, np.ones(n)])
        by_scales = by_log_scales(scaled, Z[:, :-1], Z[:, -1], self.groups, self.g)
        strength = n + VARIANCE_STRENGTH
        value = 0.5 * strength * np.log(variance * strength) + float(np.log(L.diagonal()).sum())
        prior, prior_gradient = self.prior(theta)
        return float(value + prior), np.append(by_scales, 0.5 * float(W.diagonal() @ added)) + prior_gradient


def fit(X: Array, t: Array, c: Array, groups: Sequence[int] | Ints | None = None) -> StepProcess:
    """The process of the total costs c (n,) of t (n,) steps at X (n, f), with the most probable hyperparameters."""
    X, noise = np.ascontiguousarray(X, dtype=np.float64), noise_of(t)
    columns, n = grouped(groups, X.shape[1]), len(X)
    g = number_of_groups(columns)
    z = standardised(c / t)[0]
    some = np.linspace(0, n - 1, min(n, COLD_ROWS)).round().astype(np.intp)
    theta, _ = search(
        Loss(X, z, noise, columns, g), lambda: Loss(X[some], z[some], noise[some], columns, g),
        starts(g, START_LOG_NOISE), n, None, WARM_ITERATIONS,
    )  # fmt: skip
    return from_theta(X, t, c, theta, columns)


def from_theta(X: Array, t: Array, c: Array, theta: Array, groups: Ints) -> StepProcess:
    """The process with given hyperparameters; mean and signal variance in closed form."""
    z, centre, spread = standardised(c / t)
    scaled = X / np.exp(theta[:-1])[groups]
    L = cholesky(rbf(squared_distances(scaled, scaled)) + np.diag(np.exp(theta[-1]) * noise_of(t)))
    mean, variance, alpha = profile(z, dpotrs(L, np.column_stack([np.ones(len(X)), z]), lower=1)[0])
    return StepProcess(X, groups, theta, centre + spread * mean, spread**2 * variance, L, spread * alpha)


def noise_of(t: Array) -> Array:
    """(T / t)^2: the noise variance of the mean cost of a step, as a multiple of that of the longest run."""
    return np.asarray((t.max() / t) ** 2)


@dataclass(frozen=True, eq=False)
class LinearInSteps(CostModel):
    """The same as a model of the log cost of a step: the lognormal with the mean and variance of the process."""

    process: StepProcess
    least: float  # lower bound of the mean

    @classmethod
    def of(cls, X: Array, t: Array, c: Array, groups: Sequence[int] | Ints | None = None) -> LinearInSteps:
        """From the total costs c (n,) of t (n,) steps at X (n, f).

        >>> X, t = np.linspace(0.0, 1.0, 8)[:, None], np.array([2.0, 50.0] * 4)
        >>> model = LinearInSteps.of(X, t, t * (1.0 + X[:, 0]))
        >>> mean, variance = model.predict(np.array([[0.5]]))
        >>> np.exp(mean + 0.5 * variance).round(2).tolist()
        [1.5]
        """
        per_step = c / t
        positive = per_step[per_step > 0.0]
        least = LEAST_SHARE * float(positive.min()) if len(positive) else ZERO_COST
        return cls(fit(X, t, c, groups), least)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of the log: that of the mean cost is mean + variance / 2."""
        mean, variance = self.process.predict(X)
        held = np.maximum(mean, self.least)
        of_log = np.minimum(np.log1p(variance / held**2), MOST_VARIANCE)
        return np.log(held) - 0.5 * of_log, of_log
