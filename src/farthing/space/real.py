"""A real number between two bounds, and how a unit coordinate is turned into one and back without loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from farthing.checks import finite, settle
from farthing.numerics.arrays import Array
from farthing.space.fields import ParameterFields, When

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
        start, end = self._ends
        return min(max((self._scaled(place) - start) / (end - start), 0.0), 1.0)

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
