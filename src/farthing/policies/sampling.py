"""Policies that ignore what was evaluated: `random` and `sobol`. `Random` is the shortest example of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.designs.filling import sobol
from farthing.history import History
from farthing.numerics.arrays import Array
from farthing.policies.candidates import FreshSpace
from farthing.space import Space
from farthing.trial import Config, Proposal

SPREAD = "initial design: an even spread over the space"  # the reason of a point of a Sobol design
NO_TIME = "drawn without a model: there was no time to think"  # the reason of a proposal in the way NONE
SOBOL_LOOKAHEAD = 1_024  # points searched for an untried one, before any configuration is drawn at random


@dataclass(frozen=True)
class Random:
    """Uniform over the space, each parameter in its own scale."""

    name: ClassVar[str] = "random"

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        return numbered(history, n, lambda _: fresh.claim_any(rng), "drawn at random")


@dataclass(frozen=True)
class Sobol:
    """The points of one scrambled Sobol sequence, in turn."""

    name: ClassVar[str] = "sobol"

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        return numbered(history, n, lambda i: next_of_design(fresh, history, i, rng), "next in the Sobol sequence")


def numbered(history: History, n: int, draw: Callable[[int], Config | None], reason: str) -> list[Proposal]:
    """Up to n proposals of configurations from `draw(trial number)`, until it returns None."""
    proposals: list[Proposal] = []
    for number in range(len(history.trials), len(history.trials) + n):
        config = draw(number)
        if config is None:
            break
        proposals.append(Proposal(number, config, reason=reason))
    return proposals


def next_of_design(fresh: FreshSpace, history: History, number: int, rng: np.random.Generator) -> Config | None:
    """The configuration of the study's Sobol sequence for that trial, or the next fresh one after it.

    The sequence depends on the study's seed and not on the ask, so that all asks follow one sequence.
    """
    return fresh.claim_or_any(_sequence(history.seed, number, len(fresh.levels)), rng)


def _sequence(seed: int, first: int, p: int) -> Iterator[Array]:
    """Points first, first + 1, ... of the sequence, drawn in doubling blocks."""
    end = first + SOBOL_LOOKAHEAD
    count = max(16, first + 1)
    while first < end:
        block = sobol(count, p, np.random.default_rng(seed))
        yield from block[first : min(count, end)]
        first, count = count, 2 * count
