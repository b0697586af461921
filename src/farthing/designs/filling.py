"""Points that fill the unit cube evenly: scrambled Sobol sequences.

One scrambled net per dimension is made once, and each draw adds a random digital shift (an exclusive or of the binary
digits, Owen 1998), which keeps the net's structure and makes every point uniform in the cube.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.sobol import Unsigned, scrambled_net

BITS = 30  # of each coordinate, SciPy's default
NET_SEED = 20_231_031  # any fixed number: the shift of each draw is what is random
LARGEST_DIMENSION = 21_201  # of the direction numbers SciPy ships


@lru_cache(maxsize=32)
def _net(log2_count: int, dimension: int) -> Unsigned:
    net = scrambled_net(log2_count, dimension, BITS, NET_SEED)
    net.flags.writeable = False
    return net


def sobol(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """The first `count` points (count, dimension) of a randomly shifted scrambled Sobol sequence.

    >>> points = sobol(4, 2, np.random.default_rng(0))
    >>> sorted((points[:, 0] * 4).astype(int).tolist())  # one in each quarter
    [0, 1, 2, 3]
    """
    if dimension == 0 or count == 0:
        return np.empty((count, dimension))
    if dimension > LARGEST_DIMENSION:
        return rng.random((count, dimension))
    net = _net(max(count - 1, 0).bit_length(), dimension)[:count]
    shift = rng.integers(0, 2**BITS, size=dimension, dtype=np.uint32)
    return np.asarray(((net ^ shift) + 0.5) / 2.0**BITS, dtype=np.float64)
