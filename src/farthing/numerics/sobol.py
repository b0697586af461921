"""Scrambled Sobol nets, the same as SciPy's to the last bit, without the third of a second that importing
`scipy.stats` takes: the first suggestion of every study would pay for it.

Symbols and shapes
    d, bits       dimensions, and binary digits of each coordinate
    v  (d, bits)  direction numbers; point i is the exclusive or of those at the ones of the Gray code of i
    M  (d, bits, bits)  random lower triangular binary matrices, their diagonals ones, which scramble v (Matousek 1998)

The direction numbers are those of Joe and Kuo (2008) for 21,201 dimensions. SciPy has them in a file of its own, which
is read without the package around it; where it is not found, SciPy is asked.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Unsigned = NDArray[np.uint32]

TABLE = Path("stats") / "_sobol_direction_numbers.npz"  # in SciPy's folder


def scrambled_net(log2_count: int, dimension: int, bits: int, seed: int) -> Unsigned:
    """The first 2^log2_count points (n, dimension) of a scrambled sequence, as whole numbers below 2^bits.

    >>> net = scrambled_net(2, 2, 30, 0)
    >>> sorted((net[:, 0] >> 28).tolist())  # one in each quarter
    [0, 1, 2, 3]
    """
    directions = _directions(dimension, bits)
    generator = np.random.default_rng(seed)
    if directions is None:
        return _net_of_scipy(log2_count, dimension, bits, generator)
    rng = generator.spawn(1)[0]  # as SciPy does
    powers = np.uint32(2) ** np.arange(bits, dtype=np.uint32)
    shift = np.dot(rng.integers(2, size=(dimension, bits), dtype=np.uint32), powers)
    M = np.tril(rng.integers(2, size=(dimension, bits, bits), dtype=np.uint32))
    M[:, range(bits), range(bits)] = 1
    return _points(_scrambled(directions, M), shift, log2_count)


def _net_of_scipy(log2_count: int, dimension: int, bits: int, rng: np.random.Generator) -> Unsigned:
    from scipy.stats.qmc import Sobol  # slow to import

    points = Sobol(dimension, scramble=True, bits=bits, rng=rng).random_base2(log2_count)
    return np.asarray(points * 2.0**bits).astype(np.uint32)


@cache
def _table() -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Polynomials (21201,) and first direction numbers (21201, 18); None where SciPy has no such file."""
    package = find_spec("scipy")
    if package is None or package.origin is None:
        return None
    try:
        with np.load(Path(package.origin).parent / TABLE) as table:
            return table["poly"], table["vinit"]
    except (OSError, KeyError, ValueError):
        return None


def _directions(dimension: int, bits: int) -> Unsigned | None:
    """v before it is scrambled: each polynomial of degree m continues its first m numbers by a recurrence."""
    table = _table()
    if table is None:
        return None
    polynomials, first = table
    v = np.ones((dimension, bits), dtype=np.uint64)
    for j in range(1, dimension):
        p = int(polynomials[j])
        m = p.bit_length() - 1
        row = [int(number) for number in first[j, :m]]
        for i in range(m, bits):
            number = row[i - m]
            for k in range(m):
                if p >> (m - 1 - k) & 1:
                    number ^= row[i - k - 1] << (k + 1)
            row.append(number)
        v[j] = row[:bits]
    return (v << np.arange(bits, dtype=np.uint64)[::-1]).astype(np.uint32)


def _scrambled(v: Unsigned, M: Unsigned) -> Unsigned:
    """M times the binary digits of v, the highest first, modulo 2."""
    bits = v.shape[1]
    places = np.arange(bits, dtype=np.uint32)[::-1]
    digits = v[:, :, None] >> places & np.uint32(1)  # (d, bits, bits): of each number, highest first
    product = np.einsum("dpk,djk->djp", M, digits) & np.uint32(1)
    return np.asarray((product << places).sum(axis=2, dtype=np.uint32))


def _points(v: Unsigned, shift: Unsigned, log2_count: int) -> Unsigned:
    """Each point differs from the one before by the direction number of the lowest zero of its index."""
    before = np.arange(2**log2_count - 1, dtype=np.uint32)
    lowest_zero = np.log2(~before & (before + np.uint32(1))).astype(np.intp)
    steps = np.concatenate([shift[None, :], v.T[lowest_zero]])
    return np.asarray(np.bitwise_xor.accumulate(steps, axis=0))
