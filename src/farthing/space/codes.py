"""How a model sees a `Choice` of thousands of options: by a code of fixed width instead of one column per option.

Symbols and shapes
    level  (n,)      the index of the option in each row
    word   (n, w)    64 mixed bits each; those of different levels are unrelated, and the first is never shared
    code   (n, COLUMNS)  the bits as +-1 / sqrt(2 COLUMNS): every code has length 1 / sqrt(2)

Codes of different options are almost orthogonal: their squared distance is 1, give or take 1 / sqrt(COLUMNS), that is 9
per cent. So the kernel is nearly the one of one column per option, whose distances are all 1: exchangeable between
options, and still positive definite, since these are points in a Euclidean space (Johnson and Lindenstrauss 1984). A
row takes one kilobyte however many options there are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.numerics.arrays import Array, Ints

COLUMNS = 128  # of a code: with twice as many distances vary by 6 per cent instead of 9, and an ask takes twice as long
SIZE = 1.0 / 16.0  # of each entry, 1 / sqrt(2 COLUMNS): a power of 2, so that equal options are at distance 0 exactly

Words = NDArray[np.uint64]
STEP = np.uint64(0x9E3779B97F4A7C15)  # constants of SplitMix64 (Steele, Lea and Flood 2014)
FACTORS = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def _words(levels: Ints) -> Words:
    """The words (n, w) of levels (n,): numbers w level, w level + 1, ... of SplitMix64, a bijection of 64 bits."""
    per_code = COLUMNS // 64
    number = levels.astype(np.uint64)[:, None] * np.uint64(per_code) + np.arange(1, per_code + 1, dtype=np.uint64)
    mixed = np.asarray(number * STEP, dtype=np.uint64)
    for shift, factor in FACTORS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    return mixed ^ (mixed >> np.uint64(31))


def codes(levels: Ints) -> Array:
    """The codes (n, COLUMNS) of levels (n,).

    >>> a, b, c = codes(np.array([7, 7, 99_999]))
    >>> float((a - b) @ (a - b)), float((a - c) @ (a - c))
    (0.0, 0.96875)
    """
    bits = np.unpackbits(_words(levels).astype("<u8").view(np.uint8), axis=1)  # bytes in one order on every machine
    return np.where(bits, SIZE, -SIZE)


def levels_of(coded: Array, levels: int) -> Ints:
    """The way back: which of `levels` options has each code (n, COLUMNS); any, where none has.

    >>> levels_of(codes(np.array([5, 99_999])), 100_000).tolist()
    [5, 99999]
    """
    first = np.packbits(coded[:, :64] > 0.0, axis=1).view("<u8")[:, 0]
    words, order = _sorted_first_words(levels)
    return order[np.minimum(np.searchsorted(words, first), levels - 1)]


@lru_cache(maxsize=8)
def _sorted_first_words(levels: int) -> tuple[Words, Ints]:
    words = _words(np.arange(levels))[:, 0]
    order = np.argsort(words)
    return words[order], order
