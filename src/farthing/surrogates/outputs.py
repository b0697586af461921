"""A robust, monotone rescaling of outputs before they reach a Gaussian process.

Symbols: y (n,) values to minimise; z = (y - median) / spread; power the exponent of Yeo and Johnson (2000):

    z >= 0:   ((1 + z)^power - 1) / power                       log(1 + z) at power 0
    z <  0:  -((1 - z)^(2 - power) - 1) / (2 - power)          -log(1 - z) at power 2

The power is the one under which the values look most like a normal sample (largest likelihood over a grid). A power of
1 leaves values as they are. Lower powers shorten a long upper tail, so that one diverged run at 1e9 ends up near the
rest instead of making all others look equal, and stretch the lower end, where the search for a minimum needs
resolution. The order of values is kept. `spread` is the median distance below the median, the side that matters when
minimising. A value that occurs often counts once: otherwise a search that has found a plateau (an accuracy takes few
different values) would look closer and closer at it, and at nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array

POWERS = np.linspace(-1.0, 2.0, 31)  # from a strongly shortened upper tail to a lengthened one
LARGEST = 1e40  # of |z|: the square of its cube is still a float


@dataclass(frozen=True)
class Warp:
    """The map from values to what the surrogate sees, and back."""

    median: float
    spread: float
    power: float

    @classmethod
    def of(cls, y: Array) -> Warp:
        """The warp that fits some values.

        >>> y = np.array([1.0, 2.0, 3.0, 4.0, 1e9])
        >>> Warp.of(y)(y).round(2).tolist()
        [-2.48, -0.94, 0.0, 0.49, 4.91]
        """
        y = np.unique(np.asarray(y, dtype=np.float64))
        median = 2.0 * float(np.median(0.5 * y))  # halves, so that no sum overflows
        spread = _spread(y, median)
        return cls(median, spread, _most_normal(_scaled(y, median, spread)))

    def __call__(self, y: Array) -> Array:
        return _yeo_johnson(_scaled(y, self.median, self.spread), self.power)

    def inverse(self, warped: Array) -> Array:
        """Values from warped ones; beyond the range of the warp, its end."""
        above = _undo(np.maximum(warped, 0.0), self.power)
        below = _undo(np.maximum(-warped, 0.0), 2.0 - self.power)
        with np.errstate(over="ignore"):
            y = self.median + self.spread * (above - below)
        return np.asarray(np.clip(y, -np.finfo(float).max, np.finfo(float).max))


@dataclass(frozen=True)
class Scale:
    """The affine map to mean 0 and standard deviation 1, which keeps expected improvement in the values' own units up
    to a factor. Nothing limits diverged runs."""

    centre: float
    spread: float

    @classmethod
    def of(cls, y: Array) -> Scale:
        """The scale of some values.

        >>> Scale.of(np.array([1.0, 3.0]))(np.array([1.0, 2.0])).tolist()
        [-1.0, 0.0]
        """
        unit = float(np.max(np.abs(y), initial=0.0)) or 1.0  # divided by first, so that nothing overflows
        centre, spread = unit * float(np.mean(y / unit)), unit * float(np.std(y / unit))
        return cls(centre, spread if spread > 1e-12 * unit else unit)

    def __call__(self, y: Array) -> Array:
        return _scaled(y, self.centre, self.spread)

    def inverse(self, scaled: Array) -> Array:
        """Values from scaled ones; beyond the range of floats, its end."""
        with np.errstate(over="ignore"):
            y = self.centre + self.spread * scaled
        return np.asarray(np.clip(y, -np.finfo(float).max, np.finfo(float).max))


def _scaled(y: Array, median: float, spread: float) -> Array:
    with np.errstate(over="ignore"):
        return np.clip(y / spread - median / spread, -LARGEST, LARGEST)


def _spread(y: Array, median: float) -> float:
    """Median distance to the median of the values below it; else of all others; else their size; else 1."""
    half = 0.5 * y - 0.5 * median  # the difference itself may overflow
    floats = np.finfo(float)
    for distances in (-half[half < 0.0], np.abs(half)[half != 0.0], 0.5 * np.abs(y[y != 0.0])):
        if len(distances):
            return min(max(2.0 * float(np.median(distances)), float(floats.tiny)), float(floats.max))
    return 1.0


def _yeo_johnson(z: Array, power: float | Array) -> Array:
    """Both branches at once, each through log(1 + |z|)."""
    exponent = np.where(z >= 0.0, power, 2.0 - power)
    logs = np.log1p(np.abs(z))
    flat = np.abs(exponent) < 1e-9
    stretched = np.expm1(exponent * logs) / np.where(flat, 1.0, exponent)
    return np.asarray(np.sign(z) * np.where(flat, logs, stretched))


def _undo(t: Array, exponent: float) -> Array:
    """z >= 0 from its warped t >= 0."""
    if abs(exponent) < 1e-9:
        return np.minimum(np.expm1(np.minimum(t, 200.0)), LARGEST)
    inside = np.maximum(1.0 + exponent * t, 1e-300)
    return np.minimum(np.expm1(np.minimum(np.log(inside) / exponent, 200.0)), LARGEST)


def _most_normal(z: Array) -> float:
    """The power of largest normal likelihood, Yeo and Johnson's Eq. (3.1); 1 if there are too few different values."""
    if len(z) < 3 or np.all(z == z[0]):
        return 1.0
    warped = _yeo_johnson(z, POWERS[:, None])  # (powers, n)
    spread = warped.std(axis=1)
    jacobian = (POWERS - 1.0) * float(np.sum(np.sign(z) * np.log1p(np.abs(z))))
    likelihood = np.where(spread > 0.0, -len(z) * np.log(np.maximum(spread, 1e-300)) + jacobian, -np.inf)
    return float(POWERS[int(np.argmax(likelihood))])
