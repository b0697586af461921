"""The space of configurations, and its translation to the unit cube.

p   number of parameters; unit coordinates are u (p,) or U (n, p) in [0, 1], one per parameter
f   number of feature columns, the model's view of a configuration: features (n, f)
key one hashable tuple per configuration: the float of a `Real`, the level's index of the others, None where
    inactive. Configurations, keys and unit coordinates are three spellings of one thing; see `parameters`.

A parameter with `when` is active only while its parents have the values named. Inactive parameters sit at one
fixed point, so configurations that differ only in what has no effect are one point to every model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidArgument, InvalidConfig, InvalidSpace
from farthing.parameters import Array, Choice, Discrete, Integer, Ordered, Parameter, Real, same

__all__ = ["Choice", "Config", "Integer", "Ordered", "Parameter", "Real", "Space"]

Config: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[float | int | None, ...]
Forbid: TypeAlias = Callable[[Config], bool] | Iterable[Mapping[str, object]]
Levels: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

ACCEPTED = "Real(low, high), Integer(low, high), Ordered(values) or Choice(options)"
ALL_LEVELS = 12  # a parameter with more levels than this is searched by jumps,
ALL_OPTIONS = 64  # a choice, in which no option is near another, only with more than this


@dataclass(frozen=True)
class _Clause:
    """A conjunction: each parameter named is active and at one of the levels wanted."""

    wanted: tuple[tuple[int, frozenset[int]], ...]

    def holds(self, key: Sequence[float | int | None]) -> bool:
        return all(key[j] in levels for j, levels in self.wanted)

    def holds_in(self, levels: Levels, active: Mask) -> Mask:
        found = np.ones(len(levels), dtype=np.bool_)
        for j, wanted in self._arrays:
            found &= active[:, j] & np.isin(levels[:, j], wanted)
        return found

    @cached_property
    def _arrays(self) -> list[tuple[int, Levels]]:
        return [(j, np.array(sorted(levels), dtype=np.int64)) for j, levels in self.wanted]


class Space:
    """The parameters to tune, by name, and what must not be proposed.

    `params` is a mapping for names that are not Python identifiers; parameters keep the order given.
    `forbid` is a function of a configuration that is true for what must not be proposed, or a list of partial
    configurations (a value, or a set of values, per name) of which none may match.

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
        self._params = _checked_params(params, named)
        self._names = tuple(self._params)
        self._list = tuple(self._params.values())
        self._column = {name: j for j, name in enumerate(self._names)}
        self._when = tuple(
            self._clause(f"parameter {name!r}: when", param.when) if param.when else None
            for name, param in self._params.items()
        )
        self._order = self._sorted_by_parents()
        self._conditional = tuple((j, when) for j in self._order if (when := self._when[j]))
        self._forbidden, self._forbid = self._checked_forbid(forbid)
        self._lay_out()

    def _clause(self, who: str, partial: Mapping[str, object]) -> _Clause:
        return _Clause(tuple(self._wanted(who, name, value) for name, value in partial.items()))

    def _wanted(self, who: str, name: str, value: object) -> tuple[int, frozenset[int]]:
        if name not in self._params:
            raise InvalidSpace(f"{who} refers to unknown parameter {name!r}; parameters are {self._named()}")
        param = self._params[name]
        if isinstance(param, Real):
            raise InvalidSpace(
                f"{who} refers to {name!r}, a Real; accepted: the name of a Choice, Ordered or Integer"
            )
        several = isinstance(value, AbstractSet)
        values = list(value) if isinstance(value, AbstractSet) else [value]
        if not values:
            raise InvalidSpace(f"{who} names no value of {name!r}; accepted: {param.accepted}")
        levels = set()
        for one in values:
            level = param.find(one)
            if level is None:
                hint = "" if several or not isinstance(one, (list, tuple, range)) else ", or a set of them"
                raise InvalidSpace(f"{who} wants {name!r} to be {one!r}; accepted: {param.accepted}{hint}")
            levels.add(level)
        return self._column[name], frozenset(levels)

    def _sorted_by_parents(self) -> tuple[int, ...]:
        """Columns in the order given, but every parent before its children."""
        order: list[int] = []

        def visit(j: int, path: tuple[int, ...]) -> None:
            if j in path:
                cycle = " -> ".join(self._names[i] for i in (*path[path.index(j) :], j))
                raise InvalidSpace(
                    f"parameter {self._names[j]!r}: when must not lead back to the parameter, got {cycle}"
                )
            if j not in order:
                for parent, _ in self._parents(j):
                    visit(parent, (*path, j))
                order.append(j)

        for j in range(len(self._names)):
            visit(j, ())
        return tuple(order)

    def _parents(self, j: int) -> tuple[tuple[int, frozenset[int]], ...]:
        when = self._when[j]
        return when.wanted if when else ()

    def _checked_forbid(
        self, forbid: Forbid | None
    ) -> tuple[tuple[_Clause, ...], Callable[[Config], bool] | None]:
        if forbid is None or callable(forbid):
            return (), forbid
        if isinstance(forbid, (str, Mapping)) or not isinstance(forbid, Iterable):
            raise InvalidSpace(f"forbid must be a function or a list of partial configs, got {forbid!r}")
        partials = list(forbid)
        for i, partial in enumerate(partials):
            if not isinstance(partial, Mapping) or not partial:
                raise InvalidSpace(
                    f"forbid[{i}] must map names to values, as {{'depth': 3}}, got {partial!r}"
                )
        return tuple(self._clause(f"forbid[{i}]", partial) for i, partial in enumerate(partials)), None

    def _lay_out(self) -> None:
        """Precompute what every call on arrays needs: these run inside the search for the next proposal."""
        p = len(self._list)
        self._bins = np.array([float(param.levels or 1) for param in self._list])
        self._real = np.array([isinstance(param, Real) for param in self._list])
        self._log_integers = tuple(
            (j, param) for j, param in enumerate(self._list) if isinstance(param, Integer) and param.log
        )
        widths = [param.levels if _is_one_hot(param) else 1 for param in self._list]
        self._groups = np.repeat(np.arange(p), np.array(widths))
        self._groups.flags.writeable = False
        self._start = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
        # Real and Integer columns are their unit coordinates; the others are filled in one by one.
        self._plain = np.array([isinstance(param, (Real, Integer)) for param in self._list])
        self._special = tuple(
            (j, param) for j, param in enumerate(self._list) if isinstance(param, (Ordered, Choice))
        )

    # Reading it

    @property
    def params(self) -> Mapping[str, Parameter]:
        """The parameters by name, in order; read-only.

        >>> Space(depth=Integer(1, 16)).params["depth"]
        Integer(1, 16)
        """
        return MappingProxyType(self._params)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order.

        >>> Space(a=Real(0, 1), b=Real(0, 1)).names
        ('a', 'b')
        """
        return self._names

    @property
    def levels(self) -> tuple[int | None, ...]:
        """How many values each parameter has, None for a `Real`.

        >>> Space(a=Real(0, 1), b=Integer(1, 3)).levels
        (None, 3)
        """
        return tuple(param.levels for param in self._list)

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each feature column (f,), the parameter it belongs to.

        Columns of one parameter share one length-scale. For a choice of k options that makes the kernel a
        function of whether two options are equal: exchangeable between options, with one thing to learn
        instead of k.

        >>> Space(a=Choice(["x", "y", "z"]), b=Real(0, 1)).groups.tolist()
        [0, 0, 0, 1]
        """
        return self._groups

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        if all(name.isidentifier() and name != "forbid" for name in self._names):
            parts = [f"{name}={param!r}" for name, param in self._params.items()]
        else:
            parts = [repr(self._params)]
        if self._forbid or self._forbidden:
            parts.append(f"forbid={self._forbid or self._partials()!r}")
        return f"Space({', '.join(parts)})"

    def _partials(self) -> list[dict[str, object]]:
        return [_values(self._params, self._partial(clause)) for clause in self._forbidden]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        if self._forbid != other._forbid or self.difference(other.describe()) is not None:
            return False
        # The same description may still hide different objects behind one repr.
        return all(
            replace(mine, when=None) == replace(theirs, when=None)
            for mine, theirs in zip(self._list, other._list, strict=True)
        )

    def __hash__(self) -> int:
        return hash(self._names)

    # Configurations and keys

    def key(self, config: Mapping[str, Any]) -> Key:
        """A hashable identity: levels by index, None where inactive.

        >>> space = Space(booster=Choice(["gbtree", "dart"]), eta=Real(0, 1, when={"booster": "dart"}))
        >>> space.key({"booster": "gbtree"}), space.key({"booster": "dart", "eta": 0.5})
        ((0, None), (1, 0.5))
        """
        key: list[float | int | None] = [None] * len(self._list)
        for j in self._order:
            when = self._when[j]
            if when is None or when.holds(key):
                key[j] = self._place(j, config)
        return tuple(key)

    def _place(self, j: int, config: Mapping[str, Any]) -> float | int:
        name, param = self._names[j], self._list[j]
        if name not in config:
            raise InvalidConfig(f"parameter {name!r}: missing; accepted: {param.accepted}")
        place = param.find(config[name])
        if place is None:
            raise InvalidConfig(f"parameter {name!r}: got {config[name]!r}; accepted: {param.accepted}")
        return place

    def _config(self, key: Sequence[float | int | None]) -> Config:
        return {
            name: param.value(place)  # type: ignore[arg-type]  # a place goes to the parameter it came from
            for name, param, place in zip(self._names, self._list, key, strict=True)
            if place is not None
        }

    def validate(self, config: Mapping[str, Any]) -> Config:
        """A user's configuration as a plain dict in the space's order, or `InvalidConfig` saying why not.

        Numbers are kept as typed, not rounded; options become the space's own objects. None is accepted for
        an inactive parameter, any other value is not. A forbidden configuration is valid: see `allows`.

        >>> Space(depth=Integer(1, 16), eta=Real(0, 1)).validate({"eta": 1, "depth": 3.0})
        {'depth': 3, 'eta': 1.0}
        """
        if not isinstance(config, Mapping):
            raise InvalidConfig(f"a config must map names to values, got {config!r}")
        for name in config:
            if name not in self._params:
                raise InvalidConfig(f"unknown parameter {name!r}; parameters are {self._named()}")
        key = self.key(config)
        for j, name in enumerate(self._names):
            if key[j] is None and config.get(name) is not None:
                raise InvalidConfig(
                    f"parameter {name!r}: got {config[name]!r}, but it is used only when "
                    f"{self._condition(j)}; leave it out"
                )
        return self._config(key)

    def _condition(self, j: int) -> str:
        parts = []
        for parent, levels in self._parents(j):
            values = [repr(self._list[parent].value(i)) for i in sorted(levels)]
            parts.append(f"{self._names[parent]!r} is {' or '.join(values)}")
        return " and ".join(parts)

    def _named(self) -> str:
        return ", ".join(map(repr, self._names))

    # Configurations and the unit cube

    def encode(self, config: Mapping[str, Any]) -> Array:
        """Unit coordinates (p,): levels at the centre of their bin, inactive parameters at 0.5.

        >>> Space(eta=Real(0, 2), depth=Integer(1, 4)).encode({"eta": 0.5, "depth": 1}).tolist()
        [0.25, 0.125]
        """
        row: Array = self.encode_many([config])[0]
        return row

    def encode_many(self, configs: Iterable[Mapping[str, Any]]) -> Array:
        """Unit coordinates (n, p) of several configurations.

        >>> Space(eta=Real(0, 2)).encode_many([{"eta": 0.5}, {"eta": 1.0}]).tolist()
        [[0.25], [0.5]]
        """
        keys = [self.key(config) for config in configs]
        U = np.full((len(keys), len(self._list)), 0.5)  # (n, p)
        for j, param in enumerate(self._list):
            rows = [i for i, key in enumerate(keys) if key[j] is not None]
            places: list[Any] = [keys[i][j] for i in rows]
            if isinstance(param, Real):
                U[rows, j] = param.units(places)
            else:
                U[rows, j] = _centres(param, np.array(places, dtype=np.int64))
        return U

    def decode(self, u: ArrayLike) -> Config:
        """The configuration at unit coordinates (p,): plain values of the active parameters, in order.

        Encoding the result leads back to exactly the same configuration.

        >>> Space(eta=Real(1e-4, 1, log=True), depth=Integer(1, 4)).decode([0.5, 1.0])
        {'eta': 0.01, 'depth': 4}
        """
        return self._config(self.keys(np.asarray(u, dtype=np.float64)[np.newaxis])[0])

    def decode_many(self, U: ArrayLike) -> list[Config]:
        """The configurations at several unit coordinates (n, p).

        >>> Space(depth=Integer(1, 4)).decode_many([[0.0], [1.0]])
        [{'depth': 1}, {'depth': 4}]
        """
        return [self._config(key) for key in self.keys(U)]

    def keys(self, U: ArrayLike) -> list[Key]:
        """The keys of the configurations at unit coordinates (n, p).

        >>> Space(eta=Real(0, 1), depth=Integer(1, 4)).keys([[0.5, 0.0], [1.0, 1.0]])
        [(0.5, 0), (1.0, 3)]
        """
        rows, levels, active = self._locate(U)
        columns: list[list[Any]] = []
        for j, param in enumerate(self._list):
            places = param.places(rows[:, j]) if isinstance(param, Real) else levels[:, j].tolist()
            if not active[:, j].all():
                places = [
                    place if used else None for place, used in zip(places, active[:, j].tolist(), strict=True)
                ]
            columns.append(places)
        return list(zip(*columns, strict=True))

    def _locate(self, U: ArrayLike) -> tuple[Array, Levels, Mask]:
        """Rows clipped to the cube, the level of each coordinate (0 for a Real), which are active; (n, p)."""
        given = np.asarray(U, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(self._list):
            raise InvalidArgument(
                f"unit coordinates must have shape (n, {len(self._list)}), got {given.shape}"
            )
        rows = np.clip(given, 0.0, 1.0)
        levels = np.minimum(np.floor(rows * self._bins), self._bins - 1).astype(np.int64)
        for j, param in self._log_integers:
            levels[:, j] = param.log_levels(rows[:, j])
        active = np.ones(rows.shape, dtype=np.bool_)
        for j, when in self._conditional:
            active[:, j] = when.holds_in(levels, active)
        return rows, levels, active

    def _snapped(self, rows: Array, levels: Levels, active: Mask) -> Array:
        snapped = (levels + 0.5) / self._bins
        for j, param in self._log_integers:
            snapped[:, j] = param.log_centres(levels[:, j])
        return np.where(active, np.where(self._real, rows, snapped), 0.5)

    def snap(self, U: ArrayLike) -> Array:
        """Coordinates (n, p) at their canonical places: bin centres, active Reals as they are, inactive 0.5.

        >>> Space(eta=Real(0, 1), depth=Integer(1, 4)).snap([[0.3, 0.3]]).tolist()
        [[0.3, 0.375]]
        """
        return self._snapped(*self._locate(U))

    def active(self, U: ArrayLike) -> Mask:
        """Which parameters (n, p) have an effect.

        >>> space = Space(booster=Choice(["gbtree", "dart"]), eta=Real(0, 1, when={"booster": "dart"}))
        >>> space.active([[0.0, 0.5], [1.0, 0.5]]).tolist()
        [[True, False], [True, True]]
        """
        return self._locate(U)[2]

    # What the model sees

    def features(self, U: ArrayLike) -> Array:
        """What a kernel sees (n, f) of unit coordinates (n, p).

        A Real or Integer is one column, its snapped coordinate; an Ordered one column, its position by value.
        A Choice has one column per option, 1/sqrt(2) for the chosen one and 0 else, so that different options
        are at distance 1; with two options one column of 0 or 1 says the same. Inactive parameters are at
        0.5, or at the centroid of the options.

        >>> space = Space(eta=Real(0, 1), kind=Choice(["a", "b", "c"]))
        >>> space.features([[0.3, 0.0], [0.3, 1.0]]).round(2).tolist()
        [[0.3, 0.71, 0.0, 0.0], [0.3, 0.0, 0.0, 0.71]]
        """
        rows, levels, active = self._locate(U)
        F = np.zeros((len(rows), len(self._groups)))  # (n, f)
        F[:, self._start[self._plain]] = self._snapped(rows, levels, active)[:, self._plain]
        for j, param in self._special:
            column, used = self._start[j], active[:, j]
            if _is_one_hot(param):
                hot = np.arange(param.levels) == levels[:, j, np.newaxis]
                block = np.where(used[:, np.newaxis], hot, 1 / param.levels) / math.sqrt(2)
                F[:, column : column + param.levels] = block
            else:
                seen = param.positions[levels[:, j]] if isinstance(param, Ordered) else levels[:, j]
                F[:, column] = np.where(used, seen, 0.5)
        return F

    def pull(self, U: ArrayLike, G: ArrayLike) -> Array:
        """Gradients (n, p) by unit coordinate from gradients G (n, f) by feature: 0 but for active Reals.

        >>> Space(eta=Real(0, 1), depth=Integer(1, 4)).pull([[0.3, 0.3]], [[2.0, 5.0]]).tolist()
        [[2.0, 0.0]]
        """
        columns = np.asarray(G, dtype=np.float64)[:, self._start]
        return np.where(self.active(U) & self._real, columns, 0.0)

    def neighbours(self, u: ArrayLike) -> Array:
        """Snapped rows (m, p) that differ from u (p,) in one active parameter with levels; m may be 0.

        All other levels of a parameter with few (12, or 64 for a Choice), otherwise jumps of 1, 2, 4, ...
        levels. Children that such a move makes active start in the middle of their range.

        >>> Space(eta=Real(0, 1), depth=Integer(1, 4)).neighbours([0.3, 0.125]).tolist()
        [[0.3, 0.375], [0.3, 0.625], [0.3, 0.875]]
        """
        rows, levels, active = self._locate(np.asarray(u, dtype=np.float64)[np.newaxis])
        row = self._snapped(rows, levels, active)
        blocks = [np.empty((0, len(self._list)))]
        for j, param in enumerate(self._list):
            if isinstance(param, Real) or not active[0, j]:
                continue
            moves = np.array(_moves(param, int(levels[0, j])), dtype=np.int64)
            block = np.repeat(row, len(moves), axis=0)
            block[:, j] = _centres(param, moves)
            blocks.append(block)
        return self.snap(np.concatenate(blocks))

    # What must not be proposed

    def allows(self, config: Mapping[str, Any]) -> bool:
        """Whether a configuration is not forbidden.

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

        >>> Space(depth=Integer(1, 4), forbid=lambda c: c["depth"] > 2).allowed([[0.1], [0.9]]).tolist()
        [True, False]
        """
        if self._forbid is not None:
            return np.array([self.allows(config) for config in self.decode_many(U)], dtype=np.bool_)
        rows, levels, active = self._locate(U)
        forbidden = np.zeros(len(rows), dtype=np.bool_)
        for clause in self._forbidden:
            forbidden |= clause.holds_in(levels, active)
        return ~forbidden

    # Finite spaces

    @cached_property
    def size(self) -> int | None:
        """How many configurations there are before `forbid`, None if a Real can be active.

        Without conditions this is a product. Parameters linked by conditions are counted by a walk over their
        parents, taking together levels that no condition tells apart; the cost grows with the product of what
        is left, group by group.

        >>> Space(a=Choice(["x", "y"]), b=Integer(1, 5, when={"a": "y"})).size
        6
        """
        total = 1
        for group in self._linked():
            count = self._count(group, [None] * len(self._list))
            if count is None:
                return None
            total *= count
        return total

    def _linked(self) -> list[list[int]]:
        """Columns in groups that conditions connect, parents first within each."""
        group = {j: {j} for j in self._order}
        for j in self._order:
            for parent, _ in self._parents(j):
                merged = group[j] | group[parent]
                group.update(dict.fromkeys(merged, merged))
        parents = {parent for j in self._order for parent, _ in self._parents(j)}
        order = sorted(self._order, key=lambda j: j not in parents)  # stable: parents stay sorted
        distinct = {min(members): members for members in group.values()}
        return [[j for j in order if j in distinct[first]] for first in sorted(distinct)]

    def _count(self, group: Sequence[int], key: list[float | int | None]) -> int | None:
        if not group:
            return 1
        j, param, when = group[0], self._list[group[0]], self._when[group[0]]
        key[j] = None
        if when is not None and not when.holds(key):
            return self._count(group[1:], key)
        if isinstance(param, Real):
            return None
        total = 0
        for level, times in self._alike[j]:
            key[j] = level
            rest = self._count(group[1:], key)
            if rest is None:
                return None
            total += times * rest
        return total

    @cached_property
    def _alike(self) -> list[list[tuple[int, int]]]:
        """Per parameter, the levels that no condition tells apart, as (one of them, how many)."""
        named: list[list[frozenset[int]]] = [[] for _ in self._list]
        for child in self._order:
            for parent, wanted in self._parents(child):
                named[parent].append(wanted)
        return [
            _classes(conditions, param.levels or 0)
            for conditions, param in zip(named, self._list, strict=True)
        ]

    def enumerate(self) -> Iterator[Config]:
        """All configurations of a finite space that are not forbidden, lazily, the last parameter fastest.

        >>> list(Space(a=Choice(["x", "y"]), b=Integer(1, 2, when={"a": "y"})).enumerate())
        [{'a': 'x'}, {'a': 'y', 'b': 1}, {'a': 'y', 'b': 2}]
        """
        if self.size is None:
            reals = [name for name, param in self._params.items() if isinstance(param, Real)]
            raise InvalidSpace(f"parameter {reals[0]!r}: a Real has no finite list of values to enumerate")
        configs = map(self._config, self._walk(0, [None] * len(self._list)))
        return filter(self.allows, configs)

    def _walk(self, depth: int, key: list[float | int | None]) -> Iterator[Key]:
        if depth == len(self._order):
            yield tuple(key)
            return
        j = self._order[depth]
        key[j] = None
        when = self._when[j]
        used = when is None or when.holds(key)
        for level in range(self._list[j].levels or 0) if used else [None]:
            key[j] = level
            yield from self._walk(depth + 1, key)

    # Files

    def store_config(self, config: Mapping[str, Any]) -> dict[str, float | int]:
        """A configuration as JSON: numbers as they are, options by index, so that any object can be one.

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

        >>> Space(kind=Choice(["a", "b"]), depth=Integer(1, 4)).load_config({"kind": 1, "depth": 2})
        {'kind': 'b', 'depth': 2}
        """
        key: list[float | int | None] = [None] * len(self._list)
        for name, value in stored.items():
            if name not in self._params:
                raise InvalidConfig(f"unknown parameter {name!r}; parameters are {self._named()}")
            place = self._params[name].load(value)
            if place is None:
                raise InvalidConfig(
                    f"parameter {name!r}: stored {value!r} does not lead to {self._params[name].accepted}"
                )
            key[self._column[name]] = place
        return self._config(key)

    def _partial(self, clause: _Clause) -> dict[str, list[Any]]:
        """A clause with values as they are stored."""
        return {
            self._names[j]: [self._list[j].store(level) for level in sorted(levels)]
            for j, levels in clause.wanted
        }

    def describe(self) -> dict[str, Any]:
        """The space as JSON. Options that JSON cannot hold are described by their repr.

        >>> Space(eta=Real(0, 1)).describe()["parameters"]
        [{'name': 'eta', 'type': 'Real', 'low': 0.0, 'high': 1.0, 'log': False, 'when': None}]
        """
        entries = []
        for name, param, when in zip(self._names, self._list, self._when, strict=True):
            entry = {"name": name, "type": type(param).__name__, **param.settings()}
            for field in ("values", "options"):
                if field in entry:
                    entry[field] = [_to_json(option) for option in entry[field]]
            entries.append({**entry, "when": self._partial(when) if when else None})
        forbid: Any = [self._partial(clause) for clause in self._forbidden] or None
        if self._forbid is not None:
            forbid = {"function": _function_name(self._forbid)}
        return {"parameters": entries, "forbid": forbid}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Space:
        """The space that `describe` described, or `InvalidSpace` naming what a file cannot hold.

        >>> space = Space(eta=Real(0, 1), depth=Integer(1, 4))
        >>> Space.from_description(space.describe()) == space
        True
        """
        try:
            bare = {entry["name"]: _rebuilt(entry) for entry in description["parameters"]}
            whens = {
                entry["name"]: _values(bare, entry["when"])
                for entry in description["parameters"]
                if entry["when"]
            }
            forbid = description["forbid"]
            if isinstance(forbid, Mapping):
                raise InvalidSpace(
                    f"forbid: function {forbid['function']} cannot be rebuilt from a file; pass space= again"
                )
            partials = [_values(bare, partial) for partial in forbid or []]
        except (KeyError, TypeError, IndexError) as error:
            raise InvalidSpace(f"not the description of a space: {error!r}") from error
        params = {name: replace(param, when=whens.get(name)) for name, param in bare.items()}
        return cls(params, forbid=partials or None)

    def difference(self, description: Mapping[str, Any]) -> str | None:
        """The first difference from a stored description, in words; None if there is none.

        >>> Space(lr=Real(0, 0.1)).difference(Space(lr=Real(0, 1)).describe())
        "parameter 'lr': high is 0.1 here and 1.0 there"
        """
        here = self.describe()
        mine = {entry["name"]: entry for entry in here["parameters"]}
        theirs = {entry["name"]: entry for entry in description["parameters"]}
        for name in [*mine, *theirs]:
            if name not in mine or name not in theirs:
                sides = ("here", "there") if name in mine else ("there", "here")
                return f"parameter {name!r}: is {sides[0]} but not {sides[1]}"
            for field in mine[name]:
                found = _difference(field, mine[name][field], theirs[name].get(field))
                if found:
                    return f"parameter {name!r}: {found}"
        if list(mine) != list(theirs):
            return f"the order of parameters is {list(mine)} here and {list(theirs)} there"
        return _difference("forbid", here["forbid"], description["forbid"])


def _checked_params(
    params: Mapping[str, Parameter] | None, named: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    if params is not None and not isinstance(params, Mapping):
        raise InvalidSpace(f"params must map names to parameters, got {params!r}; accepted: {ACCEPTED}")
    checked: dict[str, Parameter] = {}
    for name, param in [*(params or {}).items(), *named.items()]:
        if not isinstance(name, str) or not name:
            raise InvalidSpace(f"the name of a parameter must be a string, not empty, got {name!r}")
        if name in checked:
            raise InvalidSpace(f"parameter {name!r}: given twice, in the mapping and by keyword")
        if not isinstance(param, Parameter):
            raise InvalidSpace(f"parameter {name!r}: got {param!r}; accepted: {ACCEPTED}")
        checked[name] = param
    if not checked:
        raise InvalidSpace(f"a space needs at least one parameter, got none; accepted: {ACCEPTED}")
    return checked


def _is_one_hot(param: Parameter) -> TypeGuard[Choice]:
    return isinstance(param, Choice) and param.levels > 2


def _centres(param: Discrete, levels: Levels) -> Array:
    if isinstance(param, Integer) and param.log:
        return param.log_centres(levels)
    return np.asarray((levels + 0.5) / param.levels, dtype=np.float64)


def _moves(param: Discrete, level: int) -> list[int]:
    """The levels that one step of a local search may try from a level."""
    if param.levels <= (ALL_OPTIONS if isinstance(param, Choice) else ALL_LEVELS):
        return [other for other in range(param.levels) if other != level]
    jumps = [2**i for i in range(param.levels.bit_length())]
    return [other for jump in jumps for other in (level - jump, level + jump) if 0 <= other < param.levels]


def _classes(conditions: Sequence[frozenset[int]], levels: int) -> list[tuple[int, int]]:
    seen: dict[tuple[bool, ...], tuple[int, int]] = {}
    named = sorted(frozenset[int]().union(*conditions))
    for level in named:
        sign = tuple(level in wanted for wanted in conditions)
        first, times = seen.get(sign, (level, 0))
        seen[sign] = first, times + 1
    unnamed = [(-1, levels - len(named))] if levels > len(named) else []  # -1 meets no condition
    return [*seen.values(), *unnamed]


def _to_json(option: Any) -> Any:
    """An option as JSON that `_from_json` can undo, or its repr without the memory address."""
    if option is None or type(option) in (str, int, bool):
        return option
    if type(option) is float:
        return option if math.isfinite(option) else {"float": repr(option)}
    if type(option) in (list, tuple):
        return {type(option).__name__: [_to_json(item) for item in option]}
    if type(option) is dict and all(type(name) is str for name in option):
        return {"dict": {name: _to_json(item) for name, item in option.items()}}
    return {"repr": _without_address(repr(option))}


def _from_json(name: str, stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        return stored
    ((kind, content),) = stored.items()
    if kind == "repr":
        raise InvalidSpace(
            f"parameter {name!r}: option {content} cannot be rebuilt from a file; pass space= with it"
        )
    if kind == "float":
        return float(content)
    if kind == "dict":
        return {key: _from_json(name, item) for key, item in content.items()}
    items = [_from_json(name, item) for item in content]
    return tuple(items) if kind == "tuple" else items


def _rebuilt(entry: Mapping[str, Any]) -> Parameter:
    """The parameter of one entry of a description, still without its condition."""
    fields = {field: value for field, value in entry.items() if field not in ("name", "type", "when")}
    for field in ("values", "options"):
        if field in fields:
            fields[field] = [_from_json(entry["name"], option) for option in fields[field]]
    kinds: dict[str, type[Parameter]] = {kind.__name__: kind for kind in (Real, Integer, Ordered, Choice)}
    return kinds[entry["type"]](**fields)


def _values(params: Mapping[str, Parameter], partial: Mapping[str, list[Any]]) -> dict[str, object]:
    """A stored clause with the values that it stands for: one, or a set of several."""
    found: dict[str, object] = {}
    for name, stored in partial.items():
        param: Any = params[name]
        values = [param.value(param.load(item)) for item in stored]
        found[name] = values[0] if len(values) == 1 else set(values)
    return found


def _without_address(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _function_name(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else _without_address(repr(function))


def _difference(what: str, here: Any, there: Any) -> str | None:
    if same(here, there):
        return None
    if isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            return f"{what} has length {len(here)} here and {len(there)} there"
        i = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if not same(a, b))
        what, here, there = f"{what}[{i}]", here[i], there[i]
    return f"{what} is {here!r} here and {there!r} there"
