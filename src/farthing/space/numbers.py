"""Parameters that are numbers between two bounds: `Real`, whose unit coordinate is turned into a value and back without
loss, and `Integer`, evenly spaced or on a log scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from farthing.checks import finite, settle, whole
from farthing.numerics.arrays import Array, Ints
from farthing.space.fields import EvenBins, ParameterFields, When

MAX_REAL = 1e308  # a little below the largest float, so that rounding a value to some digits cannot overflow


@dataclass(frozen=True, eq=False, repr=False)
class Real(ParameterFields):
    """A real number between two bounds, both included; `log=True` spreads it evenly over magnitudes.

    Values that Farthing proposes are rounded to 11 or 12 digits of the range, so that translating one to the
    unit interval and back gives exactly the same float.

    >>> Real(1e-5, 1e-1, log=True)
    Real(1e-05, 0.1, log=True)
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    when: When | None = None

    def __post_init__(self) -> None:
        self._settle_log_and_when()
        low, high = self._bound("low", self.low), self._bound("high", self.high)
        if low >= high:
            self._refuse("low", f"a number below high={self.high}", self.low)
        if self.log and low <= 0:
            self._refuse("low", "a number above 0 for log=True", self.low)
        settle(self, low=low, high=high)

    def _bound(self, name: str, given: object) -> float:
        bound = finite(given)
        if bound is None or abs(bound) > MAX_REAL:
            self._refuse(name, f"a finite number within ±{MAX_REAL:g}", given)
        return bound

    levels = None

    @property
    def accepted(self) -> str:
        """The accepted values, in words."""
        return f"a number from {self.low!r} to {self.high!r}"

    def find(self, value: object) -> float | None:
        """The place of a value, or None if it is outside the range."""
        if type(value) is float:
            return value + 0.0 if self.low <= value <= self.high else None  # -0.0 becomes 0.0
        number = finite(value)
        return number if number is not None and self.low <= number <= self.high else None

    def value(self, place: float) -> float:
        """The value at a place: for a Real they are the same."""
        return place

    def store(self, place: float) -> float:
        """The place in a JSON file."""
        return place

    def load(self, stored: object) -> float | None:
        """The inverse of `store`, None if the file holds something else."""
        return self.find(stored)

    def unit(self, place: float) -> float:
        """The unit coordinate of a value.

        >>> Real(1, 100, log=True).unit(10.0)
        0.5
        """
        return min(max(self.beyond(place), 0.0), 1.0)

    def beyond(self, number: float) -> float:
        """The unit coordinate that any number would have, below 0 or above 1 outside of the range; above 0 for a log
        scale.

        >>> round(Real(1, 100, log=True).beyond(1000.0), 9)
        1.5
        """
        start, end = self._ends
        return (self._scaled(number) - start) / (end - start)

    def units(self, places: Sequence[float]) -> Array:
        """Unit coordinates of values.

        >>> Real(1, 100, log=True).units([1.0, 10.0]).tolist()
        [0.0, 0.5]
        """
        return np.array([self.unit(place) for place in places], dtype=np.float64)

    def places(self, u: Array) -> list[float]:
        """Values at unit coordinates, rounded so that `units` leads back to exactly them.

        >>> Real(1, 100, log=True).places(np.array([0.0, 0.5, 0.6]))
        [1.0, 10.0, 15.848931925]
        """
        start, end = self._ends
        v = start + u * (end - start)
        if self._wide:
            v = np.exp(v)
        elif self.log:
            v = self.low + self.low * np.expm1(v)
        else:
            v = self._shrink * v
        return [self._tidy(number) for number in v.tolist()]

    def _scaled(self, number: float) -> float:
        """A value on the scale that the unit coordinate divides evenly."""
        if self._wide:
            return float(np.log(number))
        if self.log:
            return float(np.log1p((number - self.low) / self.low))
        return number / self._shrink

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self._scaled(self.low), self._scaled(self.high)

    @cached_property
    def _wide(self) -> bool:
        """Whether the log scale is long enough for log() itself; a short one needs log1p of the distance."""
        return self.log and self.high >= 2 * self.low

    @cached_property
    def _shrink(self) -> float:
        """A power of two that keeps the width of a huge range finite."""
        return 1.0 if math.isfinite(self.high - self.low) else 4.0

    @cached_property
    def _decimals(self) -> int:
        """Decimals that resolve a range to between 1e-13 and 1e-12 of its width.

        A round trip to u loses about 4e-16 of max(|low|, |high|). That is far below this grid unless the
        range is narrow, and then the distance from low is exact, so nothing is lost that a float could hold.
        """
        width = self.high / self._shrink - self.low / self._shrink
        return 12 - math.floor(math.log10(width) + math.log10(self._shrink))

    @cached_property
    def _cuts(self) -> tuple[float, float]:
        """Rounded values beyond these become the bounds: u cannot distinguish an odd bound from its neighbour."""
        if self._wide:
            low, high = (float(f"0.75e{math.floor(math.log10(end)) - 10}") for end in (self.low, self.high))
        else:
            low = high = float(f"0.75e{-self._decimals}")
        return self.low + low, self.high - high

    def _tidy(self, number: float) -> float:
        # Logs of numbers up to 1e308 lose at most 3e-13 of the number; 11 digits resolve 1e-11 of it.
        rounded = float(f"{number:.10e}") if self._wide else round(number, self._decimals)
        low_cut, high_cut = self._cuts
        if rounded <= low_cut:
            return self.low
        return self.high if rounded >= high_cut else rounded + 0.0


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
        number = value if type(value) is int else whole(value)
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

    def units(self, places: Sequence[int] | Ints) -> Array:
        """Unit coordinates of levels."""
        return self.log_centres(np.array(places, dtype=np.intp)) if self.log else super().units(places)

    def beyond(self, number: float) -> float:
        """The unit coordinate that any number would have, below 0 or above 1 outside of the range; above 0 for a log
        scale. Numbers between two levels are between their coordinates, or nearly.

        >>> Integer(1, 4).beyond(8.0)
        1.875
        """
        steps = (number - self.low) / self.step
        if not self.log:
            return (steps + 0.5) / self.levels
        ratio, start, end = self._scale
        return (math.log1p(steps * ratio) - start) / (end - start)

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
