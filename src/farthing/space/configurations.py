"""Configurations by name, and their place in the unit cube.

p   number of parameters; unit coordinates are u (p,) or U (n, p) in [0, 1], one per parameter
key one hashable tuple per configuration: the float of a `Real`, the index of the level of the others, None where
    inactive

A configuration, its key and its unit coordinates are three forms of the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from farthing.checks import refuse
from farthing.errors import InvalidConfig
from farthing.numerics.arrays import Array
from farthing.space.conditions import Key, quoted
from farthing.space.cube import UnitCube
from farthing.space.parameters import Parameter

Config: TypeAlias = dict[str, Any]


class Configurations(UnitCube):
    """Translates between configurations, keys, unit coordinates and what files hold.

    >>> from farthing.space import Integer, Real
    >>> configs = Configurations({"eta": Real(0, 1), "depth": Integer(1, 4)})
    >>> configs.decode([0.25, 0.9])
    {'eta': 0.25, 'depth': 4}
    """

    @property
    def params(self) -> Mapping[str, Parameter]:
        """The parameters by name, in order; read-only.

        >>> from farthing import Integer, Space
        >>> Space(depth=Integer(1, 16)).params["depth"]
        Integer(1, 16)
        """
        return MappingProxyType(self._params)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order.

        >>> from farthing import Real, Space
        >>> Space(a=Real(0, 1), b=Real(0, 1)).names
        ('a', 'b')
        """
        return self._names

    # Configurations and keys

    def key(self, config: Mapping[str, Any]) -> Key:
        """A hashable identity: levels by index, None where inactive.

        >>> from farthing import Choice, Real, Space
        >>> space = Space(booster=Choice(["gbtree", "dart"]), eta=Real(0, 1, when={"booster": "dart"}))
        >>> space.key({"booster": "gbtree"}), space.key({"booster": "dart", "eta": 0.5})
        ((0, None), (1, 0.5))
        """
        key: list[float | int | None] = [None] * len(self._list)
        for j in self._conditions.order:
            if self._conditions.holds(j, key):
                key[j] = self._place(j, config)
        return tuple(key)

    def _place(self, j: int, config: Mapping[str, Any]) -> float | int:
        name, param = self._names[j], self._list[j]
        if name not in config:
            raise InvalidConfig(f"parameter {name!r}: is missing; expected {param.accepted}")
        place = param.find(config[name])
        if place is None:
            refuse(f"parameter {name!r}", param.accepted, config[name], InvalidConfig)
        return place

    def _config(self, key: Sequence[float | int | None]) -> Config:
        return {
            name: param.value(place)  # type: ignore[arg-type]  # a place goes to the parameter it came from
            for name, param, place in zip(self._names, self._list, key, strict=True)
            if place is not None
        }

    def validate(self, config: Mapping[str, Any]) -> Config:
        """A user's configuration as a plain dict in the space's order, or `InvalidConfig` saying why not.

        Numbers are kept as given, not rounded; options become the space's own objects. An inactive parameter may be
        None, but have no other value. A forbidden configuration is valid: see `allows`.

        >>> from farthing import Integer, Real, Space
        >>> Space(depth=Integer(1, 16), eta=Real(0, 1)).validate({"eta": 1, "depth": 3.0})
        {'depth': 3, 'eta': 1.0}
        """
        if not isinstance(config, Mapping):
            refuse("config", "names of parameters and values", config, InvalidConfig)
        for name in config:
            if name not in self._params:
                raise InvalidConfig(f"unknown parameter {name!r}; parameters are {quoted(self._names)}")
        key = self.key(config)
        for j, name in enumerate(self._names):
            if key[j] is None and config.get(name) is not None:
                raise InvalidConfig(
                    f"parameter {name!r}: got {config[name]!r}, but it has an effect only when "
                    f"{self._conditions.in_words(j)}; leave it out"
                )
        return self._config(key)

    # Configurations and the unit cube

    def encode(self, config: Mapping[str, Any]) -> Array:
        """Unit coordinates (p,): levels at the centre of their bin, inactive parameters at 0.5.

        >>> from farthing import Integer, Real, Space
        >>> Space(eta=Real(0, 2), depth=Integer(1, 4)).encode({"eta": 0.5, "depth": 1}).tolist()
        [0.25, 0.125]
        """
        return self._unit(self.key(config))

    def encode_many(self, configs: Iterable[Mapping[str, Any]]) -> Array:
        """Unit coordinates (n, p) of several configurations.

        >>> from farthing import Real, Space
        >>> Space(eta=Real(0, 2)).encode_many([{"eta": 0.5}, {"eta": 1.0}]).tolist()
        [[0.25], [0.5]]
        """
        return self._units([self.key(config) for config in configs])

    def decode(self, u: ArrayLike) -> Config:
        """The configuration at unit coordinates (p,): plain values of the active parameters, in order.

        Encoding the result leads back to exactly the same configuration.

        >>> from farthing import Integer, Real, Space
        >>> Space(eta=Real(1e-4, 1, log=True), depth=Integer(1, 4)).decode([0.5, 1.0])
        {'eta': 0.01, 'depth': 4}
        """
        return self._config(self.keys(np.asarray(u, dtype=np.float64)[np.newaxis])[0])

    def decode_many(self, U: ArrayLike) -> list[Config]:
        """The configurations at several unit coordinates (n, p).

        >>> from farthing import Integer, Space
        >>> Space(depth=Integer(1, 4)).decode_many([[0.0], [1.0]])
        [{'depth': 1}, {'depth': 4}]
        """
        return [self._config(key) for key in self.keys(U)]

    # Files

    def store_config(self, config: Mapping[str, Any]) -> dict[str, float | int]:
        """A configuration as JSON: numbers as they are, options by index, so that any object can be one.

        >>> from farthing import Choice, Integer, Space
        >>> Space(kind=Choice([min, max]), depth=Integer(1, 4)).store_config({"kind": max, "depth": 2})
        {'kind': 1, 'depth': 2}
        """
        return {
            name: param.store(place)  # type: ignore[arg-type]  # a place goes to the parameter it came from
            for name, param, place in zip(self._names, self._list, self.key(config), strict=True)
            if place is not None
        }

    def load_config(self, stored: Mapping[str, Any]) -> Config:
        """The exact inverse of `store_config`.

        >>> from farthing import Choice, Integer, Space
        >>> Space(kind=Choice(["a", "b"]), depth=Integer(1, 4)).load_config({"kind": 1, "depth": 2})
        {'kind': 'b', 'depth': 2}
        """
        places: dict[str, float | int] = {}
        for name, value in stored.items():
            if name not in self._params:
                raise InvalidConfig(f"unknown parameter {name!r}; parameters are {quoted(self._names)}")
            place = self._params[name].load(value)
            if place is None:
                raise InvalidConfig(
                    f"parameter {name!r}: stored {value!r} does not stand for {self._params[name].accepted}"
                )
            places[name] = place
        return self._config([places.get(name) for name in self._names])
