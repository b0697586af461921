"""Nested Latin hypercubes (Qian 2009, Biometrika 96): a design of n points whose first m are a design of their own.

Symbols: m inner and n = t m outer points, p dimensions; cell (n, p) the cell, 0 .. n - 1, of each point.
In each dimension the n cells are m blocks of t. The inner points take one cell of every block, so that they are a Latin
hypercube on the m blocks. The others take the remaining cells, so that all points are one on the n cells.
"""

from __future__ import annotations

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array


def nested_latin_hypercube(n_inner: int, n_outer: int, p: int, rng: np.random.Generator) -> Array:
    """Points (n_outer, p) in [0, 1)^p, a Latin hypercube; the first n_inner of them are one too.

    >>> points = nested_latin_hypercube(2, 6, 3, np.random.default_rng(0))
    >>> np.sort((points * 6).astype(int), axis=0)[:, 0].tolist(), np.sort((points[:2] * 2).astype(int), axis=0).tolist()
    ([0, 1, 2, 3, 4, 5], [[0, 0, 0], [1, 1, 1]])
    """
    if n_inner < 1 or n_outer < n_inner or n_outer % n_inner:
        raise InvalidArgument(
            f"n_outer: expected a multiple of n_inner, itself at least 1, got {n_outer} and {n_inner}"
        )
    t = n_outer // n_inner
    inner = t * rng.permuted(np.tile(np.arange(n_inner), (p, 1)), axis=1) + rng.integers(t, size=(p, n_inner))
    free = np.ones((p, n_outer), dtype=np.bool_)
    np.put_along_axis(free, inner, False, axis=1)
    rest = rng.permuted(np.nonzero(free)[1].reshape(p, n_outer - n_inner), axis=1)
    cell = np.concatenate([inner, rest], axis=1).T
    return np.asarray(np.minimum((cell + rng.random((n_outer, p))) / n_outer, np.nextafter(1.0, 0.0)))
