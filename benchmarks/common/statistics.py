"""Bootstrap intervals. Draws are seeded, so that the same runs give the same page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENDS = (2.5, 97.5)  # percentiles of a 95 % interval


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def __format__(self, digits: str) -> str:
        """`f"{interval:.2f}"` is `0.56 [0.40, 0.71]`."""
        return f"{self.value:{digits}} [{self.low:{digits}}, {self.high:{digits}}]"

    def to(self, digits: str) -> str:
        """The ends alone: `0.40 to 0.71`."""
        return f"{self.low:{digits}} to {self.high:{digits}}"


def interval(value: float, draws: Array) -> Interval:
    """A number, and the interval of what it was in bootstrap samples (n,)."""
    low, high = np.percentile(draws, ENDS)
    return Interval(float(value), float(low), float(high))


def resampled(count: int, draws: int, *more: int, seed: int = 0) -> NDArray[np.int64]:
    """Indices below `count`, drawn with replacement: (draws, *more, count)."""
    return np.random.default_rng(seed).integers(count, size=(draws, *more, count))


def resampled_interval(cells: Array, draws: int, statistic: Any = np.mean) -> Interval:
    """A statistic of cells (n,), and its interval over bootstrap samples of them."""
    return interval(float(statistic(cells)), statistic(cells[resampled(len(cells), draws)], axis=1))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def less(ratio: float) -> str:
    """A ratio in words: `44 % less`, or `8 % more`."""
    return f"{percent(1.0 - ratio)} less" if ratio <= 1.0 else f"{percent(ratio - 1.0)} more"
