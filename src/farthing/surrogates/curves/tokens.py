"""What the network of `network.py` sees of a study: one token per configuration, begun or not.

The same as training/curves/tokens.py, which the weights were trained with; a test holds both together.

Symbols and shapes
    n, T       steps of a training that are known, and of a complete one; share = n / T
    running    running best of a curve: the value of a training that has come that far
    z          (value - best) / spread: 0 is the best value of the study, 1 about the median of its trainings
    u          asinh(20 z) / asinh(20): fine near the best, logarithmic far from it
    segments   of a curve end at fixed shares of its known steps; each shows its end, the running best there, and the
               mean of what was reported in it: the difference of both tells noise from progress
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints

SLOTS = 16  # columns that hyperparameters are put into
SHARES = np.array([0.04, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])  # of the known steps, where segments end
SHARP = 20.0
LOW, HIGH, BUCKETS = -1.6, 2.2, 128  # of u: beyond lie 9 spreads below the best and 80 above it
BELLS = 32  # bell-shaped functions of the last u, so that it can be told apart finely
OF_SEGMENT, FACTS = 5, 5
WIDTH = SLOTS + len(SHARES) * OF_SEGMENT + FACTS + BELLS
SMALLEST = 1e-9  # spread, in units of the best value, below which all values count as equal
LARGEST = 1e300  # spread: far from where the sums of values would overflow
LEAST_TIME = 1e-3  # of a training: earlier is no different to the network


def squash(z: Array) -> Array:
    """u (...) of scaled values z (...).

    >>> squash(np.array([0.0, 1.0, 1e9])).tolist()
    [0.0, 1.0, 2.2]
    """
    with np.errstate(over="ignore"):
        return np.clip(np.arcsinh(SHARP * z) / math.asinh(SHARP), LOW, HIGH)


def log_time(t: Array) -> Array:
    """About -1 to 1 for shares of a training from a thousandth to all of it."""
    return np.log(t + LEAST_TIME) / math.log(1e3) * 2.0 + 1.0


@dataclass(frozen=True)
class Scale:
    """From values to u: `best` is the least value of all trainings, `spread` about the distance of their median."""

    best: float
    spread: float

    @classmethod
    def of(cls, curves: Sequence[Array]) -> Scale:
        """From what begun trainings reported. The spread is at least a tenth of that of first values, which is what is
        left where all trainings have come equally far; 1 where all values are equal."""
        last = np.array([curve.min() for curve in curves])
        first = np.array([curve[0] for curve in curves])
        best = float(last.min())
        spread = max(_lower_median(last) - best, 0.1 * (_lower_median(first) - best))  # inf for values of 1e308
        return cls(best, min(spread, LARGEST) if spread > SMALLEST * max(abs(best), 1e-30) else 1.0)

    def z(self, values: Array) -> Array:
        """Scaled values (...). By halves, since the difference of two numbers may be no number any more."""
        with np.errstate(over="ignore"):
            return np.asarray((0.5 * values - 0.5 * self.best) / (0.5 * self.spread))

    def u(self, values: Array) -> Array:
        return squash(self.z(values))


def _lower_median(values: Array) -> float:
    """The lower one of two, as PyTorch has it."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def slots(X: Array, groups: Ints) -> Array:
    """Features X (m, f) of configurations as columns (m, SLOTS) that are centred: 0 is the middle, or absent.

    With more features than slots, several share one, each with its own sign: then different configurations still
    differ, however many hyperparameters there are, though the network cannot tell which of them it was.
    """
    m, f = X.shape
    width = np.bincount(groups)[groups]  # of the parameter that a feature belongs to
    several = width > 1
    centre = np.where(several, 1.0 / (width * math.sqrt(2.0)), 0.5)
    centred = 2.0 * (X - centre)
    if f <= SLOTS:
        return np.concatenate([centred, np.zeros((m, SLOTS - f))], axis=1)
    place, turn = np.arange(f) % SLOTS, np.arange(f) // SLOTS
    sign = np.where((turn * (place + 1)) % 2, -1.0, 1.0)
    mixing = np.zeros((f, SLOTS))
    mixing[np.arange(f), place] = sign / np.sqrt(np.bincount(place, minlength=SLOTS)[place])
    return np.asarray(centred @ mixing)


def of_begun(x: Array, curves: Sequence[Array], T: int, scale: Scale) -> Array:
    """Tokens (m, WIDTH) of trainings that were begun: x (m, SLOTS), what each reported, at least one value each."""
    n = np.array([len(curve) for curve in curves])
    offset = np.concatenate([[0], np.cumsum(n)[:-1]])
    running = np.concatenate([np.minimum.accumulate(curve) for curve in curves])
    ends = np.maximum(np.ceil(SHARES * n[:, None] - 1e-4), 1.0).astype(np.intp)  # (m, S)
    before = np.concatenate([np.zeros((len(n), 1), dtype=np.intp), ends[:, :-1]], axis=1)
    # Each segment is summed for itself: differences of running sums would carry what one diverged into all others.
    z = np.append(scale.z(np.concatenate(curves)), 0.0)
    with np.errstate(over="ignore"):
        total = np.add.reduceat(z, (offset[:, None] + before).ravel()).reshape(before.shape)
    mean = total / np.maximum(ends - before, 1)
    at_end = running[offset[:, None] + ends - 1]
    t = ends / T
    parts = np.stack([np.ones_like(t), t, log_time(t), scale.u(at_end), squash(mean)], axis=-1)
    segments = np.where((ends > before)[..., None], parts, 0.0).reshape(len(n), -1)
    u = scale.u(at_end[:, -1])
    middles = np.linspace(LOW, HIGH, BELLS)
    bells = np.exp(-0.5 * ((u[:, None] - middles) / ((HIGH - LOW) / BELLS)) ** 2)
    return np.concatenate([x, segments, _facts(np.ones(len(n)), n / T, T, len(n)), bells], axis=1)


def of_new(x: Array, T: int, begun: int) -> Array:
    """Tokens (m, WIDTH) of configurations that were not begun, in a study with so many that were."""
    zeros = np.zeros(len(x))
    rest = np.zeros((len(x), len(SHARES) * OF_SEGMENT)), np.zeros((len(x), BELLS))
    return np.concatenate([x, rest[0], _facts(zeros, zeros, T, begun), rest[1]], axis=1)


def _facts(is_begun: Array, share: Array, T: int, begun: int) -> Array:
    of_study = np.broadcast_to([math.log(T) / 7.0, math.log1p(begun) / 6.0], (len(share), 2))
    return np.concatenate([np.stack([is_begun, share, log_time(share)], axis=1), of_study], axis=1)


def of_times(t: Array, share: Array, T: int) -> Array:
    """Features (..., 6) of times t that are asked for, as shares, of trainings that have come as far as `share`."""
    early = log_time(t)
    return np.stack(
        [t, early, t - share, early - log_time(share), np.log(t * T) / 7.0, np.full_like(t, math.log(T) / 7.0)], axis=-1
    )
