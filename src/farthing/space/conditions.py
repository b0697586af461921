"""Conditions: which parameters have an effect, and how many configurations that leaves.

A `when` makes its parameter the child of the parameters it names. Parents have levels, children may be of any type,
and no parameter is its own ancestor. Visiting every parent before its children therefore decides, one column at a
time, which are active.

p     number of parameters; a column j is a parameter by its position, levels are (n, p)
key   one place per parameter, None where inactive; while it is being filled, None where not yet known
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from farthing.checks import refuse
from farthing.errors import InvalidSpace
from farthing.numerics.arrays import Ints, Mask
from farthing.space.choices import SHOWN_OPTIONS
from farthing.space.parameters import Parameter, Real

Key: TypeAlias = tuple[float | int | None, ...]
Wanted: TypeAlias = tuple[int, frozenset[int]]


def quoted(names: Iterable[str]) -> str:
    """Names for a message.

    >>> print(quoted(["eta", "depth"]))
    'eta', 'depth'
    """
    return ", ".join(map(repr, names))


@dataclass(frozen=True)
class Clause:
    """A conjunction: each parameter named is active and at one of the levels wanted.

    >>> Clause(((0, frozenset({1, 2})),)).holds([2, None])
    True
    """

    wanted: tuple[Wanted, ...]

    def holds(self, key: Sequence[float | int | None]) -> bool:
        """Whether a key meets the clause."""
        return all(key[j] in levels for j, levels in self.wanted)

    def holds_in(self, levels: Ints, active: Mask) -> Mask:
        """Which rows (n,) of levels (n, p) meet the clause."""
        found = np.ones(len(levels), dtype=np.bool_)
        for j, is_wanted in self._tables:
            found &= active[:, j] & is_wanted[np.minimum(levels[:, j], len(is_wanted) - 1)]
        return found

    @cached_property
    def _tables(self) -> list[tuple[int, Mask]]:
        """Per parameter, whether each level is wanted; the last entry is that of all beyond. Looking levels up is much
        faster than searching for them."""
        return [(j, _table([levels])[:, 0]) for j, levels in self.wanted]


def _table(wanted: Sequence[frozenset[int]]) -> Mask:
    """Whether each level is in each of the sets, (levels, sets); the last row is that of all levels beyond."""
    table = np.zeros((max(map(max, wanted)) + 2, len(wanted)), dtype=np.bool_)
    for i, levels in enumerate(wanted):
        table[list(levels), i] = True
    return table


def united(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Clauses of which one holds where one of those given does: those about one and the same parameter are one.

    Somebody who forbids a thousand options one by one does not wait for a thousand looks at every point.

    >>> united([Clause(((0, frozenset({1})),)), Clause(((0, frozenset({2})),))])
    (Clause(wanted=((0, frozenset({1, 2})),)),)
    """
    others: list[Clause] = []
    alone: dict[int, set[int]] = {}
    for clause in clauses:
        if len(clause.wanted) == 1:
            column, levels = clause.wanted[0]
            alone.setdefault(column, set()).update(levels)
        else:
            others.append(clause)
    return (*(Clause(((column, frozenset(levels)),)) for column, levels in alone.items()), *others)


class Conditions:
    """The graph that the `when` of all parameters draws, from parents to children.

    >>> from farthing.space import Choice
    >>> conditions = Conditions({"eta": Real(0, 1, when={"kind": "b"}), "kind": Choice(["a", "b"])})
    >>> conditions.order, conditions.holds(0, [None, 1])
    ((1, 0), True)
    """

    def __init__(self, params: Mapping[str, Parameter]) -> None:
        self._names = tuple(params)
        self._list = tuple(params.values())
        self.when = tuple(
            self.clause(f"parameter {name!r}: when", param.when) if param.when else None
            for name, param in params.items()
        )
        self.order = self._sorted_by_parents()
        self._blocks = tuple(self._in_blocks())

    # Building clauses

    def clause(self, who: str, partial: Mapping[str, object]) -> Clause:
        """The clause of a partial configuration, or `InvalidSpace` naming where it stands."""
        return Clause(tuple(self._wanted(who, name, value) for name, value in partial.items()))

    def clauses(self, who: str, partials: Iterable[Mapping[str, object]]) -> tuple[Clause, ...]:
        """The clauses of several partial configurations."""
        given = list(partials)
        for i, partial in enumerate(given):
            if not isinstance(partial, Mapping) or not partial:
                refuse(f"{who}[{i}]", "names of parameters and values, such as {'depth': 3}", partial, InvalidSpace)
        return tuple(self.clause(f"{who}[{i}]", partial) for i, partial in enumerate(given))

    def _wanted(self, who: str, name: str, value: object) -> Wanted:
        if name not in self._names:
            raise InvalidSpace(f"{who} refers to unknown parameter {name!r}; parameters are {quoted(self._names)}")
        column = self._names.index(name)
        param = self._list[column]
        if isinstance(param, Real):
            raise InvalidSpace(f"{who} refers to {name!r}, a Real; expected the name of a Choice, Ordered or Integer")
        several = isinstance(value, AbstractSet)
        values = list(value) if isinstance(value, AbstractSet) else [value]
        if not values:
            raise InvalidSpace(f"{who} names no value of {name!r}; expected {param.accepted}")
        levels = set()
        for one in values:
            level = param.find(one)
            if level is None:
                hint = "" if several or not isinstance(one, (list, tuple, range)) else ", or a set of them"
                refuse(f"{who}[{name!r}]", f"{param.accepted}{hint}", one, InvalidSpace)
            levels.add(level)
        return column, frozenset(levels)

    # The graph

    def _parents(self, j: int) -> tuple[Wanted, ...]:
        when = self.when[j]
        return when.wanted if when else ()

    def _sorted_by_parents(self) -> tuple[int, ...]:
        """Columns in the order given, but every parent before its children."""
        order: list[int] = []

        def visit(j: int, path: tuple[int, ...]) -> None:
            if j in path:
                cycle = " -> ".join(self._names[i] for i in (*path[path.index(j) :], j))
                raise InvalidSpace(
                    f"parameter {self._names[j]!r}: when: expected conditions without a cycle, got {cycle}"
                )
            if j not in order:
                for parent, _ in self._parents(j):
                    visit(parent, (*path, j))
                order.append(j)

        for j in range(len(self._names)):
            visit(j, ())
        return tuple(order)

    def holds(self, j: int, key: Sequence[float | int | None]) -> bool:
        """Whether column j is active, given a key that is filled in for its parents."""
        when = self.when[j]
        return when is None or when.holds(key)

    def active(self, levels: Ints) -> Mask:
        """Which parameters (n, p) are active at levels (n, p)."""
        active = np.ones(levels.shape, dtype=np.bool_)
        for children, parents in self._blocks:
            for parent, is_wanted in parents:
                holds = is_wanted[np.minimum(levels[:, parent], len(is_wanted) - 1)] & active[:, parent, np.newaxis]
                active[:, children] &= holds
        return active

    def _in_blocks(self) -> Iterator[tuple[Ints, list[tuple[int, Mask]]]]:
        """Children that hang on the same parents, and for each of these a table (levels, children) of what is wanted.
        Somebody with a choice of learners has dozens of children, and looks them up at once."""
        blocks: dict[tuple[int, ...], list[int]] = {}
        for j in self.order:  # a block may wait for nothing that comes later: parents of its first child come before it
            if parents := tuple(parent for parent, _ in self._parents(j)):
                blocks.setdefault(parents, []).append(j)
        for parents, children in blocks.items():
            wanted = [dict(self._parents(j)) for j in children]
            yield np.array(children), [(i, _table([levels[i] for levels in wanted])) for i in parents]

    def in_words(self, j: int) -> str:
        """When column j is used, for a message."""
        parts = []
        for parent, levels in self._parents(j):
            values = [repr(self._list[parent].value(i)) for i in sorted(levels)[:SHOWN_OPTIONS]]
            more = [f"{len(levels) - SHOWN_OPTIONS} more"] if len(levels) > SHOWN_OPTIONS else []
            parts.append(f"{self._names[parent]!r} is {' or '.join(values + more)}")
        return " and ".join(parts)

    # Counting and walking

    @cached_property
    def size(self) -> int | None:
        """How many keys there are, None if a Real can be active.

        Groups of parameters that no condition links multiply. Within a group a walk over the parents counts,
        merging levels that every condition treats alike. The cost grows with the product of what is left.
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
        group = {j: {j} for j in self.order}
        for j in self.order:
            for parent, _ in self._parents(j):
                merged = group[j] | group[parent]
                group.update(dict.fromkeys(merged, merged))
        parents = {parent for j in self.order for parent, _ in self._parents(j)}
        order = sorted(self.order, key=lambda j: j not in parents)  # stable: parents stay sorted
        distinct = {min(members): members for members in group.values()}
        return [[j for j in order if j in distinct[first]] for first in sorted(distinct)]

    def _count(self, group: Sequence[int], key: list[float | int | None]) -> int | None:
        if not group:
            return 1
        j, rest = group[0], group[1:]
        key[j] = None
        if not self.holds(j, key):
            return self._count(rest, key)
        if isinstance(self._list[j], Real):
            return None
        total = 0
        for level, times in self._alike[j]:
            key[j] = level
            count = self._count(rest, key)
            if count is None:
                return None
            total += times * count
        return total

    @cached_property
    def _alike(self) -> list[list[tuple[int, int]]]:
        """Per parameter, the levels that every condition treats alike, as (one of them, how many)."""
        named: list[list[frozenset[int]]] = [[] for _ in self._list]
        for child in self.order:
            for parent, wanted in self._parents(child):
                named[parent].append(wanted)
        return [_classes(sets, param.levels or 0) for sets, param in zip(named, self._list, strict=True)]

    def walk(self) -> Iterator[Key]:
        """All keys of a finite space, lazily, the last parameter fastest."""
        return self._walk(0, [None] * len(self._list))

    def _walk(self, depth: int, key: list[float | int | None]) -> Iterator[Key]:
        if depth == len(self.order):
            yield tuple(key)
            return
        j = self.order[depth]
        key[j] = None
        for level in range(self._list[j].levels or 0) if self.holds(j, key) else [None]:
            key[j] = level
            yield from self._walk(depth + 1, key)


def _classes(conditions: Sequence[frozenset[int]], levels: int) -> list[tuple[int, int]]:
    seen: dict[tuple[bool, ...], tuple[int, int]] = {}
    named = sorted(frozenset[int]().union(*conditions))
    for level in named:
        sign = tuple(level in wanted for wanted in conditions)
        first, times = seen.get(sign, (level, 0))
        seen[sign] = first, times + 1
    unnamed = [(-1, levels - len(named))] if levels > len(named) else []  # -1 meets no condition
    return [*seen.values(), *unnamed]
