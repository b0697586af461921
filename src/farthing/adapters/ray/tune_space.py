"""Search spaces of Ray Tune: dicts in dicts and lists, with constants in between, as a flat space and back.

A parameter is called by its path: `{"optimizer": {"lr": tune.uniform(0, 1)}}` has the parameter "optimizer/lr".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from farthing.errors import InvalidSpace
from farthing.record.settings import checked_space
from farthing.space import Space
from farthing.space.foreign.common import class_names
from farthing.trial import Config

SEPARATOR = "/"  # as in the results of Tune
_NOTHING = object()


@dataclass(frozen=True)
class Slot:
    """The place of a parameter."""

    name: str


@dataclass(frozen=True)
class NestedSpace:
    """A space, and where in a config its parameters are: dicts that hold slots, and lists that hold them among
    constants."""

    space: Space
    places: Mapping[str, Any]

    @classmethod
    def of_tune(cls, param_space: Mapping[str, Any]) -> Self | None:
        """What a Tuner is given: only domains are parameters, all else is constant. None if there are none."""
        params: dict[str, Any] = {}
        places = _places(param_space, _is_domain, params, ())
        return None if places is None else cls(checked_space(params), places)

    @classmethod
    def of(cls, given: Any) -> Self:
        """A Space, whatever `Space.of` reads, or a dict that has dicts of these."""
        if isinstance(given, Mapping):
            params: dict[str, Any] = {}
            places = _places(given, lambda value: not isinstance(value, Mapping) or _is_grid(value), params, ())
            return cls(checked_space(params), places or {})
        space = checked_space(given)
        places = {}
        for name in space.names:
            *branches, leaf = name.split(SEPARATOR)
            inner = places
            for branch in branches:
                inner = inner.setdefault(branch, {})
                if isinstance(inner, Slot):
                    raise InvalidSpace(f"space: {inner.name!r} is a parameter, and so is {name!r} within it")
            if leaf in inner:
                raise InvalidSpace(f"space: {name!r} is a parameter, and has others within it")
            inner[leaf] = Slot(name)
        return cls(space, places)

    def nested(self, config: Config) -> dict[str, Any]:
        """A configuration of the space as Tune has it, without parameters that are not active."""
        filled = _filled(self.places, config)
        return {} if filled is _NOTHING else filled

    def flat(self, config: Mapping[str, Any]) -> Config:
        """The parameters in a config of Tune, which may hold constants too."""
        found: Config = {}
        _collect(self.places, config, found)
        return found


def _is_domain(value: Any) -> bool:
    return bool(class_names(value, "ray") & {"Domain"}) or _is_grid(value)


def _is_grid(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"grid_search"}


def _places(value: Any, is_parameter: Callable[[Any], bool], params: dict[str, Any], path: tuple[Any, ...]) -> Any:
    """Where the parameters of a value are, None if it has none; they are put into `params`."""
    if path and is_parameter(value):
        name = SEPARATOR.join(map(str, path))
        if name in params:
            raise InvalidSpace(f"space: two parameters are called {name!r}")
        params[name] = value
        return Slot(name)
    if isinstance(value, Mapping):
        inner = {key: _places(item, is_parameter, params, (*path, key)) for key, item in value.items()}
        return {key: place for key, place in inner.items() if place is not None} or None
    if type(value) in (list, tuple):
        items = [_places(item, is_parameter, params, (*path, i)) for i, item in enumerate(value)]
        if any(place is not None for place in items):
            return type(value)(item if place is None else place for item, place in zip(value, items, strict=True))
    return None


def _filled(place: Any, config: Config) -> Any:
    if isinstance(place, Slot):
        return config.get(place.name, _NOTHING)
    if isinstance(place, Mapping):
        inner = {key: _filled(item, config) for key, item in place.items()}
        return {key: item for key, item in inner.items() if item is not _NOTHING} or _NOTHING
    if type(place) in (list, tuple):
        return type(place)(_filled(item, config) for item in place)
    return place  # a constant in a list


def _collect(place: Any, given: Any, found: Config) -> None:
    if isinstance(place, Slot):
        found[place.name] = given
    elif isinstance(place, Mapping):
        for key, item in place.items():
            if isinstance(given, Mapping) and key in given:
                _collect(item, given[key], found)
    elif type(place) in (list, tuple) and isinstance(given, list | tuple):
        for item, value in zip(place, given, strict=False):
            _collect(item, value, found)
