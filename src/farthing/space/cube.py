"""The unit cube of some parameters: which configurations its points stand for, and what a model sees of them.

p   number of parameters; unit coordinates are u (p,) or U (n, p) in [0, 1], one per parameter
f   number of feature columns, the model's view of a configuration: features (n, f)
key one hashable tuple per configuration: the float of a `Real`, the level's index of the others, None where
    inactive

Inactive parameters sit at one fixed point, so that configurations that differ only in what has no effect are one
point for every model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from farthing.checks import refuse
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.space import codes
from farthing.space.conditions import Conditions, Key
from farthing.space.parameters import Choice, Discrete, Integer, Ordered, Parameter, Real
from farthing.space.slices import Everything, Slice

# Up to this many levels a local search tries all of them, beyond it jumps of 1, 2, 4, ...: a few dozen neighbours are
# cheap to score, thousands are not. A Choice may have more, because none of its options is near another.
ALL_LEVELS, ALL_OPTIONS = 12, 64


class UnitCube:
    """Parameters as columns of the unit cube; `Space` adds configurations and what must not be proposed.

    >>> UnitCube({"eta": Real(0, 1), "depth": Integer(1, 4)}).snap([[0.3, 0.3]]).tolist()
    [[0.3, 0.375]]
    """

    def __init__(self, params: Mapping[str, Parameter]) -> None:
        self._params = dict(params)
        self._names = tuple(params)
        self._list = tuple(params.values())
        self._conditions = Conditions(params)
        self._lay_out()
        # What every configuration goes through: looked up once.
        when = self._conditions.when
        self._finders = [(j, self._names[j], self._list[j].find, when[j]) for j in self._conditions.order]
        self._values: list[Callable[[Any], Any]] = [param.value for param in self._list]

    def _lay_out(self) -> None:
        """Precompute what every call on arrays needs: these run inside the search for the next proposal."""
        self._bins = np.array([float(param.levels or 1) for param in self._list])
        self._real = np.array([isinstance(param, Real) for param in self._list])
        self._log_integers = tuple(
            (j, param) for j, param in enumerate(self._list) if isinstance(param, Integer) and param.log
        )
        # Then snapped coordinates, features and gradients are the coordinates themselves: no need to look at levels.
        self._continuous = all(isinstance(param, Real) and not param.when for param in self._list)
        widths = [_width(param) for param in self._list]
        self._groups = np.repeat(np.arange(len(self._list)), np.array(widths))
        self._groups.flags.writeable = False
        self._start = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
        # Real and Integer columns are their unit coordinates; the others are filled in one by one.
        self._plain = np.array([isinstance(param, (Real, Integer)) for param in self._list])
        self._multipliers = np.random.default_rng(len(self._list)).integers(2**62, size=len(self._list))
        self._sliding = np.flatnonzero(self._plain)
        self._jumps = tuple(
            (j, param, _jumps(param)) for j, param in enumerate(self._list) if not isinstance(param, Real)
        )
        self._special = tuple((j, param) for j, param in enumerate(self._list) if isinstance(param, (Ordered, Choice)))

    def __len__(self) -> int:
        return len(self._names)

    @property
    def levels(self) -> tuple[int | None, ...]:
        """How many values each parameter has, None for a `Real`.

        >>> UnitCube({"a": Real(0, 1), "b": Integer(1, 3)}).levels
        (None, 3)
        """
        return tuple(param.levels for param in self._list)

    @property
    def groups(self) -> Ints:
        """For each feature column (f,), the parameter it belongs to.

        Columns of one parameter share one length-scale. For a choice of k options that makes the kernel a
        function of whether two options are equal: exchangeable between options, with one thing to learn
        instead of k. (With more than 128 options it nearly is: see `codes`.)

        >>> UnitCube({"a": Choice(["x", "y", "z"]), "b": Real(0, 1)}).groups.tolist()
        [0, 0, 0, 1]
        """
        return self._groups

    @property
    def ratios(self) -> Array:
        """For each feature column (f,), the ratio of the largest to the smallest value, 1 if there is none.

        It is for columns that are linear in a positive number: 1 + x (ratio - 1) is then proportional to the value, and
        a model can use its logarithm. Columns on a log scale already are one, and choices have none.

        >>> UnitCube({"depth": Real(1, 16), "rate": Real(1e-5, 1, log=True), "drop": Real(0, 1)}).ratios.tolist()
        [16.0, 1.0, 1.0]
        """
        by_param = np.array([_ratio(param) for param in self._list])
        return np.asarray(by_param[self._groups])

    # Keys and coordinates

    def keys(self, U: ArrayLike) -> list[Key]:
        """The keys of the configurations at unit coordinates (n, p).

        >>> UnitCube({"eta": Real(0, 1), "depth": Integer(1, 4)}).keys([[0.5, 0.0], [1.0, 1.0]])
        [(0.5, 0), (1.0, 3)]
        """
        rows, levels, active = self._locate(U)
        columns: list[list[Any]] = []
        for j, param in enumerate(self._list):
            places = param.places(rows[:, j]) if isinstance(param, Real) else levels[:, j].tolist()
            if not active[:, j].all():
                places = [place if used else None for place, used in zip(places, active[:, j].tolist(), strict=True)]
            columns.append(places)
        return list(zip(*columns, strict=True))

    def fingerprints(self, U: ArrayLike) -> tuple[Ints, Mask]:
        """A number (n,) for each row of unit coordinates (n, p), the same for the same configuration and hardly ever
        for two; and for which rows (n,) it says all: those without an active `Real`. Far faster than `keys`.

        >>> cube = UnitCube({"depth": Integer(1, 4)})
        >>> numbers, _ = cube.fingerprints([[0.1], [0.2], [0.3]])
        >>> bool(numbers[0] == numbers[1]), bool(numbers[0] == numbers[2])
        (True, False)
        """
        _, levels, active = self._locate(U)
        numbers = np.where(active & ~self._real, levels + 1, 0) @ self._multipliers  # wraps around, as hashes do
        return np.asarray(numbers, dtype=np.intp), np.asarray(~active[:, self._real].any(axis=1))

    def unit_of(self, key: Key) -> Array:
        """Unit coordinates (p,) of a key, one number at a time: for a few numbers that is faster than arrays."""
        places: Any = zip(self._list, key, strict=True)
        return np.array([0.5 if place is None else param.unit(place) for param, place in places])

    def units_of(self, keys: Sequence[Key]) -> Array:
        """Unit coordinates (n, p) of several keys, the same to the last bit."""
        U = np.full((len(keys), len(self._list)), 0.5)  # (n, p)
        for j, param in enumerate(self._list):
            rows = [i for i, key in enumerate(keys) if key[j] is not None]
            places: list[Any] = [keys[i][j] for i in rows]
            U[rows, j] = param.units(places)
        return U

    def _clipped(self, U: ArrayLike) -> Array:
        """Rows (n, p) within the cube, or `InvalidArgument` if they have another shape."""
        given = np.asarray(U, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(self._list):
            refuse("unit coordinates", f"an array of shape (n, {len(self._list)})", given.shape)
        return np.clip(given, 0.0, 1.0)

    def _locate(self, U: ArrayLike) -> tuple[Array, Ints, Mask]:
        """Rows within the cube, the level of each coordinate (0 for a Real), which are active; (n, p)."""
        rows = self._clipped(U)
        levels = np.minimum(np.floor(rows * self._bins), self._bins - 1).astype(np.intp)
        for j, param in self._log_integers:
            levels[:, j] = param.log_levels(rows[:, j])
        return rows, levels, self._conditions.active(levels)

    def _snapped(self, rows: Array, levels: Ints, active: Mask) -> Array:
        snapped = (levels + 0.5) / self._bins
        for j, param in self._log_integers:
            snapped[:, j] = param.log_centres(levels[:, j])
        return np.where(active, np.where(self._real, rows, snapped), 0.5)

    def snap(self, U: ArrayLike) -> Array:
        """Coordinates (n, p) at their canonical places: bin centres, active Reals as they are, inactive 0.5.

        >>> UnitCube({"eta": Real(0, 1), "depth": Integer(1, 4)}).snap([[0.3, 0.3]]).tolist()
        [[0.3, 0.375]]
        """
        return self._clipped(U) if self._continuous else self._snapped(*self._locate(U))

    def active(self, U: ArrayLike) -> Mask:
        """Which parameters (n, p) have an effect.

        >>> drop = Real(0, 0.5, when={"booster": "dart"})
        >>> cube = UnitCube({"booster": Choice(["gbtree", "dart"]), "drop": drop})
        >>> cube.active([[0.0, 0.5], [1.0, 0.5]]).tolist()
        [[True, False], [True, True]]
        """
        return self._locate(U)[2]

    # What the model sees

    def features(self, U: ArrayLike) -> Array:
        """What a kernel sees (n, f) of unit coordinates (n, p).

        A Real or Integer is one column, its snapped coordinate; an Ordered one column, its position by value.
        A Choice has one column per option, 1/sqrt(2) for the chosen one and 0 for the others, so that different
        options are at distance 1; for two options one column of 0 or 1 is enough, and more than 128 share 128
        columns (`codes`). Inactive parameters are at 0.5, or at the centroid of the options.

        >>> cube = UnitCube({"eta": Real(0, 1), "kind": Choice(["a", "b", "c"])})
        >>> cube.features([[0.3, 0.0], [0.3, 1.0]]).round(2).tolist()
        [[0.3, 0.71, 0.0, 0.0], [0.3, 0.0, 0.0, 0.71]]
        """
        return self._clipped(U) if self._continuous else self._features(*self._locate(U))

    def _features(self, rows: Array, levels: Ints, active: Mask) -> Array:
        F = np.zeros((len(rows), len(self._groups)))  # (n, f)
        F[:, self._start[self._plain]] = self._snapped(rows, levels, active)[:, self._plain]
        for j, param in self._special:
            column, used = self._start[j], active[:, j]
            if _is_one_hot(param):
                hot = np.arange(param.levels) == levels[:, j, np.newaxis]
                block = np.where(used[:, np.newaxis], hot, 1 / param.levels) / math.sqrt(2)
                F[:, column : column + param.levels] = block
            elif _is_coded(param):
                coded = codes.codes(levels[:, j])
                F[:, column : column + codes.COLUMNS] = np.where(used[:, np.newaxis], coded, 0.0)
            else:
                seen = param.positions[levels[:, j]] if isinstance(param, Ordered) else levels[:, j]
                F[:, column] = np.where(used, seen, 0.5)
        return F

    def coordinates(self, F: ArrayLike) -> Array:
        """Unit coordinates (n, p) that have the features F (n, f): the way back from what a model sees.

        >>> cube = UnitCube({"eta": Real(0, 1), "kind": Choice(["a", "b", "c"])})
        >>> cube.coordinates(cube.features([[0.3, 0.9]])).round(2).tolist()
        [[0.3, 0.83]]
        """
        seen = np.asarray(F, dtype=np.float64)
        U = seen[:, self._start]
        for j, param in self._special:
            column = self._start[j]
            if _is_one_hot(param):
                levels = np.argmax(seen[:, column : column + param.levels], axis=1)
            elif _is_coded(param):
                levels = codes.levels_of(seen[:, column : column + codes.COLUMNS], param.levels)
            else:
                positions = param.positions if isinstance(param, Ordered) else np.arange(2.0)
                levels = _nearest(positions, seen[:, column])
            U[:, j] = (levels + 0.5) / param.levels
        return self.snap(U)

    @property
    def real_columns(self) -> Ints:
        """The feature columns that belong to a `Real`: the only ones along which a gradient is followed."""
        return np.asarray(self._start[self._real])

    @property
    def slides(self) -> bool:
        """Whether there are numbers, along which a gradient can be followed."""
        return len(self._sliding) > 0

    def sliced(self, U: ArrayLike) -> Slice:
        """The points that have the levels and conditions of rows U (b, p): only their numbers move.

        >>> cube = UnitCube({"eta": Real(0, 1), "kind": Choice(["a", "b"])})
        >>> part = cube.sliced([[0.3, 0.9]])
        >>> part.features(np.array([[0.4, 0.9]]), np.array([0])).tolist()
        [[0.4, 1.0]]
        >>> part.pull(np.array([[2.0, 5.0]]), np.array([0])).tolist()
        [[2.0, 0.0]]
        """
        if self._continuous:
            return Everything()
        rows, levels, active = self._locate(U)
        base = self._features(rows, levels, active)
        return Slice(self._sliding, self._start[self._sliding], base, active[:, self._sliding], len(self._list))

    def neighbours(self, U: ArrayLike) -> tuple[Array, Ints]:
        """Snapped rows (m, p) that differ from a row of U (b, p) in one active parameter with levels, and which row
        (m,) that is, in order; m may be 0.

        All other levels of a parameter with few (12, or 64 for a Choice), otherwise jumps of 1, 2, 4, ...
        levels. Children that such a move makes active start in the middle of their range.

        >>> cube = UnitCube({"eta": Real(0, 1), "depth": Integer(1, 4)})
        >>> moved, owners = cube.neighbours([[0.3, 0.125]])
        >>> moved.tolist(), owners.tolist()
        ([[0.3, 0.375], [0.3, 0.625], [0.3, 0.875]], [0, 0, 0])
        """
        rows, levels, active = self._locate(U)
        here = self._snapped(rows, levels, active)
        blocks, owners = [here[:0]], [np.empty(0, dtype=np.intp)]
        for j, param, jumps in self._jumps:
            reached = levels[:, j, np.newaxis] + jumps  # (b, jumps)
            there = (reached >= 0) & (reached < param.levels) & active[:, j, np.newaxis]
            owner = np.nonzero(there)[0]
            block = here[owner]
            block[:, j] = param.units(reached[there])
            blocks.append(block)
            owners.append(owner)
        owned = np.concatenate(owners)
        order = np.argsort(owned, kind="stable")
        return self.snap(np.concatenate(blocks)[order]), owned[order]


def _is_one_hot(param: Parameter) -> TypeGuard[Choice]:
    return isinstance(param, Choice) and 2 < param.levels <= codes.COLUMNS


def _is_coded(param: Parameter) -> TypeGuard[Choice]:
    """Whether one column per option would be more than the columns of a code."""
    return isinstance(param, Choice) and param.levels > codes.COLUMNS


def _width(param: Parameter) -> int:
    """How many feature columns a parameter has."""
    if _is_coded(param):
        return codes.COLUMNS
    return param.levels if _is_one_hot(param) else 1


def _nearest(positions: Array, seen: Array) -> Ints:
    """The index (n,) of the nearest of the rising positions (k,), the first of two equally near."""
    above = np.clip(np.searchsorted(positions, seen), 1, max(len(positions) - 1, 1))
    below = above - 1
    if len(positions) == 1:
        return below
    return np.where(np.abs(seen - positions[below]) <= np.abs(seen - positions[above]), below, above)


def _ratio(param: Parameter) -> float:
    """Largest over smallest value where the feature is linear in it: bins of integers reach half a step further."""
    match param:
        case Real(low, high, log=False):
            return high / low if low > 0 else 1.0
        case Integer(log=False):
            low, high = param.low - param.step / 2, param.value(param.levels - 1) + param.step / 2
            return high / low if low > 0 else 1.0
        case Ordered(log=False) if param.numeric and param.levels > 1:
            first, last = float(param.values[0]), float(param.values[-1])
            return last / first if min(first, last) > 0 else 1.0
        case _:
            return 1.0


def _jumps(param: Discrete) -> Ints:
    """How many levels up or down one step of a local search may go."""
    if param.levels <= (ALL_OPTIONS if isinstance(param, Choice) else ALL_LEVELS):
        return np.array([jump for jump in range(1 - param.levels, param.levels) if jump], dtype=np.intp)
    return np.array([sign * 2**i for i in range(param.levels.bit_length()) for sign in (-1, 1)], dtype=np.intp)
