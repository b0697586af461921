"""Parameters whose values are listed: `Ordered`, a grid in order, and `Choice`, options without an order.

Options may be any objects. They are distinguished by type and equality, and files refer to them by index. See
`parameters` for the words value, place and u.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farthing.checks import finite, is_number, settle, whole
from farthing.numerics.arrays import Array
from farthing.space.fields import EvenBins, When, alike, same

SHOWN_OPTIONS = 12  # in a message: enough to see what is meant, and still a few lines


class _OptionIndex:
    """Finds the index of an option among those that share its `alike`: one, but for odd types."""

    def __init__(self, options: Sequence[object]) -> None:
        self.options: list[object] = []
        self._first: dict[Hashable, int] = {}
        self._others: dict[Hashable, list[int]] = {}
        self._texts: dict[str, int] = {}
        self.duplicate: tuple[int, int] | None = None
        for i, option in enumerate(options):
            found = alike(option)
            earlier = self._find(option, found)
            if earlier is not None and self.duplicate is None:
                self.duplicate = earlier, i
            self.options.append(option)
            if self._first.setdefault(found, i) != i:
                self._others.setdefault(found, []).append(i)
            if type(option) is str:
                self._texts.setdefault(option, i)

    def find(self, option: object) -> int | None:
        if type(option) is str:  # the usual one, of which no two are alike but not the same
            return self._texts.get(option)
        return self._find(option, alike(option))

    def _find(self, option: object, found: Hashable) -> int | None:
        first = self._first.get(found)
        if first is None or same(self.options[first], option):
            return first
        return next((i for i in self._others.get(found, ()) if same(self.options[i], option)), None)


class _Listed(EvenBins):
    """What `Ordered` and `Choice` share: a tuple of objects, found by type and equality, stored by index."""

    @property
    def items(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _as_tuple(self, name: str, given: object) -> tuple[Any, ...]:
        if isinstance(given, (str, bytes, Mapping, AbstractSet)) or not isinstance(given, Iterable):
            self._refuse(name, "a list or tuple", given)  # a set has no fixed order
        items = tuple(given)
        if not items:
            self._refuse(name, "at least one value", given)
        return items

    def _check_distinct(self, name: str) -> None:
        if self._index.duplicate is not None:
            first, second = self._index.duplicate
            self._refuse(f"{name}[{second}]", f"a value other than {name}[{first}]", self.items[second])

    @cached_property
    def _index(self) -> _OptionIndex:
        return _OptionIndex(self.items)

    @property
    def levels(self) -> int:
        """How many values there are."""
        return len(self.items)

    @property
    def accepted(self) -> str:
        """The accepted values, in words."""
        shown = ", ".join(repr(item) for item in self.items[:SHOWN_OPTIONS])
        more = len(self.items) - SHOWN_OPTIONS
        return f"one of {shown}" + (f" and {more} more" if more > 0 else "")

    def find(self, value: object) -> int | None:
        """The index of a value, or None if it is not one of the options."""
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
        """The inverse of `store`, None if the file holds something else."""
        number = stored if type(stored) is int else whole(stored)
        return number if number is not None and 0 <= number < len(self.items) else None


@dataclass(frozen=True, eq=False, repr=False)
class Ordered(_Listed):
    """A grid of values in order.

    Numbers must rise or fall strictly. The model sees them as far apart as their values are (their logs with
    `log=True`). Anything else is evenly spaced by rank.

    >>> Ordered([16, 32, 64, 128], log=True)
    Ordered([16, 32, 64, 128], log=True)
    """

    values: Sequence[Any]
    _: KW_ONLY
    log: bool = False
    when: When | None = None

    def __post_init__(self) -> None:
        self._settle_log_and_when()
        items = self._as_tuple("values", self.values)
        plain = tuple(item.item() if isinstance(item, np.generic) else item for item in items)
        settle(self, values=plain)
        if self.numeric:
            self._check_numbers()
        elif self.log:
            self._refuse("values", "numbers for log=True", list(plain))
        else:
            self._check_distinct("values")

    def _check_numbers(self) -> None:
        given = list(self.values)
        if None in [finite(value) for value in given]:
            self._refuse("values", "finite numbers", given)
        numbers = np.array(given, dtype=np.float64)
        if not ((numbers[1:] > numbers[:-1]).all() or (numbers[1:] < numbers[:-1]).all()):
            self._refuse("values", "numbers that rise or fall strictly (options without an order are a Choice)", given)
        if self.log and min(given) <= 0:
            self._refuse("values", "numbers above 0 for log=True", given)

    @property
    def items(self) -> tuple[Any, ...]:
        """The values, first to last."""
        return tuple(self.values)

    @cached_property
    def numeric(self) -> bool:
        """Whether all values are plain numbers."""
        return all(type(value) in (int, float) for value in self.values)

    @cached_property
    def _by_number(self) -> dict[float, int]:
        return {value: i for i, value in enumerate(self.values)}

    def find(self, value: object) -> int | None:
        """The index of a value, or None; 32.0 finds 32 in a grid of numbers."""
        if not self.numeric:
            return super().find(value)
        plain = type(value) is int or type(value) is float
        return self._by_number.get(value) if plain or is_number(value) else None  # type: ignore[call-overload]

    @cached_property
    def positions(self) -> Array:
        """Where the model sees each level, from 0 for the first to 1 for the last.

        >>> Ordered([1, 2, 5]).positions.tolist()
        [0.0, 0.25, 1.0]
        """
        if self.levels == 1:
            return np.array([0.5])
        if not self.numeric:
            return np.linspace(0.0, 1.0, self.levels)
        numbers = np.array(self.values, dtype=np.float64)
        v = np.log(numbers) if self.log else numbers / 4  # divided by 4, so that no difference overflows
        return np.asarray((v - v[0]) / (v[-1] - v[0]), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(_Listed):
    """One of several options without an order: any objects, hashable or not.

    Options are distinguished by type and equality, so 1, 1.0 and True are three different ones.

    >>> Choice(["gbtree", "dart"])
    Choice(['gbtree', 'dart'])
    """

    options: Sequence[Any]
    _: KW_ONLY
    when: When | None = None

    def __post_init__(self) -> None:
        self._settle_log_and_when()
        settle(self, options=self._as_tuple("options", self.options))
        self._check_distinct("options")

    @property
    def items(self) -> tuple[Any, ...]:
        """The options, first to last."""
        return tuple(self.options)
