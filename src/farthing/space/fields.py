"""What parameters share: `log` and `when`, equality and repr by field, and evenly wide bins for levels.

These are mixins. A parameter is one of the four classes in `parameters`; nothing else is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeAlias

import numpy as np

from farthing.checks import refuse, settle, switch
from farthing.errors import InvalidSpace
from farthing.numerics.arrays import Array, Ints

When: TypeAlias = Mapping[str, object]


class ParameterFields:
    """Equality and repr by field for a frozen dataclass, and the checks of `log` and `when`.

    A parameter does not know its name, only the `Space` that holds it does. Errors raised here therefore name the
    type of the parameter.
    """

    log: bool = False
    when: When | None = None

    def _refuse(self, field: str, expected: str, given: object) -> NoReturn:
        refuse(f"{type(self).__name__}: {field}", expected, given, InvalidSpace)

    def _settle_log_and_when(self) -> None:
        settle(self, log=switch(f"{type(self).__name__}: log", self.log, error=InvalidSpace))
        if self.when is None:
            return
        if not isinstance(self.when, Mapping) or not all(isinstance(name, str) for name in self.when):
            self._refuse("when", "names of parameters and values, such as {'booster': 'dart'}", self.when)
        settle(self, when=dict(self.when) or None)

    def settings(self) -> dict[str, Any]:
        """The fields by name: what makes two parameters equal."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParameterFields) or type(self) is not type(other):
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


class EvenBins(ParameterFields):
    """Levels that own equally wide bins of the unit interval; each sits at the centre of its bin."""

    @property
    def levels(self) -> int:
        raise NotImplementedError

    def unit(self, place: int) -> float:
        """The unit coordinate of a level: the centre of its bin."""
        return (place + 0.5) / self.levels

    def units(self, places: Sequence[int] | Ints) -> Array:
        """Unit coordinates of levels."""
        return np.asarray((np.array(places, dtype=np.intp) + 0.5) / self.levels, dtype=np.float64)


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


def alike(thing: object) -> Hashable:
    """Something hashable that is equal for objects that are the `same`. Others may share it: (1,) and (True,) do.

    >>> alike([np.ones(2)]) == alike([np.ones(2)]), alike([1]) == alike([2])
    (True, False)
    """
    kind = type(thing)
    if isinstance(thing, (list, tuple)):
        return kind, tuple(map(alike, thing))
    if isinstance(thing, dict):
        return kind, frozenset((key, alike(value)) for key, value in thing.items())
    if isinstance(thing, np.ndarray):
        return kind, alike(thing.tolist())
    if isinstance(thing, float) and thing != thing:
        return kind, "NaN"  # equal to nothing, not even itself
    try:
        hash(thing)
    except TypeError:
        return (kind,)
    return kind, thing


def _equal(a: object, b: object) -> bool:
    try:
        return bool(a == b) or (a != a and b != b and isinstance(a, float))
    except Exception:  # an object whose == is not a yes or no is only the same as itself
        return False
