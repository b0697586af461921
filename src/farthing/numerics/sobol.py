"""Scrambled Sobol nets, the same as SciPy's to the last bit, without the third of a second that importing
`scipy.stats` takes: the first suggestion of every study would pay for it.

Symbols and shapes
    d, bits       dimensions, and binary digits of each coordinate
    v  (d, bits)  direction numbers; point i is the exclusive or of those at the ones of the Gray code of i
    M  (d, bits, bits)  random lower triangular binary matrices, their diagonals ones, which scramble v (Matousek 1998)

The direction numbers are those of Joe and Kuo (2008). Those of the first dimensions, enough for nearly all studies, are
written out here. SciPy has 21,201 in a file of its own, which is read without the package around it if more are needed;
where it is not found, SciPy is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from farthing.numerics.late_scipy import imported

Unsigned = NDArray[np.uint32]

# The polynomial and the first direction numbers of dimensions 2, 3, ...; all those of dimension 1 are ones.
FIRST = (
    (3, 1), (7, 1, 3), (11, 1, 3, 1), (13, 1, 1, 1), (19, 1, 1, 3, 3), (25, 1, 3, 5, 13), (37, 1, 1, 5, 5, 17),
    (41, 1, 1, 5, 5, 5), (47, 1, 1, 7, 11, 19), (55, 1, 1, 5, 1, 1), (59, 1, 1, 1, 3, 11), (61, 1, 3, 5, 5, 31),
    (67, 1, 3, 3, 9, 7, 49), (91, 1, 1, 1, 15, 21, 21), (97, 1, 3, 1, 13, 27, 49), (103, 1, 1, 1, 15, 7, 5),
    (109, 1, 3, 1, 15, 13, 25), (115, 1, 1, 5, 5, 19, 61), (131, 1, 3, 7, 11, 23, 15, 103),
    (137, 1, 3, 7, 13, 13, 15, 69), (143, 1, 1, 3, 13, 7, 35, 63), (145, 1, 3, 5, 9, 1, 25, 53),
    (157, 1, 3, 1, 13, 9, 35, 107), (167, 1, 3, 1, 5, 27, 61, 31), (171, 1, 1, 5, 11, 19, 41, 61),
    (185, 1, 3, 5, 3, 3, 13, 69), (191, 1, 1, 7, 13, 1, 19, 1), (193, 1, 3, 7, 5, 13, 19, 59),
    (203, 1, 1, 3, 9, 25, 29, 41), (211, 1, 3, 5, 13, 23, 1, 55), (213, 1, 3, 7, 3, 13, 59, 17),
    (229, 1, 3, 1, 3, 5, 53, 69),
)  # fmt: skip
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
    points = imported("scipy.stats.qmc").Sobol(dimension, scramble=True, bits=bits, rng=rng).random_base2(log2_count)
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


def _first_numbers(dimension: int) -> Sequence[tuple[int, ...]] | None:
    """As `FIRST`, up to a dimension."""
    if dimension <= len(FIRST) + 1:
        return FIRST[: dimension - 1]
    table = _table()
    if table is None:
        return None
    polynomials, first = (column[1:dimension].tolist() for column in table)
    return [(p, *row[: p.bit_length() - 1]) for p, row in zip(polynomials, first, strict=True)]


def _directions(dimension: int, bits: int) -> Unsigned | None:
    """v before it is scrambled: each polynomial of degree m continues its first m numbers by a recurrence."""
    known = _first_numbers(dimension)
    if known is None:
        return None
    v = np.ones((dimension, bits), dtype=np.uint64)
    for j, (p, *row) in enumerate(known, start=1):
        m = len(row)
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
