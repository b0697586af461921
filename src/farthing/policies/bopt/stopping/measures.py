"""What stopping rules measure on a training curve, as of each step: Prechelt's measures, real improvement, elbows.

Prechelt's GL and P_k are ratios of errors and need positive values. While the best value so far is zero or less, they
are computed as if a constant had been added to all values that makes the best one as large as their range so far: a
loss of 5 % is then 5 % of that range.

An improvement is real once it is REAL times the largest rise so far, where values above the first count as the first. A
plateau at the start, flat or noisy, has none.

Symbols as in `stopping/__init__.py`; everything said of step t is computed from the steps up to t alone.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from farthing.numerics.arrays import Array, Ints, Mask

STRIP = 5  # Prechelt's k
REAL = 3.0  # times the largest rise: as three standard deviations, if rises are noise
BLOCK = 1 << 16  # numbers at once in the search for elbows: half a megabyte, which stays in the cache


# -- Prechelt's measures, as of each step ------------------------------------------------------------------------------


def generalization_loss(values: Array) -> Array:
    """GL = 100 (E / E_opt - 1): how far, in percent, the value is above the best so far (k,).

    >>> generalization_loss(np.array([4.0, 2.0, 3.0])).tolist()
    [0.0, 0.0, 50.0]
    """
    best = np.minimum.accumulate(values)
    return _ratio(100.0 * (values - best), best + _shift(values), 0.0)


def training_progress(values: Array, strip: int = STRIP) -> Array:
    """P_k = 1000 (sum_strip E / (k min_strip E) - 1) over the last k = `strip` steps (k,); 0 while there are fewer.

    Prechelt measures at the end of every strip; here the strip slides, so that a period can end at any step.

    >>> training_progress(np.array([3.0, 1.0, 1.0]), strip=2).tolist()
    [0.0, 1000.0, 0.0]
    """
    progress = np.zeros(len(values))
    if len(values) >= strip:
        strips = sliding_window_view(values, strip)  # (k - strip + 1, strip)
        least = strips.min(axis=1)
        above = 1000.0 * (strips - least[:, None]).mean(axis=1)
        progress[strip - 1 :] = _ratio(above, least + _shift(values)[strip - 1 :], 0.0)
    return progress


def progress_quotient(loss: Array, progress: Array) -> Array:
    """PQ = GL / P_k (k,): 0 where nothing is lost, infinite where something is and nothing moves."""
    return np.where(loss > 0.0, _ratio(loss, progress, np.inf), 0.0)


def successive_rises(values: Array, strip: int = STRIP) -> Ints:
    """How many strips in a row ended higher than the one before (k,): UP_s stops where this reaches s.

    >>> successive_rises(np.array([1.0, 1.0, 2.0, 3.0, 0.0, 1.0]), strip=2).tolist()
    [0, 0, 0, 1, 1, 0]
    """
    ends = values[strip - 1 :: strip]
    rising = np.zeros(len(ends), dtype=bool)
    rising[1:] = ends[1:] > ends[:-1]
    number = np.arange(1, len(ends) + 1)
    in_a_row = number - np.maximum.accumulate(np.where(rising, 0, number))
    return np.concatenate(([0], in_a_row))[np.arange(1, len(values) + 1) // strip]


def _shift(values: Array) -> Array:
    """What ratios add to every value as of each step (k,): nothing while all are positive."""
    best = np.minimum.accumulate(values)
    return np.where(best > 0.0, 0.0, np.maximum.accumulate(values) - 2.0 * best)


def _ratio(a: Array, b: Array, otherwise: float) -> Array:
    return np.asarray(np.divide(a, b, out=np.full(len(a), otherwise), where=b > 0.0))


# -- what counts as an improvement -------------------------------------------------------------------------------------


def real_improvement(values: Array) -> Mask:
    """Whether the improvement so far is more than noise (k,).

    >>> real_improvement(np.array([9.0, 9.5, 9.0, 8.0, 8.3, 8.2])).tolist()
    [False, False, False, True, True, True]
    """
    clipped = np.minimum(values, values[0])
    rise = np.maximum.accumulate(np.diff(clipped, prepend=clipped[0]))
    gain = values[0] - np.minimum.accumulate(values)
    return np.asarray((gain > 0.0) & (gain >= REAL * rise))


# -- where a falling curve begins and bends ----------------------------------------------------------------------------


def fall_begins(m: Array, flat: float) -> Ints:
    """The last place, from 0, at which the falling curve m had gained at most a share of what it has by each step (k,).

    >>> fall_begins(np.array([9.0, 9.0, 9.0, 5.0, 1.0]), 0.05).tolist()
    [0, 1, 2, 2, 2]
    """
    gain = m[0] - m
    places = np.searchsorted(gain, flat * gain, side="right") - 1
    return np.asarray(np.minimum(places, np.arange(len(m))))


def elbows(m: Array, s: Ints, t: Ints) -> Ints:
    """The places, from 0, where the falling curve m (k,) is farthest below its chords from s (n,) to t (n,).

    >>> elbows(np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.25]), np.array([0, 0]), np.array([2, 5])).tolist()
    [1, 2]
    """
    found = np.empty(len(t), dtype=np.intp)
    rows = max(1, BLOCK // len(m))
    for first in range(0, len(t), rows):
        a, b = s[first : first + rows, None], t[first : first + rows, None]
        i = np.arange(b.max() + 1)
        below = (m[a] - m[i]) / (m[a] - m[b]) - (i - a) / (b - a)  # (rows, i), of the chord
        found[first : first + rows] = np.where((i >= a) & (i <= b), below, -np.inf).argmax(axis=1)
    return found
