"""Whole numbers between two bounds, evenly spaced or on a log scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from farthing.checks import settle, whole
from farthing.numerics.arrays import Array, Ints
from farthing.space.fields import EvenBins, When

MAX_LEVELS = 2**48  # the bins of more levels would come close to the resolution of a float in [0, 1]
MAX_LOG_LEVELS = 2**40  # fewer, because the top bins of a log scale are narrower than the others
MAX_INTEGER = 2**63  # what a 64-bit integer holds


@dataclass(frozen=True, eq=False, repr=False)
class Integer(EvenBins):
    """The integers low, low + step, ... up to high, which is included when a step lands on it.

    With `log=True` the bins are those of [low - step/2, high + step/2] on a log scale; where low - step/2 is
    below low/2, the scale starts at low/2, so that the bin of the lowest value does not take most of it.

    >>> Integer(1, 10, step=3)
    Integer(1, 10, step=3)
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    step: int = 1
    when: When | None = None

    def __post_init__(self) -> None:
        self._settle_log_and_when()
        for name in ("low", "high", "step"):
            settle(self, **{name: self._whole(name, getattr(self, name))})
        if self.low >= self.high:
            self._refuse("low", f"a whole number below high={self.high}", self.low)
        if not 1 <= self.step <= self.high - self.low:
            self._refuse("step", f"a whole number from 1 to high - low = {self.high - self.low}", self.step)
        if self.log and self.low <= 0:
            self._refuse("low", "a whole number above 0 for log=True", self.low)
        most = MAX_LOG_LEVELS if self.log else MAX_LEVELS
        if self.levels > most:
            scale = " with log=True" if self.log else ""
            self._refuse(
                "number of values", f"at most 2**{most.bit_length() - 1}{scale} (use a larger step)", self.levels
            )

    def _whole(self, name: str, given: object) -> int:
        number = whole(given)
        if number is None or abs(number) > MAX_INTEGER:
            self._refuse(name, "a whole number within ±2**63", given)
        return number

    @property
    def levels(self) -> int:
        """How many values there are."""
        return (self.high - self.low) // self.step + 1

    @property
    def accepted(self) -> str:
        """The accepted values, in words."""
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"an integer from {self.low} to {self.high}{steps}"

    def find(self, value: object) -> int | None:
        """The level of a value, or None if it is outside the range."""
        number = whole(value)
        if number is None or not self.low <= number <= self.high or (number - self.low) % self.step:
            return None
        return (number - self.low) // self.step

    def value(self, place: int) -> int:
        """The integer at a level."""
        return self.low + place * self.step

    def store(self, place: int) -> int:
        """The level in a JSON file: the integer itself."""
        return self.value(place)

    def load(self, stored: object) -> int | None:
        """The inverse of `store`, None if the file holds something else."""
        return self.find(stored)

    def unit(self, place: int) -> float:
        """The unit coordinate of a level: the centre of its bin."""
        return float(self.log_centres(place)) if self.log else super().unit(place)

    def units(self, places: Sequence[int]) -> Array:
        """Unit coordinates of levels."""
        return self.log_centres(np.array(places, dtype=np.intp)) if self.log else super().units(places)

    @cached_property
    def _scale(self) -> tuple[float, float, float]:
        """Step over low, and the ends of the log scale, all relative to low."""
        ratio = self.step / self.low
        return ratio, math.log1p(max(-ratio / 2, -0.5)), math.log1p((self.levels - 0.5) * ratio)

    def log_levels(self, u: Array) -> Ints:
        """Ints at unit coordinates on the log scale, by the distance from low in steps.

        >>> Integer(1, 1000, log=True).log_levels(np.array([0.0, 0.5, 1.0])).tolist()
        [0, 21, 999]
        """
        ratio, start, end = self._scale
        steps = np.floor(np.expm1(start + u * (end - start)) / ratio + 0.5)
        return np.clip(steps, 0, self.levels - 1).astype(np.intp)

    def log_centres(self, levels: Ints | int) -> Array:
        """Unit coordinates of levels on the log scale: the centres of their bins.

        >>> Integer(1, 1000, log=True).log_centres(np.array([0])).round(3).tolist()
        [0.072]
        """
        ratio, start, end = self._scale
        lower = np.log1p(np.maximum((levels - 0.5) * ratio, math.expm1(start)))
        upper = np.log1p((levels + 0.5) * ratio)
        return np.asarray(((lower + upper) / 2 - start) / (end - start), dtype=np.float64)
