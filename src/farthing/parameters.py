"""Parameters: what may be tuned, and where each value sits in the unit interval.

A value is spoken of in three ways, and a parameter translates between them:

value   what a user sees: a float, an int, or the option object itself
place   a hashable stand-in: the float for a `Real`, the index of the level for the others
u       the unit coordinate in [0, 1]; a level owns a bin of it and sits at the bin's centre

Users only construct parameters; the translating methods are there for `Space`. Names are known only to the
`Space` that holds a parameter, so errors raised here name the kind of parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from numbers import Real as AnyReal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidSpace

Array: TypeAlias = NDArray[np.float64]
When: TypeAlias = Mapping[str, object]

MAX_LEVELS = 2**48  # bin centres of more levels come too close to the resolution of a float in [0, 1]
MAX_LOG_LEVELS = 2**40  # the top bins of a log scale are narrower by the length of that scale
MAX_REAL = 1e308
MAX_INTEGER = 2**63
SHOWN_OPTIONS = 12


def same(a: object, b: object) -> bool:
    """Whether two objects have one type and are equal, arrays and containers of arrays included.

    >>> same(1, 1), same(1, True), same([np.ones(2)], [np.ones(2)])
    (True, False, True)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and bool(np.array_equal(a, b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return _equal(a, b)


def _equal(a: object, b: object) -> bool:
    try:
        return bool(a == b) or (a != a and b != b and isinstance(a, float))
    except Exception:  # an object whose == is not a yes or no is only the same as itself
        return False


def is_number(value: object) -> bool:
    """Whether a value counts as a number here: NumPy scalars do, booleans do not.

    >>> is_number(np.float32(1)), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, AnyReal) and not isinstance(value, bool)


def _finite(value: object) -> float | None:
    """The value as a finite float, or None when it is not one."""
    if not is_number(value):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # is_number has seen to it
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 becomes 0.0


def _whole(value: object) -> int | None:
    """The value as an int, or None when it is not a whole number."""
    number = _finite(value)
    if number is None or number != math.floor(number):
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]  # exact, where the float may not be


class _Parameter:
    """What all parameters share: equality and a repr by field, and the check of `log` and `when`."""

    log: bool = False
    when: When | None = None

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _refuse(self, why: str) -> InvalidSpace:
        return InvalidSpace(f"{type(self).__name__}: {why}")

    def _check_options(self) -> None:
        if not isinstance(self.log, bool):
            raise self._refuse(f"log must be True or False, got {self.log!r}")
        if self.when is None:
            return
        if not isinstance(self.when, Mapping) or not all(isinstance(name, str) for name in self.when):
            raise self._refuse(
                f"when must map names of parameters to values, as {{'booster': 'dart'}}, got {self.when!r}"
            )
        self._set(when=dict(self.when) or None)

    def settings(self) -> dict[str, Any]:
        """The fields by name: what makes two parameters equal."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Parameter) or type(self) is not type(other):
            return NotImplemented
        return same(self.settings(), other.settings())

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.log))  # options need not be hashable

    def __repr__(self) -> str:
        parts = []
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            shown = repr(list(value) if isinstance(value, tuple) else value)
            if not field.kw_only:
                parts.append(shown)
            elif value != field.default:
                parts.append(f"{field.name}={shown}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False)
class Real(_Parameter):
    """A real number between two bounds, both included; `log=True` spreads it evenly over magnitudes.

    Values that Farthing proposes are rounded to 11 or 12 digits of the range, so that translating one to the
    unit interval and back gives the very same float.

    >>> Real(1e-5, 1e-1, log=True)
    Real(1e-05, 0.1, log=True)
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    when: When | None = None

    def __post_init__(self) -> None:
        self._check_options()
        low, high = _finite(self.low), _finite(self.high)
        for name, given, bound in (("low", self.low, low), ("high", self.high, high)):
            if bound is None or abs(bound) > MAX_REAL:
                raise self._refuse(f"{name} must be a finite number within ±{MAX_REAL:g}, got {given!r}")
        assert low is not None
        assert high is not None
        if low >= high:
            raise self._refuse(f"low must be below high, got low={self.low}, high={self.high}")
        if self.log and low <= 0:
            raise self._refuse(f"log=True needs low above 0, got low={self.low}")
        self._set(low=low, high=high)

    levels = None

    @property
    def accepted(self) -> str:
        """What is a value of this parameter, in words."""
        return f"a number from {self.low!r} to {self.high!r}"

    def find(self, value: object) -> float | None:
        """The place of a value, or None when it is not one of this parameter's."""
        number = _finite(value)
        return number if number is not None and self.low <= number <= self.high else None

    def value(self, place: float) -> float:
        """The value at a place: for a Real they are the same."""
        return place

    def store(self, place: float) -> float:
        """The place in a JSON file."""
        return place

    def load(self, stored: object) -> float | None:
        """The inverse of `store`, None when the file holds something else."""
        return self.find(stored)

    def units(self, places: Sequence[float]) -> Array:
        """Unit coordinates of values.

        >>> Real(1, 100, log=True).units([1.0, 10.0]).tolist()
        [0.0, 0.5]
        """
        v = np.asarray(places, dtype=np.float64)
        if self._wide:
            start, end = np.log(self.low), np.log(self.high)
            u = (np.log(v) - start) / (end - start)
        elif self.log:
            u = np.log1p((v - self.low) / self.low) / np.log1p((self.high - self.low) / self.low)
        else:
            s = self._shrink
            u = (v / s - self.low / s) / (self.high / s - self.low / s)
        return np.asarray(np.clip(u, 0.0, 1.0), dtype=np.float64)

    def places(self, u: Array) -> list[float]:
        """Values at unit coordinates, rounded so that `units` leads back to exactly them.

        >>> Real(1, 100, log=True).places(np.array([0.0, 0.5, 0.6]))
        [1.0, 10.0, 15.848931925]
        """
        if self._wide:
            start, end = np.log(self.low), np.log(self.high)
            v = np.exp(start + u * (end - start))
        elif self.log:
            v = self.low + self.low * np.expm1(u * np.log1p((self.high - self.low) / self.low))
        else:
            s = self._shrink
            v = s * (self.low / s + u * (self.high / s - self.low / s))
        return [self._tidy(number) for number in v.tolist()]

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

        Going to u and back loses about 4e-16 of max(|low|, |high|). That is far below this grid unless the
        range is narrow, and then the distance from low is exact, so nothing is lost that a float could hold.
        """
        width = self.high / self._shrink - self.low / self._shrink
        return 12 - math.floor(math.log10(width) + math.log10(self._shrink))

    @cached_property
    def _cuts(self) -> tuple[float, float]:
        """Rounded values beyond these are the bounds: u cannot tell an odd bound from its neighbour."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Integer(_Parameter):
    """The integers low, low + step, ... up to high, which is included when a step lands on it.

    With `log=True` the bins are those of [low - step/2, high + step/2] on a log scale; where low - step/2 is
    below low/2, the scale starts at low/2, so that the lowest value does not swallow it.

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
        self._check_options()
        given = {"low": self.low, "high": self.high, "step": self.step}
        for name, value in given.items():
            number = _whole(value)
            if number is None or abs(number) > MAX_INTEGER:
                raise self._refuse(f"{name} must be a whole number within ±2**63, got {value!r}")
            self._set(**{name: number})
        if self.low >= self.high:
            raise self._refuse(f"low must be below high, got low={self.low}, high={self.high}")
        if not 1 <= self.step <= self.high - self.low:
            raise self._refuse(
                f"step must be from 1 to high - low = {self.high - self.low}, got step={self.step}"
            )
        if self.log and self.low <= 0:
            raise self._refuse(f"log=True needs low above 0, got low={self.low}")
        most = MAX_LOG_LEVELS if self.log else MAX_LEVELS
        if self.levels > most:
            raise self._refuse(
                f"at most 2**{most.bit_length() - 1} levels{' with log=True' if self.log else ''}, "
                f"got {self.levels}; use a larger step"
            )

    @property
    def levels(self) -> int:
        """How many values there are."""
        return (self.high - self.low) // self.step + 1

    @property
    def accepted(self) -> str:
        """What is a value of this parameter, in words."""
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"an integer from {self.low} to {self.high}{steps}"

    def find(self, value: object) -> int | None:
        """The level of a value, or None when it is not one of this parameter's."""
        number = _whole(value)
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
        """The inverse of `store`, None when the file holds something else."""
        return self.find(stored)

    @cached_property
    def _scale(self) -> tuple[float, float, float]:
        """Step over low, and the ends of the log scale, all relative to low."""
        ratio = self.step / self.low
        return ratio, math.log1p(max(-ratio / 2, -0.5)), math.log1p((self.levels - 0.5) * ratio)

    def log_levels(self, u: Array) -> NDArray[np.int64]:
        """Levels at unit coordinates on the log scale, by the distance from low in steps.

        >>> Integer(1, 1000, log=True).log_levels(np.array([0.0, 0.5, 1.0])).tolist()
        [0, 21, 999]
        """
        ratio, start, end = self._scale
        steps = np.floor(np.expm1(start + u * (end - start)) / ratio + 0.5)
        return np.clip(steps, 0, self.levels - 1).astype(np.int64)

    def log_centres(self, levels: NDArray[np.int64]) -> Array:
        """Unit coordinates of levels on the log scale: the centres of their bins.

        >>> Integer(1, 1000, log=True).log_centres(np.array([0])).round(3).tolist()
        [0.072]
        """
        ratio, start, end = self._scale
        lower = np.log1p(np.maximum((levels - 0.5) * ratio, math.expm1(start)))
        upper = np.log1p((levels + 0.5) * ratio)
        return np.asarray(((lower + upper) / 2 - start) / (end - start), dtype=np.float64)


class _OptionIndex:
    """Where each option is, by hash where it has one."""

    def __init__(self, options: Sequence[object]) -> None:
        self.options: list[object] = []
        self._hashed: dict[object, int] = {}
        self._scanned: list[int] = []
        self.duplicate: tuple[int, int] | None = None
        for i, option in enumerate(options):
            earlier = self.find(option)
            if earlier is not None and self.duplicate is None:
                self.duplicate = earlier, i
            self.options.append(option)
            self._add(option, i)

    def _add(self, option: object, i: int) -> None:
        try:
            taken = self._hashed.setdefault((type(option), option), i) != i
        except TypeError:
            taken = True
        # (1,) and (True,) share a hash but not their types; a NaN is not found by hash
        if taken or (isinstance(option, float) and option != option):
            self._scanned.append(i)

    def find(self, option: object) -> int | None:
        try:
            i = self._hashed.get((type(option), option))
        except TypeError:
            i = None
        if i is not None and same(self.options[i], option):
            return i
        return next((i for i in self._scanned if same(self.options[i], option)), None)


class _Options(_Parameter):
    """What `Ordered` and `Choice` share: a tuple of objects, found by type and equality, stored by index."""

    @property
    def items(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _listed(self, name: str, given: object) -> tuple[Any, ...]:
        if isinstance(given, (str, bytes, Mapping, AbstractSet)) or not isinstance(given, Iterable):
            raise self._refuse(f"{name} must be a list or tuple, in a fixed order, got {given!r}")
        items = tuple(given)
        if not items:
            raise self._refuse(f"{name} must hold at least one, got none")
        return items

    def _check_distinct(self, name: str) -> None:
        if self._index.duplicate is not None:
            first, second = self._index.duplicate
            raise self._refuse(
                f"{name} must differ, got {self.items[second]!r} at positions {first} and {second}"
            )

    @cached_property
    def _index(self) -> _OptionIndex:
        return _OptionIndex(self.items)

    @property
    def levels(self) -> int:
        """How many values there are."""
        return len(self.items)

    @property
    def accepted(self) -> str:
        """What is a value of this parameter, in words."""
        shown = ", ".join(repr(item) for item in self.items[:SHOWN_OPTIONS])
        more = len(self.items) - SHOWN_OPTIONS
        return f"one of {shown}" + (f" and {more} more" if more > 0 else "")

    def find(self, value: object) -> int | None:
        """The index of a value, or None when it is not one of this parameter's."""
        found = self._index.find(value)
        if found is None and isinstance(value, np.generic):
            return self._index.find(value.item())
        return found

    def value(self, place: int) -> Any:
        """The option object at an index."""
        return self.items[place]

    def store(self, place: int) -> int:
        """The index in a JSON file: the index itself."""
        return place

    def load(self, stored: object) -> int | None:
        """The inverse of `store`, None when the file holds something else."""
        number = _whole(stored)
        return number if number is not None and 0 <= number < len(self.items) else None


@dataclass(frozen=True, eq=False, repr=False)
class Ordered(_Options):
    """A grid of values in order.

    Numbers must rise or fall strictly and are as far apart for the model as their values are (their logs with
    `log=True`); anything else is evenly spaced by rank.

    >>> Ordered([16, 32, 64, 128], log=True)
    Ordered([16, 32, 64, 128], log=True)
    """

    values: Sequence[Any]
    _: KW_ONLY
    log: bool = False
    when: When | None = None

    def __post_init__(self) -> None:
        self._check_options()
        items = self._listed("values", self.values)
        plain = tuple(item.item() if isinstance(item, np.generic) else item for item in items)
        self._set(values=plain)
        if self._numeric:
            self._check_numbers()
        elif self.log:
            raise self._refuse(f"log=True needs numbers, got {list(plain)!r}")
        else:
            self._check_distinct("values")

    def _check_numbers(self) -> None:
        if None in [_finite(value) for value in self.values]:
            raise self._refuse(f"values must be finite, got {list(self.values)!r}")
        numbers = np.array(self.values, dtype=np.float64)
        if not ((numbers[1:] > numbers[:-1]).all() or (numbers[1:] < numbers[:-1]).all()):
            raise self._refuse(
                f"numbers must rise or fall strictly, got {list(self.values)!r}; "
                "for options without an order use Choice"
            )
        if self.log and min(self.values) <= 0:
            raise self._refuse(f"log=True needs values above 0, got {min(self.values)!r}")

    @property
    def items(self) -> tuple[Any, ...]:
        """The values, first to last."""
        return tuple(self.values)

    @cached_property
    def _numeric(self) -> bool:
        return all(type(value) in (int, float) for value in self.values)

    @cached_property
    def _by_number(self) -> dict[float, int]:
        return {value: i for i, value in enumerate(self.values)}

    def find(self, value: object) -> int | None:
        """The index of a value, or None; 32.0 finds 32 in a grid of numbers."""
        if not self._numeric:
            return super().find(value)
        return self._by_number.get(value) if is_number(value) else None  # type: ignore[call-overload]

    @cached_property
    def positions(self) -> Array:
        """Where the model sees each level, from 0 for the first to 1 for the last.

        >>> Ordered([1, 2, 5]).positions.tolist()
        [0.0, 0.25, 1.0]
        """
        if self.levels == 1:
            return np.array([0.5])
        if not self._numeric:
            return np.linspace(0.0, 1.0, self.levels)
        numbers = np.array(self.values, dtype=np.float64)
        v = np.log(numbers) if self.log else numbers / 4  # a quarter, so that no difference overflows
        return np.asarray((v - v[0]) / (v[-1] - v[0]), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(_Options):
    """One of several options without an order: any objects, hashable or not.

    Options are told apart by type and equality, so 1, 1.0 and True are three of them.

    >>> Choice(["gbtree", "dart"])
    Choice(['gbtree', 'dart'])
    """

    options: Sequence[Any]
    _: KW_ONLY
    when: When | None = None

    def __post_init__(self) -> None:
        self._check_options()
        self._set(options=self._listed("options", self.options))
        self._check_distinct("options")

    @property
    def items(self) -> tuple[Any, ...]:
        """The options, first to last."""
        return tuple(self.options)


Discrete: TypeAlias = Integer | Ordered | Choice
Parameter: TypeAlias = Real | Integer | Ordered | Choice
