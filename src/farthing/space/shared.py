"""Configurations of another space as points of this one, as far as the two share parameters.

A parameter is shared if both spaces have its name and a value has a place in both. Places go by value: a number of
another range or scale is where this space has that number, outside of [0, 1] if the range here does not reach so far;
an option is where this space has the same option.

p   a place: the feature of a Real, Integer or Ordered, the level of a Choice; NaN where the parameter is inactive
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.checks import finite
from farthing.errors import InvalidConfig
from farthing.numerics.arrays import Array, Ints
from farthing.space.parameters import Choice, Integer, Ordered, Parameter, Real
from farthing.space.serialization import described
from farthing.space.space import Space

FARTHEST = 9.0  # widths of the range that a place lies outside: further away a model has nothing to say anyway


@dataclass(frozen=True, eq=False)
class SharedPoints:
    """Places (n, q) of some configurations in the q shared parameters of a space, and which configurations they are."""

    names: tuple[str, ...]
    places: Array  # (n, q)
    rows: Ints  # (n,) of the configurations that were given


def shared_points(space: Space, configs: Sequence[Mapping[str, Any]]) -> SharedPoints:
    """Where configurations of any space lie in this one. One with a shared parameter at an option that this space does
    not have is left out.

    >>> found = shared_points(Space(x=Real(0, 2), y=Real(0, 1)), [{"x": 1, "z": 5}, {"x": 4, "z": 6}])
    >>> found.names, found.places.tolist()
    (('x',), [[0.5], [2.0]])
    """
    places = {name: _places(param, name, configs) for name, param in space.params.items()}
    names = tuple(name for name, found in places.items() if any(place is not None for place in found.values()))
    rows = [i for i in range(len(configs)) if all(places[name].get(i, math.nan) is not None for name in names)]
    table = [[places[name].get(i, math.nan) for name in names] for i in rows]
    return SharedPoints(names, np.array(table, dtype=np.float64).reshape(len(rows), len(names)), np.array(rows, int))


def _places(param: Parameter, name: str, configs: Sequence[Mapping[str, Any]]) -> dict[int, float | None]:
    """The place of each configuration in which the parameter is active, None where its value has none here."""
    return {i: place_of(param, config[name]) for i, config in enumerate(configs) if name in config}


def place_of(param: Parameter, value: Any) -> float | None:
    """The place of a value, None if there is none.

    >>> place_of(Real(1, 3), 4), place_of(Choice(["a", "b"]), "b"), place_of(Choice(["a", "b"]), "c")
    (1.5, 1.0, None)
    """
    if isinstance(param, Choice) or (isinstance(param, Ordered) and not param.numeric):
        level = _level_of(param, value)
        return None if level is None else float(level if isinstance(param, Choice) else param.positions[level])
    number = finite(value)
    if number is None or (param.log and number <= 0.0):
        return None
    place = _of_number(param, number)
    return None if place is None else min(max(place, -FARTHEST), 1.0 + FARTHEST)


def _of_number(param: Real | Integer | Ordered, number: float) -> float | None:
    match param:
        case Real():
            return param.beyond(number)
        case Integer():
            level = param.find(number)
            return param.beyond(number) if level is None else param.unit(level)
        case _:
            first, last = (float(param.values[i]) for i in (0, -1))
            if first == last:
                return 0.5 if number == first else None
            low, at, high = np.log([first, number, last]) if param.log else (first, number, last)
            return float((at - low) / (high - low))


def _level_of(param: Choice | Ordered, value: Any) -> int | None:
    """By what a file would hold: of some options a file has only a description."""
    text = _text(value)
    return next((level for level, option in enumerate(param.items) if _text(option) == text), None)


def _text(option: Any) -> str:
    return json.dumps(described(option), sort_keys=True)


def same_config(space: Space, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """A configuration of another space as one of this space; parameters that this one lacks are left out. None if it
    has a value that this space does not have.

    >>> same_config(Space(x=Real(0, 1)), {"x": 1, "y": 2}), same_config(Space(x=Real(0, 1)), {"x": 3})
    ({'x': 1.0}, None)
    """
    here = {name: _option_here(space.params[name], value) for name, value in config.items() if name in space.params}
    try:
        return space.validate(here)
    except InvalidConfig:
        return None


def _option_here(param: Parameter, value: Any) -> Any:
    """A described option as the object it stands for; anything else as it is."""
    if not isinstance(param, Choice | Ordered) or param.find(value) is not None:
        return value
    level = _level_of(param, value)
    return value if level is None else param.value(level)


def shared_features(space: Space, names: Sequence[str], places: Array) -> tuple[Array, Ints]:
    """Features (n, f') of places (n, q), and which of the space's feature columns (f',) these are."""
    index = [space.names.index(name) for name in names]
    params = [space.params[name] for name in names]
    U = np.full((len(places), len(space)), 0.5)
    for k, (j, param) in enumerate(zip(index, params, strict=True)):
        if isinstance(param, Choice):
            U[:, j] = np.where(np.isnan(places[:, k]), 0.5, (places[:, k] + 0.5) / param.levels)
    X = space.features(U)
    for k, (j, param) in enumerate(zip(index, params, strict=True)):
        if not isinstance(param, Choice):
            X[:, space.groups == j] = np.where(np.isnan(places[:, k]), 0.5, places[:, k])[:, None]
    columns = np.flatnonzero(np.isin(space.groups, index))
    return X[:, columns], columns


def nearest_config(
    space: Space, names: Sequence[str], place: Sequence[float] | Array, elsewhere: Array
) -> dict[str, Any]:
    """The configuration of this space nearest to a place; what is not shared, or inactive there, comes from the unit
    coordinates `elsewhere` (p,)."""
    u = elsewhere.copy()
    for name, found in zip(names, place, strict=True):
        param, j = space.params[name], space.names.index(name)
        if math.isnan(found):
            continue
        if isinstance(param, Choice):
            u[j] = (found + 0.5) / param.levels
        elif isinstance(param, Ordered):
            u[j] = param.unit(int(np.argmin(np.abs(param.positions - found))))
        else:
            u[j] = min(max(found, 0.0), 1.0)
    return space.decode(u)
