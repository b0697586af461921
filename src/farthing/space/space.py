"""The search space: parameters by name, configurations and their place in the unit cube, and what must not be proposed.

`parameters` translate one value, `conditions` say which parameters are active, `cube` works on many points at once and
shows them to models, `serialization` writes the space as JSON, `foreign` reads the spaces of other libraries. Here all
of it is one object.

p   number of parameters; unit coordinates are u (p,) or U (n, p) in [0, 1], one per parameter
key one hashable tuple per configuration: the float of a `Real`, the index of the level of the others, None where
    inactive

A configuration, its key and its unit coordinates are three forms of the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from farthing.checks import refuse
from farthing.errors import InvalidConfig, InvalidSpace
from farthing.numerics.arrays import Array, Mask
from farthing.space import foreign, serialization
from farthing.space.conditions import Clause, Key, quoted, united
from farthing.space.cube import UnitCube
from farthing.space.parameters import Parameter, Real

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
        for j, name, find, when in self._finders:
            if when is None or when.holds(key):
                place = find(config[name]) if name in config else None
                key[j] = self._place(j, config) if place is None else place
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
            name: value(place)  # a place goes to the parameter it came from
            for name, value, place in zip(self._names, self._values, key, strict=True)
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
        return self.unit_of(self.key(config))

    def encode_many(self, configs: Iterable[Mapping[str, Any]]) -> Array:
        """Unit coordinates (n, p) of several configurations.

        >>> from farthing import Real, Space
        >>> Space(eta=Real(0, 2)).encode_many([{"eta": 0.5}, {"eta": 1.0}]).tolist()
        [[0.25], [0.5]]
        """
        return self.units_of([self.key(config) for config in configs])

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
        config: Config = {}
        for name, value in stored.items():
            if name not in self._params:
                raise InvalidConfig(f"unknown parameter {name!r}; parameters are {quoted(self._names)}")
            param = self._params[name]
            place = param.load(value)
            if place is None:
                raise InvalidConfig(f"parameter {name!r}: stored {value!r} does not stand for {param.accepted}")
            config[name] = param.value(place)  # type: ignore[arg-type]  # a place goes to the parameter it came from
        if len(config) == len(self._names) and tuple(config) == self._names:
            return config
        return {name: config[name] for name in self._names if name in config}


Forbid: TypeAlias = Callable[[Config], bool] | Iterable[Mapping[str, object]]

ACCEPTED = "Real(low, high), Integer(low, high), Ordered(values) or Choice(options)"


class Space(Configurations):
    """The parameters to tune, by name, and what must not be proposed.

    `params` is a mapping, for names that are not Python identifiers. Parameters keep the order given.
    `forbid` is a function of a configuration that returns true for what must not be proposed, or a list of partial
    configurations (one value, or a set of values, per name): no proposal matches any of them.

    >>> from farthing import Choice, Integer
    >>> space = Space(
    ...     booster=Choice(["gbtree", "dart"]),
    ...     depth=Integer(1, 16),
    ...     drop_rate=Real(0.0, 0.5, when={"booster": "dart"}),
    ...     forbid=[{"booster": "dart", "depth": {15, 16}}],
    ... )
    >>> space.decode([0.2, 0.5, 0.5])
    {'booster': 'gbtree', 'depth': 9}
    """

    def __init__(
        self,
        params: Mapping[str, Parameter] | None = None,
        /,
        *,
        forbid: Forbid | None = None,
        **named: Parameter,
    ) -> None:
        super().__init__(_checked_params(params, named))
        self._forbidden, self._forbid = self._checked_forbid(forbid)
        self._forbidden_at_once = united(self._forbidden)

    def _checked_forbid(self, forbid: Forbid | None) -> tuple[tuple[Clause, ...], Callable[[Config], bool] | None]:
        if forbid is None or callable(forbid):
            return (), forbid
        if isinstance(forbid, (str, Mapping)) or not isinstance(forbid, Iterable):
            refuse("forbid", "a function of a config, or a list of partial configs", forbid, InvalidSpace)
        return self._conditions.clauses("forbid", forbid), None

    @classmethod
    def of(cls, thing: object) -> Space:
        """Import a space written for another library: a ConfigSpace, or a mapping from names to parameters.

        A parameter may be Farthing's, a list of options, a frozen `uniform`, `loguniform` or `randint` of scipy.stats,
        an Optuna distribution, a Ray Tune domain or a ConfigSpace hyperparameter, and they may be mixed. What Farthing
        cannot represent raises an `InvalidSpace` that names it. A Space is returned as it is.

        >>> from farthing import Integer
        >>> Space.of({"depth": Integer(1, 16), "batch": [16, 32, 64], "booster": ["gbtree", "dart"]})
        Space(depth=Integer(1, 16), batch=Ordered([16, 32, 64], log=True), booster=Choice(['gbtree', 'dart']))
        """
        if isinstance(thing, Space):
            return thing
        params, forbid = foreign.read(thing)
        return cls(params, forbid=forbid)

    def __repr__(self) -> str:
        if all(name.isidentifier() and name != "forbid" for name in self._names):
            parts = [f"{name}={param!r}" for name, param in self._params.items()]
        else:
            parts = [repr(self._params)]
        if self._forbid or self._forbidden:
            parts.append(f"forbid={self._forbid or serialization.partial_configs(self._params, self._forbidden)!r}")
        return f"Space({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        if self._forbid != other._forbid or self.difference(other.as_json()) is not None:
            return False
        # The same JSON may still hide different objects behind one repr.
        return all(
            replace(mine, when=None) == replace(theirs, when=None)
            for mine, theirs in zip(self._list, other._list, strict=True)
        )

    def __hash__(self) -> int:
        return hash(self._names)

    # What must not be proposed

    def allows(self, config: Mapping[str, Any]) -> bool:
        """Whether a configuration is not forbidden.

        >>> from farthing import Integer
        >>> Space(depth=Integer(1, 4), forbid=[{"depth": {3, 4}}]).allows({"depth": 3})
        False
        """
        if self._forbid is None:
            key = self.key(config) if self._forbidden else ()
            return not any(clause.holds(key) for clause in self._forbidden)
        try:
            return not self._forbid(dict(config))
        except Exception as error:
            raise InvalidSpace(f"forbid raised {error!r} for config {dict(config)!r}") from error

    def allowed(self, U: ArrayLike) -> Mask:
        """Which rows of unit coordinates (n, p) are not forbidden.

        >>> from farthing import Integer
        >>> Space(depth=Integer(1, 4), forbid=lambda c: c["depth"] > 2).allowed([[0.1], [0.9]]).tolist()
        [True, False]
        """
        if self._forbid is not None:
            return np.array([self.allows(config) for config in self.decode_many(U)], dtype=np.bool_)
        if not self._forbidden:
            return np.ones(len(self._clipped(U)), dtype=np.bool_)
        rows, levels, active = self._locate(U)
        forbidden = np.zeros(len(rows), dtype=np.bool_)
        for clause in self._forbidden_at_once:
            forbidden |= clause.holds_in(levels, active)
        return ~forbidden

    # Finite spaces

    @property
    def size(self) -> int | None:
        """How many configurations there are before `forbid`, None if a Real can be active.

        Without conditions this is a product. Parameters linked by conditions are counted by a walk over their
        parents, merging levels that every condition treats alike.

        >>> from farthing import Choice, Integer
        >>> Space(a=Choice(["x", "y"]), b=Integer(1, 5, when={"a": "y"})).size
        6
        """
        return self._conditions.size

    def enumerate(self, *, skip: Container[Key] = frozenset(), most: int | None = None) -> Iterator[Config]:
        """All configurations of a finite space that are not forbidden, lazily, the last parameter fastest.

        Those whose `key` is in `skip` are left out; `forbid` is not asked about them. It is asked about `most` others.

        >>> from farthing import Choice, Integer
        >>> list(Space(a=Choice(["x", "y"]), b=Integer(1, 2, when={"a": "y"})).enumerate())
        [{'a': 'x'}, {'a': 'y', 'b': 1}, {'a': 'y', 'b': 2}]
        """
        if self.size is None:
            reals = [name for name, param in self._params.items() if isinstance(param, Real)]
            raise InvalidSpace(f"parameter {reals[0]!r}: is a Real, whose values cannot be enumerated")
        keys = (key for key in self._conditions.walk() if key not in skip)
        return filter(self.allows, map(self._config, islice(keys, most)))

    # Files

    def as_json(self) -> dict[str, Any]:
        """The space as JSON. Options that JSON cannot hold are stored as their repr.

        >>> Space(eta=Real(0, 1)).as_json()["parameters"]
        [{'name': 'eta', 'type': 'Real', 'low': 0.0, 'high': 1.0, 'log': False, 'when': None}]
        """
        forbid = self._forbidden if self._forbid is None else self._forbid
        return serialization.as_json(self._params, self._conditions.when, forbid)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Space:
        """The space that `as_json` stored, or `InvalidSpace` naming what a file cannot hold.

        >>> from farthing import Integer
        >>> space = Space(eta=Real(0, 1), depth=Integer(1, 4))
        >>> Space.from_json(space.as_json()) == space
        True
        """
        params, forbidden = serialization.from_json(stored)
        return cls(params, forbid=forbidden or None)

    def difference(self, stored: Mapping[str, Any]) -> str | None:
        """The first difference from a space stored by `as_json`, in words; None if there is none.

        >>> Space(lr=Real(0, 0.1)).difference(Space(lr=Real(0, 1)).as_json())
        "parameter 'lr': high is 0.1 here and 1.0 there"
        """
        return serialization.difference(self.as_json(), stored)


def _checked_params(params: Mapping[str, Parameter] | None, named: Mapping[str, Parameter]) -> dict[str, Parameter]:
    if params is not None and not isinstance(params, Mapping):
        refuse("params", f"names and parameters, each {ACCEPTED}", params, InvalidSpace)
    checked: dict[str, Parameter] = {}
    for name, param in [*(params or {}).items(), *named.items()]:
        if not isinstance(name, str) or not name:
            refuse("name of a parameter", "a text that is not empty", name, InvalidSpace)
        if name in checked:
            raise InvalidSpace(f"parameter {name!r}: is given twice, in the mapping and as a keyword")
        if not isinstance(param, Parameter):
            refuse(f"parameter {name!r}", ACCEPTED, param, InvalidSpace)
        checked[name] = param
    if not checked:
        raise InvalidSpace(f"a space needs at least one parameter, got none; expected {ACCEPTED}")
    return checked
