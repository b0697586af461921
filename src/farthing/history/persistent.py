"""Collections that never change and yet grow cheaply: the old one stays as it was, and shares most of it with the new.

`Vector` is a sequence in a tree of tuples: WIDTH items to a leaf, WIDTH nodes to a node. Adding or replacing an item
copies one path from the root, O(log n). `KeySet` is a set in few frozen sets, each at least RATIO times the size of the
next: a key is looked up in O(log n) of them, and adding one copies O(log n) others, averaged over many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar, overload

BITS = 5
WIDTH = 1 << BITS
RATIO = 8

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Vector(Sequence[T], Generic[T]):
    """An immutable sequence.

    >>> short = Vector.of("ab")
    >>> long = short.with_item(2, "c").with_item(0, "A")
    >>> tuple(short), tuple(long), long[-1]
    (('a', 'b'), ('A', 'b', 'c'), 'c')
    """

    _length: int = 0
    _shift: int = 0  # BITS times the levels above the leaves
    _root: tuple[Any, ...] = ()

    @classmethod
    def of(cls, items: Iterable[T]) -> Vector[T]:
        """A sequence of these, its tree built from the leaves up."""
        level: tuple[Any, ...] = tuple(items)
        length, shift = len(level), 0
        while len(level) > WIDTH:
            level = tuple(level[first : first + WIDTH] for first in range(0, len(level), WIDTH))
            shift += BITS
        return cls(length, shift, level)

    def with_item(self, index: int, item: T) -> Vector[T]:
        """With that item in the place of index, or added where index is the length."""
        if not 0 <= index <= self._length:
            raise IndexError(f"index {index} is not in 0 to {self._length}")
        shift, root = self._shift, self._root
        if index == WIDTH << shift:  # the tree is full
            shift, root = shift + BITS, (root,)
        return Vector(max(self._length, index + 1), shift, _with_item(root, shift, index, item))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(map(self._at, range(*index.indices(self._length))))
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} is not in a sequence of {self._length}")
        return self._at(index % self._length)

    def _at(self, index: int) -> T:
        node = self._root
        for shift in range(self._shift, 0, -BITS):
            node = node[index >> shift & (WIDTH - 1)]
        item: T = node[index & (WIDTH - 1)]
        return item

    def __iter__(self) -> Iterator[T]:
        level: Iterable[Any] = self._root
        for _ in range(0, self._shift, BITS):
            level = chain.from_iterable(level)
        return iter(level)


def _with_item(node: tuple[Any, ...], shift: int, index: int, item: Any) -> tuple[Any, ...]:
    """A node with one item below it replaced or, at its end, added."""
    place = index >> shift & (WIDTH - 1)
    if shift:
        below = node[place] if place < len(node) else ()
        item = _with_item(below, shift - BITS, index, item)
    return (*node[:place], item, *node[place + 1 :])


@dataclass(frozen=True, eq=False)
class KeySet:
    """An immutable set of hashable keys.

    >>> few = KeySet.of([1, 2])
    >>> 3 in few, 3 in few.with_key(3)
    (False, True)
    """

    _parts: tuple[frozenset[Hashable], ...] = ()  # largest first

    @classmethod
    def of(cls, keys: Iterable[Hashable]) -> KeySet:
        return cls((frozenset(keys),))

    def with_key(self, key: Hashable) -> KeySet:
        """With that key too."""
        parts, newest = list(self._parts), frozenset([key])
        while parts and len(parts[-1]) < RATIO * len(newest):
            newest = parts.pop() | newest
        return KeySet((*parts, newest))

    def __contains__(self, key: Hashable) -> bool:
        return any(key in part for part in self._parts)
