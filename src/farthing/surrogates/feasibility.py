"""The probability that an evaluation succeeds, learned from those that did and those that did not.

Symbols and shapes
    X      (n, f)  inputs in the unit cube;  t (n,) labels: +1 for a success, -3 for a failure
    groups (f,)    the parameter each input column belongs to; g parameters share g length-scales
    l      (g,)    length-scales;  eta  variance of the noise, relative to a signal of variance 1
    K      (n, n)  k(X / l) + eta I, Matern-5/2;  L its lower Cholesky factor
    e      (n,)    t - 1: 0 for a success, -4 for a failure;  alpha (n,) = K^-1 e

Labels are treated as values of a Gaussian process of mean +1, and a new evaluation succeeds when its own value is above
zero (least-squares classification, Rasmussen and Williams 2006, section 6.5):

    P(x) = Phi(z),     z = mean(x) / sqrt(variance(x) + eta)

The mean is +1 where nothing is known: an untried point succeeds with probability Phi(1 / sqrt(1 + eta)), about 5/6, and
successes alone raise it. A failure stands three times as far from zero as a success, so between one of each the
boundary is a quarter of the way from the success. It is on the safe side on purpose: the largest improvement is
expected where nothing was ever seen to succeed, and a boundary half-way would be tried from the wrong side again and
again.

Why not a classifier with its own likelihood: what crashed once crashes again, and the model must become certain of it.
Under Laplace's approximation any number of failures at one place leaves z above -1, because the curvature of the
likelihood vanishes once the label is explained. Here z falls to -3 / sqrt(eta), exactly and in closed form.

Length-scales start at the shortest allowed, a fifth of the unit cube's diagonal, and the evidence may only lengthen
them, so that parameters without influence on success stop counting. Left free they would shrink without end, because
the labels jump where a process is smooth. With b the logs of the shortest, theta = log l >= b minimises

    loss = e' alpha / 2 + log|K| / 2 + sum (theta - b)^2 / (2 v)

No region is excluded for ever: P is at least LEAST_CHANCE, and successes nearby raise it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.numerics.late_scipy import dpotrf, dpotri, dpotrs, log_ndtr
from farthing.numerics.linalg import backward, cholesky, forward, squared_distances
from farthing.numerics.normal import LOG_SQRT_2PI
from farthing.surrogates import gp
from farthing.surrogates.fitting import NormalPrior, by_log_scales, grouped, log_median, number_of_groups, polished
from farthing.surrogates.kernels import matern52, matern52_with_decay

SUCCESS, FAILURE = 1.0, -3.0  # labels; the first is the prior mean too
LOG_NOISE = float(np.log(0.01))  # nearly the same configuration nearly always ends the same way
LEAST_CHANCE = 1e-6  # small enough to avoid a region, large enough for a finite logarithm
SHORTEST = 0.2  # length-scale over sqrt(g), the diagonal of the unit cube
LONGEST = 30.0  # times the shortest: there a parameter has no influence
LOG_SCALE_SD = 0.7  # sqrt(v): a scale twice the shortest is one standard deviation away
FIRST_ITERATIONS, WARM_ITERATIONS = 12, 3  # of L-BFGS over theta: from the start, and at each later proposal


@dataclass(frozen=True, eq=False)
class Feasibility:
    """A fitted model of success."""

    labels: gp.GP

    @property
    def hyperparameters(self) -> gp.Hyperparameters:
        return self.labels.hyperparameters

    def log_success(self, X: Array) -> Array:
        """log P (m,) at X (m, f)."""
        mean, variance = self.labels.predict(X)
        return _with_floor(log_ndtr(mean / np.sqrt(variance + self.labels.noise)))

    def log_success_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """log P (m,) and its gradient (m, f): d log(c + (1 - c) Phi) = (1 - c) phi / P dz with c the least chance."""
        mean, variance, mean_slope, variance_slope = self.labels.predict_with_gradient(X)
        spread = np.sqrt(variance + self.labels.noise)
        z = mean / spread
        log_chance = _with_floor(log_ndtr(z))
        z_slope = (mean_slope - (0.5 * z / spread)[:, None] * variance_slope) / spread[:, None]
        above = (1.0 - LEAST_CHANCE) * np.exp(-0.5 * z * z - LOG_SQRT_2PI - log_chance)
        return log_chance, above[:, None] * z_slope


def _with_floor(log_chance: Array) -> Array:
    """log(LEAST_CHANCE + (1 - LEAST_CHANCE) P) from log P."""
    return np.asarray(np.logaddexp(np.log(LEAST_CHANCE), np.log1p(-LEAST_CHANCE) + log_chance))


def fit(
    X: Array, succeeded: Mask, groups: Sequence[int] | Ints | None = None, warm: gp.Hyperparameters | None = None
) -> Feasibility:
    """The model of success with the most probable length-scales, searched from `warm` or from the shortest.

    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> model = fit(X, X[:, 0] < 0.5)
    >>> np.exp(model.log_success(np.array([[0.2], [0.8]]))).round(2).tolist()
    [1.0, 0.0]
    """
    X, succeeded = np.ascontiguousarray(X, dtype=np.float64), np.asarray(succeeded, dtype=np.bool_)
    if not len(X) == len(succeeded) > 0:
        sizes = f"{len(X)} and {len(succeeded)}"
        raise InvalidArgument(f"feasibility: expected X and succeeded of one length above 0, got {sizes}")
    columns = grouped(groups, X.shape[1])
    g = number_of_groups(columns)
    loss = Loss(X, succeeded, columns, g)
    start, iterations = loss.shortest, FIRST_ITERATIONS
    if warm is not None and len(warm.log_scales) == g:
        start, iterations = np.array(warm.log_scales), WARM_ITERATIONS
    theta = polished(loss, start, iterations, ftol=1e-4, line_search=6)  # every proposal pays for this
    return from_hyperparameters(X, succeeded, gp.Hyperparameters(tuple(theta.tolist()), LOG_NOISE, len(X)), columns)


def from_hyperparameters(
    X: Array, succeeded: Mask, hyperparameters: gp.Hyperparameters, groups: Ints | None = None
) -> Feasibility:
    """The model with given hyperparameters."""
    columns = np.arange(X.shape[1]) if groups is None else groups
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[columns]
    K = matern52(squared_distances(scaled, scaled))
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    L = cholesky(K.T)
    labels = np.where(succeeded, SUCCESS, FAILURE)
    alpha = backward(L, forward(L, labels - SUCCESS))
    return Feasibility(gp.GP(X, labels, columns, hyperparameters, SUCCESS, 1.0, L, alpha))


class Loss:
    """The loss of the module's docstring and its gradient in theta (g,)."""

    def __init__(self, X: Array, succeeded: Mask, groups: Ints, g: int) -> None:
        self.X, self.groups, self.g = X - X.mean(axis=0), groups, g  # centred: distances lose fewer digits
        self.e = np.where(succeeded, SUCCESS, FAILURE) - SUCCESS
        self.shortest = np.full(g, log_median(float(np.log(SHORTEST)), g))
        self.bounds = [(low, low + np.log(LONGEST)) for low in self.shortest]
        self.prior = NormalPrior(self.shortest, np.full(g, LOG_SCALE_SD))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        scaled = self.X / np.exp(theta)[self.groups]
        K, decay = matern52_with_decay(squared_distances(scaled, scaled))
        K[np.diag_indices(len(K))] += np.exp(LOG_NOISE)  # with it there is always a factor
        L = dpotrf(K.T, lower=1, clean=0)[0]
        alpha = dpotrs(L, self.e, lower=1)[0]
        value = 0.5 * float(self.e @ alpha) + float(np.log(L.diagonal()).sum())
        W = np.tril(dpotri(L, lower=1)[0])
        W = W + np.tril(W, -1).T - np.outer(alpha, alpha)
        W *= decay
        gradient = by_log_scales(scaled, W @ scaled, W.sum(axis=1), self.groups, self.g)
        prior, prior_gradient = self.prior(theta)
        return value + prior, gradient + prior_gradient
