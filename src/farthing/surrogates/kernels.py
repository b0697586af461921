"""The Matern-5/2 kernel as a function of squared scaled distances.

Symbols: A (m, f), B (n, f) inputs divided by their length-scales; s = r^2 (m, n) squared distances.
    k(s)  = (1 + sqrt(5) r + 5 s / 3) exp(-sqrt(5) r)
    k'(s) = -(5 / 6) (1 + sqrt(5) r) exp(-sqrt(5) r)          finite at s = 0, unlike dk/dr / r
Both derivatives we need are multiples of decay(s) = -2 k'(s):
    dk / da_j       = -decay (a_j - b_j)
    dk / d log l_j  =  decay (a_j - b_j)^2
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array


def matern52(s: Array) -> Array:
    """k(s), in the memory of s.

    >>> matern52(np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 0.524]
    """
    a = np.sqrt(5.0 * s)
    s *= 5.0 / 3.0
    s += a
    s += 1.0
    np.negative(a, out=a)
    s *= np.exp(a, out=a)
    return s


def matern52_with_decay(s: Array) -> tuple[Array, Array]:
    """k(s) and decay(s) = (5 / 3) (1 + sqrt(5) r) exp(-sqrt(5) r); k in the memory of s."""
    a = np.sqrt(5.0 * s)
    e = np.exp(-a)
    a += 1.0
    s *= 5.0 / 3.0
    s += a
    s *= e
    a *= e
    a *= 5.0 / 3.0
    return s, a
