"""Normal distributions cut to a box: its log probability with gradient, and moments in an interval.

Symbols and shapes
    m, K       (n,), (n, n)  mean and covariance of the normal before it is cut;  L lower, L L' = K
    a, b       (n,)          lower and upper limits, -inf and inf allowed
    U          (N, n)        points of the unit cube;  Y (n, N) the standard normals they become
    lo, hi     (n, N)        limits of each coordinate given the ones before it, in its own standard deviations

Genz (1992): with x = m + L y the box is a sequence of intervals, and y_i = Phi^-1(d_i + u_i (e_i - d_i)) falls into it,
    lo_i = (a_i - m_i - sum_{j<i} L_ij y_j) / L_ii,   hi_i the same with b_i,   d_i = Phi(lo_i),  e_i = Phi(hi_i),
    P(a <= x <= b) = E prod_i (e_i - d_i)             over u uniform in the cube.
U is a scrambled Sobol net that is the same in every call, so the estimate is a smooth function of m and K, whose exact
derivative is found by going through the same sequence backwards. Products are sums of logarithms and upper tails are
reflected to the left, so that a probability of 1e-1000 has a logarithm.

One coordinate needs no points: its integrals are taken by Gauss-Legendre quadrature over the part of the interval that
carries mass, as offsets from the mode, where the closed forms (BOPT-HPO, Eq. 3.8) cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import log_ndtr, ndtr, ndtri, ndtri_exp
from farthing.numerics.linalg import backward
from farthing.numerics.normal import LOG_SQRT_2PI
from farthing.numerics.sobol import scrambled_net

Limits = Array | float

NET_SEED = 19_920_601  # any fixed number: the net must be the same in every call
NET_BITS = 30  # of each coordinate, SciPy's default
NET_BLOCK = 32  # nets are made, and cached, for multiples of this many dimensions
FAR = -35.0  # left of it, Phi leaves the range of a float and its logarithm is used instead
LEAST = 1e-300  # a positive float, so that there is a logarithm
NODES, WEIGHTS = (0.5 * (part + shift) for part, shift in zip(np.polynomial.legendre.leggauss(64), (1, 0), strict=True))
MASS = 38.0  # a density below exp(-38) of its mode is rounding


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance (k,) of truncated normals, and their derivatives by mean and variance before the cut."""

    mean: Array
    variance: Array
    mean_by_mean: Array
    mean_by_variance: Array
    variance_by_mean: Array
    variance_by_variance: Array


def interval_moments(mean: Array, variance: Array, lower: Limits, upper: Limits) -> Moments:
    """Moments of N(mean, variance) (k,), each cut to [lower, upper].

    >>> half = interval_moments(np.zeros(1), np.ones(1), 0.0, np.inf)
    >>> half.mean.round(6).tolist(), half.variance.round(6).tolist()  # sqrt(2 / pi) and 1 - 2 / pi
    ([0.797885], [0.36338])
    """
    sd = np.sqrt(variance)
    mode = np.clip(mean, lower, upper)
    centre = (mode - mean) / sd  # the mode in standard deviations from the mean
    reach = 2.0 * MASS / (np.abs(centre) + np.sqrt(centre * centre + 2.0 * MASS))
    left, right = np.maximum((lower - mode) / sd, -reach), np.minimum((upper - mode) / sd, reach)
    offset = left[:, None] + (right - left)[:, None] * NODES  # (k, nodes) from the mode
    density = WEIGHTS * np.exp(-offset * (centre[:, None] + 0.5 * offset))
    density /= density.sum(axis=1, keepdims=True)
    shift = np.einsum("ij,ij->i", density, offset)
    offset -= shift[:, None]
    squared = offset * offset
    second, third, fourth = (np.einsum("ij,ij->i", density, p) for p in (squared, squared * offset, squared * squared))
    # An exponential family in (x, x^2): derivatives of moments are covariances with its statistics.
    excess = centre + shift
    return Moments(
        np.clip(mode + sd * shift, lower, upper), variance * second,
        second, (third + 2.0 * excess * second) / (2.0 * sd),
        sd * third, 0.5 * (fourth - second * second + 2.0 * excess * third),
    )  # fmt: skip


def log_box_with_gradient(
    mean: Array, L: Array, lower: Array, upper: Array, U: Array
) -> tuple[float, Array, Array]:  # fmt: skip
    """log P with the points U, and the exact derivatives (n,) by the mean and (n, n), symmetric, by K = L L'."""
    points = genz_points(mean, L, lower, upper, U)
    value = log_mean(points.log_weights)
    share = np.exp(points.log_weights - value) / len(U)  # (N,) of each point in the sum
    diagonal = np.diag(L)
    # Derivatives by lo and hi of log(e - d), times the weight of the point, and of y.
    at_lo, at_hi = -0.5 * points.lo * points.lo, -0.5 * points.hi * points.hi
    weight_lo = -share * np.exp(at_lo - LOG_SQRT_2PI - points.log_widths)
    weight_hi = share * np.exp(at_hi - LOG_SQRT_2PI - points.log_widths)
    half = 0.5 * points.Y * points.Y
    y_lo, y_hi = (1.0 - U.T) * np.exp(at_lo + half), U.T * np.exp(at_hi + half)
    flow = np.empty_like(points.Y)  # minus d value / d (m_i + sum_j L_ij y_j)
    for i in range(len(mean) - 1, -1, -1):
        by_y = -(L[i + 1 :, i] @ flow[i + 1 :])
        weight_lo[i] += by_y * y_lo[i]
        weight_hi[i] += by_y * y_hi[i]
        flow[i] = (weight_lo[i] + weight_hi[i]) / diagonal[i]
    by_L = -np.tril(flow @ points.Y.T, -1)
    finite = np.where(np.isfinite(points.lo), points.lo, 0.0), np.where(np.isfinite(points.hi), points.hi, 0.0)
    stretch = np.einsum("ij,ij->i", weight_lo, finite[0]) + np.einsum("ij,ij->i", weight_hi, finite[1])
    by_L[np.diag_indices(len(mean))] = -stretch / diagonal
    return value, -flow.sum(axis=1), _through_cholesky(L, by_L)


def net(count: int, dimension: int) -> Array:
    """Fixed points (count, dimension), inside the open cube; count is a power of two."""
    blocks = max(-(-dimension // NET_BLOCK), 1)
    return _whole_net(count, blocks * NET_BLOCK)[:, :dimension]


@lru_cache(maxsize=8)
def _whole_net(count: int, dimension: int) -> Array:
    net = scrambled_net(count.bit_length() - 1, dimension, NET_BITS, NET_SEED)
    points = np.asfortranarray(net * 2.0**-NET_BITS + 2.0 ** -(NET_BITS + 1))  # genz_points reads columns
    points.flags.writeable = False
    return points


@dataclass(frozen=True, eq=False)
class GenzPoints:
    """Points in the box: Y, lo, hi and log(e - d), each (n, N), and the logarithms of their weights (N,)."""

    Y: Array
    lo: Array
    hi: Array
    log_widths: Array
    log_weights: Array


def genz_points(mean: Array, L: Array, lower: Array, upper: Array, U: Array) -> GenzPoints:
    """Genz's sequence for all points at once."""
    n, N = len(mean), len(U)
    Y, lo, hi, log_widths = (np.empty((n, N)) for _ in range(4))
    low, high = lower - mean, upper - mean
    for i in range(n):
        known = L[i, :i] @ Y[:i]
        lo[i] = (low[i] - known) / L[i, i]
        hi[i] = (high[i] - known) / L[i, i]
        log_widths[i], Y[i] = interval(lo[i], hi[i], U[:, i])
    return GenzPoints(Y, lo, hi, log_widths, log_widths.sum(axis=0))


def interval(lo: Array, hi: Array, u: Array) -> tuple[Array, Array]:
    """log(Phi(hi) - Phi(lo)) and the point at share u of that probability, from the left tail where it is smaller."""
    turned = lo > -hi
    a, b, v = np.where(turned, -hi, lo), np.where(turned, -lo, hi), np.where(turned, 1.0 - u, u)
    if b.min() > FAR:
        below = ndtr(a)
        width = np.maximum(ndtr(b) - below, LEAST)
        log_width, y = np.log(width), ndtri(np.maximum(below + v * width, LEAST))
    else:
        log_a, log_b = log_ndtr(a), log_ndtr(b)
        log_width = log_b + np.log1p(-np.exp(np.minimum(log_a - log_b, -1e-16)))
        y = ndtri_exp(np.logaddexp(log_a + np.log1p(-v), log_b + np.log(v)))
    return log_width, np.clip(np.where(turned, -y, y), lo, hi)


def log_mean(logs: Array) -> float:
    largest = float(logs.max())
    return largest + float(np.log(np.exp(logs - largest).mean()))


def _through_cholesky(L: Array, by_L: Array) -> Array:
    """The derivative by K = L L', symmetric, from the one by L (Murray 2016, arXiv 1602.07527, Eq. 10)."""
    inner = np.tril(L.T @ by_L)
    inner[np.diag_indices(len(L))] *= 0.5
    by_K = backward(L, backward(L, inner).T)
    return np.asarray(0.5 * (by_K + by_K.T))


def check_box(lower: Array, upper: Array) -> None:
    if not np.all(lower < upper):
        worst = int(np.argmin(np.asarray(lower < upper)))
        raise InvalidArgument(
            f"box: expected lower limits below upper ones, got [{lower[worst]}, {upper[worst]}] in coordinate {worst}"
        )


def least_probable_first(covariance: Array, lower: Array, upper: Array) -> list[int]:
    """An order of the coordinates: the next one is always that with the least probable interval, given those before it
    at their expected values (Gibson, Glasbey and Elston 1994)."""
    n = len(lower)
    left, order = list(range(n)), []
    columns = np.zeros((n, n))  # of the factor, in the rows of the original order
    known = np.zeros(n)
    spare = 1e-12 * np.diag(covariance)
    for i in range(n):
        rest = np.array(left)
        sd = np.sqrt(np.maximum(np.diag(covariance)[rest] - (columns[rest, :i] ** 2).sum(axis=1), spare[rest]))
        a, b = (lower[rest] - known[rest]) / sd, (upper[rest] - known[rest]) / sd
        best = int(np.argmin(interval(a, b, np.full(len(rest), 0.5))[0]))
        chosen = left.pop(best)
        order.append(chosen)
        columns[:, i] = (covariance[:, chosen] - columns[:, :i] @ columns[chosen, :i]) / sd[best]
        expected = interval_moments(np.zeros(1), np.ones(1), a[best : best + 1], b[best : best + 1]).mean[0]
        known += columns[:, i] * expected
    return order
