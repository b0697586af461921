"""Places where a training curve is looked at, and the different configurations among many rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.numerics.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class Probes:
    """What curves do at p places: their values (order 0) or their slopes in t (order 1).

    X (p, f) configurations, t (p,) times as shares of t_max, order (p,).
    """

    X: Array
    t: Array
    order: Ints

    @classmethod
    def values(cls, X: Array, t: Array) -> Probes:
        return cls(X, t, np.zeros(len(t), dtype=np.intp))

    @classmethod
    def slopes(cls, X: Array, t: Array) -> Probes:
        """At every time of t (v,) for every configuration of X (c, f), one configuration after the other."""
        return cls(np.repeat(X, len(t), axis=0), np.tile(t, len(X)), np.ones(len(X) * len(t), dtype=np.intp))

    def __add__(self, other: Probes) -> Probes:
        X, t = np.concatenate([self.X, other.X]), np.concatenate([self.t, other.t])
        return Probes(X, t, np.concatenate([self.order, other.order]))

    def __getitem__(self, rows: Any) -> Probes:
        return Probes(self.X[rows], self.t[rows], self.order[rows])

    def __len__(self) -> int:
        return len(self.t)

    def each(self) -> Iterator[tuple[Array, float, int]]:
        return zip(self.X, self.t, self.order, strict=True)


def different_rows(X: Array) -> tuple[Array, Ints]:
    """The different rows (m, f) in order of first appearance, and the index (n,) of each row among them.

    >>> different_rows(np.array([[2.0], [1.0], [2.0]]))
    (array([[2.],
           [1.]]), array([0, 1, 0]))
    """
    if X.shape[1] == 0:
        return X[:1], np.zeros(len(X), dtype=np.intp)
    numbers: dict[bytes, int] = {}
    rows = np.ascontiguousarray(X)
    of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], dtype=np.intp)
    first = np.unique(of, return_index=True)[1]
    return rows[first], of
