"""Functions of the standard normal that stay accurate where the textbook forms cancel or underflow.

Symbols: phi, Phi the density and distribution function; h(z) = phi(z) + z Phi(z), so that the expected
improvement of a normal with mean mu and standard deviation s over a target t is s h((t - mu) / s).

The left tail uses the continued fraction of the Mills ratio, with x = -z > 0:
    Phi(-x) / phi(x) = 1 / (x + q),     q = 1 / (x + 2 / (x + 3 / (x + ...)))
so that h(-x) = phi(x) (1 - x / (x + q)) = phi(x) q / (x + q) without a difference, and
(log h)'(-x) = Phi(-x) / h(-x) = 1 / q. The task is the one of Ament et al. 2023, "Unexpected improvements
to expected improvement" (arXiv 2310.20708, section 4.1); the fraction gives value and slope at once.
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import erfcx, ndtr

LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
SQRT_HALF = float(np.sqrt(0.5))
SQRT_HALF_PI = float(np.sqrt(np.pi / 2.0))

DIRECT_ABOVE = -1.0  # here the two terms of h do not cancel
FRACTION_BELOW = -12.0  # beyond, 1 - x * Mills has lost two digits and ten terms of the fraction are exact
FRACTION_DEPTH = 14  # terms


def log_h(z: Array) -> tuple[Array, Array]:
    """log h(z) and its derivative, for any finite z below 1e150.

    The error of the value is at most 1e-12 max(1, |log h|), that of the derivative 1e-9 relative
    (checked for z in [-1e6, 40]).

    >>> value, slope = log_h(np.array([-1e4, 0.0]))
    >>> value.round(4).tolist(), slope.round(4).tolist()
    ([-50000019.3396, -0.9189], [10000.0002, 1.2533])
    """
    z = np.asarray(z, dtype=np.float64)
    value, slope = _direct(np.maximum(z, DIRECT_ABOVE))
    left = z < DIRECT_ABOVE
    if left.any():
        value[left], slope[left] = _left(-z[left])
    return value, slope


def _direct(z: Array) -> tuple[Array, Array]:
    cdf = ndtr(z)
    h = np.exp(-0.5 * z * z - LOG_SQRT_2PI) + z * cdf
    return np.log(h), cdf / h


def _left(x: Array) -> tuple[Array, Array]:
    """The same for z = -x below DIRECT_ABOVE: log h = log phi + log(1 - x Mills)."""
    mills = SQRT_HALF_PI * erfcx(x * SQRT_HALF)
    share = 1.0 - x * mills
    slope = np.divide(mills, share, out=np.empty_like(x), where=share > 0.0)
    far = x > -FRACTION_BELOW
    if far.any():
        q = _fraction(x[far])
        share[far], slope[far] = q / (x[far] + q), 1.0 / q
    return -0.5 * x * x - LOG_SQRT_2PI + np.log(share), slope


def _fraction(x: Array) -> Array:
    """q(x) = 1 / (x + 2 / (x + 3 / (x + ...))), from the innermost term outwards."""
    tail = x
    for depth in range(FRACTION_DEPTH, 1, -1):
        tail = x + depth / tail
    return np.asarray(1.0 / tail)


def log_sum_exp(rows: Array) -> Array:
    """log of the sum of exp over each row (m, k): SciPy's has more overhead than the rest of a suggestion.

    >>> log_sum_exp(np.log(np.array([[1.0, 2.0, 3.0]]))).round(6).tolist()
    [1.791759]
    """
    if rows.shape[1] == 1:
        return rows[:, 0]
    largest = rows.max(axis=1)
    return np.asarray(largest + np.log(np.exp(rows - largest[:, None]).sum(axis=1)))
