"""Parts of the unit cube in which only numbers move: what the gradient of an acquisition is followed in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints, Mask


@dataclass(frozen=True, eq=False)
class Slice:
    """What a model sees of points that differ from some rows (b, p) only in their numbers: all else is computed once.

    Whole numbers move continuously here, as if there were others between them; `UnitCube.snap` brings them back.
    """

    sliding: Ints  # (s,) the parameters that move
    columns: Ints  # (s,) their feature columns
    base: Array  # (b, f) features of the rows
    active: Mask  # (b, s) whether they have an effect
    width: int  # p

    def features(self, V: Array, rows: Ints) -> Array:
        """Features (m, f) of points V (m, p) that differ from rows (m,)."""
        F = self.base[rows]
        F[:, self.columns] = np.where(self.active[rows], V[:, self.sliding], 0.5)
        return F

    def pull(self, G: Array, rows: Ints) -> Array:
        """Gradients (m, p) by unit coordinate from gradients G (m, f) by feature: 0 but for what moves."""
        pulled = np.zeros((len(G), self.width))
        pulled[:, self.sliding] = np.where(self.active[rows], G[:, self.columns], 0.0)
        return pulled


class Everything(Slice):
    """The slice of a space without levels and conditions: coordinates, features and gradients are the same."""

    def __init__(self) -> None:
        pass

    def features(self, V: Array, rows: Ints) -> Array:
        return V

    def pull(self, G: Array, rows: Ints) -> Array:
        return G
