"""Cost as a sum of operation counts with prices that are not negative.

Symbols and shapes
    Phi    (n, k)  features, each the count of what one part of the program does; a column of ones is added
    c      (n,)    costs;  b = log c
    theta  (k + 1,) prices >= 0;  cost = Phi theta
    share_j        theta_j mean(phi_j) / (geometric mean of c): about the part of the cost that feature j explains

The features of Lee et al., "Cost-aware Bayesian Optimization" (CArBO, arXiv 2003.10870), section 6, for a network of
layer sizes n_1 .. n_k, convolutions of kernel size r and channels m_1 .. m_k on an I x I image of c colours, pooled
by the ratios p_1 .. p_k (the dense layers after them start with I^2 p_k m_k):

    phi_quad   = n_1 n_2 + ... + n_{k-1} n_k                          matrix products
    phi_linear = n_1 + ... + n_k                                      activations, normalisation
    phi_conv   = I^2 r^2 c m_1 + sum_i I^2 r^2 m_i m_{i+1}            convolutions
    phi_pool   = sum_i I^2 p_i m_i                                    pooling

Prices minimise Huber's loss of the log errors r = log c - log(Phi theta), so that relative errors count and one odd
timing does not. A term SHARE_STRENGTH sum_j (share_j - 1 / (k + 1))^2 splits the cost evenly where the data do not
decide. The loss is stationary where non-negative least squares on costs returns the theta that gave its row weights,

    omega = v r / (chat (c - chat)) = v / chat^2 * r / (exp(r) - 1),     chat = Phi theta, v the Huber weights of r

(v r / chat = omega (c - chat) is the pull of one row). This is iterated, starting from the median cost. `predict` gives
the mean log(Phi theta) and the variance of the log cost of one new evaluation: s^2 (1 + u), with s^2 that of the log
errors and u the leverage of phi / (phi . theta).

`fit_runtime` is the printed model: Huber's loss of c - Phi theta itself, prices of any sign. The paper names neither
the threshold nor how to find it; ours is k s with the usual k = 1.345 and s the median error over 0.6745. The expensive
evaluations decide it, an intercept may be negative, and where the sum is not positive there is no log cost: the least
that is predicted is a tenth of the smallest cost seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import exprel, nnls
from farthing.numerics.linalg import cholesky, forward
from farthing.surrogates.cost.lines import (
    NOISE_STRENGTH,
    deleted_square,
    huber_weights,
    log_student,
    residual_scale,
    student_spread,
)
from farthing.surrogates.cost.log_cost import ZERO, logs

SHARE_STRENGTH = 1e-3  # small: it only decides where the data do not
ITERATIONS, TOLERANCE = 30, 1e-6  # relative change of the scale
SMALLEST = 1e-12  # of the mean cost: the smallest prediction, so that it has a logarithm
SETTLING, CONVERGING = 20, 200  # steps of the printed loss: until its scale is known, and with that scale
NORMAL_MEDIAN = 0.6744897501960817  # of |e| for a standard normal e


def phi_quad(layers: Sequence[float], *, epochs: float = 1.0) -> float:
    """n_1 n_2 + n_2 n_3 + ... + n_{k-1} n_k: the products of a dense network with these layer sizes.

    >>> phi_quad([10, 20, 5])
    300.0
    """
    return float(epochs) * float(sum(a * b for a, b in pairwise(layers)))


def phi_linear(layers: Sequence[float], *, epochs: float = 1.0) -> float:
    """n_1 + ... + n_k: the activations of a dense network.

    >>> phi_linear([10, 20, 5])
    35.0
    """
    return float(epochs) * float(sum(layers))


def phi_conv(image: float, kernel: float, colours: float, channels: Sequence[float], *, epochs: float = 1.0) -> float:
    """I^2 r^2 (c m_1 + m_1 m_2 + ... + m_{k-1} m_k): convolutions of r x r on an I x I image of c colours.

    >>> phi_conv(28, 3, 1, [8, 16])
    959616.0
    """
    return float(image) ** 2 * float(kernel) ** 2 * phi_quad([colours, *channels], epochs=epochs)


def phi_pool(image: float, ratios: Sequence[float], channels: Sequence[float], *, epochs: float = 1.0) -> float:
    """I^2 (p_1 m_1 + ... + p_k m_k): pooling by the ratios p.

    >>> phi_pool(28, [1.0, 0.25], [8, 16])
    9408.0
    """
    pooled = sum(p * m for p, m in zip(ratios, channels, strict=True))
    return float(epochs) * float(image) ** 2 * float(pooled)


@dataclass(frozen=True, eq=False)
class FlopCost:
    """cost = (Phi, 1) prices."""

    prices: Array  # (k + 1,), the last one per evaluation
    active: Ints  # (a,) columns with a price
    units: Array  # (a,) price of those columns at a share of 1
    L: Array  # (a, a) lower factor of the Gram matrix of the shares
    noise: float  # variance of log errors
    least: float  # the smallest cost that is predicted
    residuals: Array  # (n,) log errors
    basis: Array  # (n, a): rows p_i with p_i . p_j v_j the part of observation j in the log of prediction i
    v: Array  # (n,) their Huber weights
    scale: float  # s of the log errors

    def predict(self, Phi: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of log cost at features Phi (m, k)."""
        rows = _with_one(Phi)
        cost = np.maximum(rows @ self.prices, self.least)
        V = forward(self.L, (rows[:, self.active] * self.units / cost[:, None]).T)
        return np.log(cost), self.noise * (1.0 + np.einsum("ij,ij->j", V, V))

    @cached_property
    def deleted(self) -> tuple[Array, Array]:
        """Of each observation given all others, with the model linearised at its prices: log error and leverage u."""
        u = np.einsum("ij,ij->i", self.basis, self.basis)
        kept = np.maximum(1.0 - self.v * u, 1e-9)
        return self.residuals / kept, u / kept

    def log_densities(self) -> Array:
        """log density (n,) of each log cost given all the others, with the model linearised at its prices."""
        deleted, u = self.deleted
        square = deleted_square(self.residuals, deleted, u, self.v, self.scale)
        return log_student(deleted, square, max(NOISE_STRENGTH + len(self.v) - 2.0, 1.0))


def fit(Phi: Array, cost: Array) -> FlopCost:
    """Prices from features Phi (n, k) and costs (n,), n >= 1.

    >>> Phi = np.array([[1.0], [2.0], [4.0], [9.0]])
    >>> fit(Phi, 3.0 * Phi[:, 0] + 5.0).prices.round(1).tolist()
    [3.0, 5.0]
    """
    counts = _Counts.of(Phi, cost)
    return counts.priced(*_robust_shares(counts.A, counts.b), SMALLEST)


def fit_runtime(Phi: Array, cost: Array) -> FlopCost:
    """Prices as section 6 has them: by Huber's loss of the errors in runtime itself, of any sign. n >= 1.

    >>> Phi = np.array([[1.0], [2.0], [4.0], [9.0]])
    >>> fit_runtime(Phi, 3.0 * Phi[:, 0] - 1.0).prices.round(6).tolist()
    [3.0, -1.0]
    """
    counts = _Counts.of(Phi, cost)
    c = np.exp(counts.b)
    shares, least = _runtime_shares(counts.A, c), ZERO * float(c.min())
    return counts.priced(shares, *_huber_scale(counts.b - np.log(np.maximum(counts.A @ shares, least))), least)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts and costs in units in which a typical one is 1."""

    A: Array  # (n, k + 1): the cost is A share, and a typical row is all ones
    b: Array  # (n,) log costs without their mean
    centre: float  # that mean
    size: Array  # (k + 1,) mean counts

    @classmethod
    def of(cls, Phi: Array, cost: Array) -> _Counts:
        rows, b = _with_one(Phi), logs(cost)
        size = rows.mean(axis=0)
        return cls(rows / np.where(size > 0.0, size, 1.0), b - b.mean(), float(b.mean()), size)

    def priced(self, shares: Array, v: Array, scale: float, least: float) -> FlopCost:
        """The model with these shares; v and scale are of its log errors, and it predicts at least `least`."""
        predicted = np.maximum(self.A @ shares, least)
        units = np.exp(self.centre) / np.where(self.size > 0.0, self.size, 1.0)
        active = np.flatnonzero(np.where(self.size > 0.0, shares, 0.0))
        relative = self.A[:, active] / predicted[:, None]
        gram = (relative * v[:, None]).T @ relative + SHARE_STRENGTH * np.eye(len(active))
        L, noise = cholesky(gram), scale**2 * student_spread(len(self.b))
        return FlopCost(
            shares * units, active, units[active], L, noise, least * float(np.exp(self.centre)),
            self.b - np.log(predicted), forward(L, relative.T).T, v, scale,
        )  # fmt: skip


def _with_one(Phi: Array) -> Array:
    Phi = np.asarray(Phi, dtype=np.float64)
    valid = np.isfinite(Phi) & (Phi >= 0.0)
    if not np.all(valid):
        raise InvalidArgument(f"cost_features: expected finite counts of at least 0, got {Phi[~valid][0]}")
    return np.column_stack([Phi, np.ones(len(Phi))])


def _robust_shares(A: Array, b: Array) -> tuple[Array, Array, float]:
    """Shares (k + 1,), Huber weights (n,) and scale of the log errors, by reweighted non-negative least squares."""
    n, k = A.shape
    prior = np.sqrt(SHARE_STRENGTH)
    r, c = b - np.median(b), np.exp(b)
    predicted, scale = np.full(n, np.exp(np.median(b))), np.inf
    v = np.ones(n)
    for _ in range(ITERATIONS):
        before, scale = scale, residual_scale(float(v @ r**2), n)
        if abs(scale - before) <= TOLERANCE * scale:
            break
        v = huber_weights(r, scale)
        root = np.sqrt(v / np.maximum(exprel(r), 1e-12)) / predicted  # of omega: r / (exp(r) - 1) = 1 / exprel(r)
        targets = np.append(root * c, np.full(k, prior / k))
        shares = nnls(np.concatenate([A * root[:, None], prior * np.eye(k)]), targets)[0]
        predicted = np.maximum(A @ shares, SMALLEST)
        r = b - np.log(predicted)
    return np.asarray(shares), v, scale


def _runtime_shares(A: Array, c: Array) -> Array:
    """Shares (k + 1,) that minimise sum_i rho(c_i - a_i . share; k s); the smallest of them where there are many.

    Least squares with row weights min(1, k s / |r|) and s from the median error in turn, then to convergence with the
    last s: the loss is convex.
    """
    shares, s = np.linalg.lstsq(A, c)[0], 0.0
    for iteration in range(SETTLING + CONVERGING):
        r = c - A @ shares
        if iteration < SETTLING:
            s = max(float(np.median(np.abs(r))) / NORMAL_MEDIAN, SMALLEST * float(c.max()))
        root = np.sqrt(huber_weights(r, s))
        before, shares = shares, np.linalg.lstsq(A * root[:, None], c * root)[0]
        if iteration >= SETTLING and np.abs(A @ (shares - before)).max() <= SMALLEST * float(c.max()):
            break
    return np.asarray(shares)


def _huber_scale(r: Array) -> tuple[Array, float]:
    """Huber weights (n,) and scale of log errors r (n,) that agree with each other."""
    v, scale = np.ones(len(r)), np.inf
    for _ in range(ITERATIONS):
        before, scale = scale, residual_scale(float(v @ r**2), len(r))
        if abs(scale - before) <= TOLERANCE * scale:
            break
        v = huber_weights(r, scale)
    return v, scale
