"""Candidates: the configurations that a policy may still propose.

A configuration is taken once a trial has it, however that trial ended. `FreshSpace` is the space without the taken and
the forbidden ones. It is the domain of the acquisition's maximiser, and hands out configurations by `claim`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

import numpy as np

from farthing.history import History, units
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.space import Real, Space
from farthing.space.conditions import Key
from farthing.space.slices import Slice
from farthing.trial import Config

ANCHORS = 3  # best points whose surroundings are searched: several, since they may lie in different valleys
LISTABLE = 2_000  # configurations of a finite space up to which all are listed and scored: about one pool of the search
FEW_TRIES = 16  # draws looked at one by one: in nearly every space the first of them is fresh
MOST_ENUMERATED = 100_000  # untried ones of a finite space that `forbid` is asked about: a second
RANDOM_TRIES = 4_096  # draws before a finite space is enumerated, which would be slow in a large one


class Taken:
    """Keys of taken configurations: those of a history, which are not copied, and those claimed since."""

    def __init__(self, space: Space, history: History) -> None:
        self._space, self._history, self._claimed = space, history, set[Key]()
        self._numbers: Ints | None = None

    def __contains__(self, key: object) -> bool:
        return key in self._claimed or key in self._history.taken

    def add(self, key: Key) -> None:
        self._claimed.add(key)
        self._numbers = None

    def among(self, U: Array) -> Mask:
        """Which rows of U (m, p) are taken, but for those with an active Real, which hardly ever are."""
        if self._numbers is None:
            before = units(list(self._history.trials), len(self._space))
            since = self._space.units_of(list(self._claimed))
            self._numbers = np.unique(self._space.fingerprints(np.concatenate([before, since]))[0])
        numbers, says_all = self._space.fingerprints(U)
        return says_all & np.isin(numbers, self._numbers)


class FreshSpace:
    """The space without what is taken; every proposal takes one more."""

    def __init__(self, space: Space, history: History) -> None:
        self.space = space
        self.taken = Taken(space, history)
        self._condition: Callable[[Array], Mask] | None = None
        # With a continuous coordinate that is always active, two points coincide only in a corner. `claim` checks
        # those, so that `admissible` need not look up hundreds of keys per suggestion.
        self._never_coincides = any(isinstance(p, Real) and not p.when for p in space.params.values())

    @property
    def levels(self) -> Sequence[int | None]:
        return self.space.levels

    @property
    def slides(self) -> bool:
        return self.space.slides

    def snap(self, U: Array) -> Array:
        return self.space.snap(U)

    def features(self, U: Array) -> Array:
        return self.space.features(U)

    def sliced(self, U: Array) -> Slice:
        return self.space.sliced(U)

    def neighbours(self, U: Array) -> tuple[Array, Ints]:
        return self.space.neighbours(U)

    def where(self, condition: Callable[[Array], Mask]) -> FreshSpace:
        """The same space, restricted to where a condition on features holds. What is taken in one is taken in both."""
        narrower = copy(self)
        narrower._condition = condition
        return narrower

    def admissible(self, U: Array) -> Mask:
        allowed = self.space.allowed(U)
        if self._condition is not None:
            allowed = np.asarray(allowed & self._condition(self.space.features(U)))
        if self._never_coincides:
            return allowed
        return np.asarray(allowed & ~self.taken.among(U))

    def leading_taken(self, U: Array) -> int:
        """How many rows of U (m, p) come before the first that is not taken."""
        return next((i for i, u in enumerate(U) if self.space.key(self.space.decode(u)) not in self.taken), len(U))

    def claim(self, candidates: Iterable[Array]) -> Config | None:
        """The first candidate (p,) that is fresh and allowed, decoded and from now on taken."""
        for u in candidates:
            config = self.space.decode(u)
            if self._take(config):
                return config
        return None

    def claim_or_any(self, candidates: Iterable[Array], rng: np.random.Generator) -> Config | None:
        """The first of the candidates that can be claimed, else any configuration."""
        config = self.claim(candidates)
        return config if config is not None else self.claim_any(rng)

    def claim_any(self, rng: np.random.Generator) -> Config | None:
        """Any fresh configuration, None if there are none left."""
        config = self.claim(rng.random(len(self.levels)) for _ in range(FEW_TRIES))
        if config is None:
            config = self._claim_drawn(RANDOM_TRIES - FEW_TRIES, rng)
        if config is None and self.space.size is not None:
            left = self.space.enumerate(skip=self.taken, most=MOST_ENUMERATED)
            config = next((c for c in left if self._take(c)), None)
        return config

    def _claim_drawn(self, count: int, rng: np.random.Generator) -> Config | None:
        """What that many draws would claim one by one. Their keys are looked up together, which is faster by far; the
        generator is left where the last draw needed would have left it."""
        p, before = len(self.levels), rng.bit_generator.state
        U = rng.random((count, p))
        for i in [i for i, key in enumerate(self.space.keys(U)) if key not in self.taken]:
            config = self.claim(U[[i]])
            if config is not None:
                rng.bit_generator.state = before
                rng.random((i + 1, p))
                return config
        return None

    def _take(self, config: Config) -> bool:
        key = self.space.key(config)
        if key in self.taken or not self.space.allows(config):
            return False
        self.taken.add(key)
        return True

    def listed(self) -> Array | None:
        """Unit coordinates of every configuration, when they are few enough to list."""
        size = self.space.size
        if size is None or size > LISTABLE:
            return None
        return self.space.encode_many(self.space.enumerate())
