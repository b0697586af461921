"""Training runs to choose from, for policies of learners that train step by step: new configurations, paused trials;
and choosing several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from farthing.acquisitions.maximize import perturbed
from farthing.designs.filling import sobol
from farthing.history import History, TrackedTrial, Way, units
from farthing.numerics.arrays import Array
from farthing.policies.candidates import FreshSpace
from farthing.policies.sampling import NO_TIME, SPREAD, next_of_design
from farthing.policies.step_costs import StepCosts
from farthing.space import Space
from farthing.surrogates.curves.unconstrained import different_rows
from farthing.trial import Proposal


@dataclass(frozen=True, eq=False)
class RunCandidates:
    """Training runs to choose from: new configurations, and paused trials."""

    U: Array  # (c, p)
    X: Array  # (c, f)
    step: Array  # (c,) each could continue from
    log_cost: Array  # (c,) of one more step
    start: Array  # (c,) cost until a process is ready for it
    trials: Sequence[TrackedTrial | None]  # the paused trial, None for a new configuration

    def __getitem__(self, rows: Any) -> RunCandidates:
        which = np.arange(len(self.U))[rows]
        trials = [self.trials[i] for i in which]
        return RunCandidates(
            self.U[rows], self.X[rows], self.step[rows], self.log_cost[rows], self.start[rows], trials
        )  # fmt: skip

    def joined(self, other: RunCandidates) -> RunCandidates:
        """These, then the others."""
        U, X = np.concatenate([self.U, other.U]), np.concatenate([self.X, other.X])
        step, log_cost = np.concatenate([self.step, other.step]), np.concatenate([self.log_cost, other.log_cost])
        start = np.concatenate([self.start, other.start])
        return RunCandidates(U, X, step, log_cost, start, [*self.trials, *other.trials])

    @classmethod
    def of(
        cls, space: Space, costs: StepCosts, start: float, U: Array, paused: Sequence[TrackedTrial]
    ) -> RunCandidates:  # fmt: skip
        """New configurations U (n, p), each of which has to wait for `start` until it can begin, then paused trials."""
        X = space.features(U)
        new = cls(U, X, np.zeros(len(U)), costs.log_per_step(X), np.full(len(U), start), [None] * len(U))
        if not paused:
            return new
        V = units(paused, len(space))
        step = np.array([float(trial.kept_step) for trial in paused])
        measured = np.array([costs.log_per_step_of(trial) for trial in paused])
        waits = np.array([start * trial.needs_start for trial in paused])
        return new.joined(cls(V, space.features(V), step, measured, waits, paused))


def new_points(fresh: FreshSpace, anchors: Array, spread: int, rng: np.random.Generator) -> Array:
    """New configurations to score (c, p), each once, since in a small space many points are the same one: `spread` over
    all of the space, and more near the anchors (k, p)."""
    everywhere = fresh.snap(sobol(spread, len(fresh.levels), rng))
    near = fresh.snap(perturbed(anchors, fresh.levels, rng))
    U, _ = different_rows(np.concatenate([everywhere, near]))
    return U[fresh.admissible(U)]


class Chooser(Protocol):
    """Chooses the next run, given those that were chosen before."""

    def next_proposal(self, number: int) -> Proposal | None:
        """The best run, under `number` if it is new; None if there is none."""
        ...

    def with_running(self, proposal: Proposal) -> Self:
        """As if the proposal were running."""
        ...


def designed(
    fresh: FreshSpace, history: History, number: int, rng: np.random.Generator, until: int | None, reason: str = SPREAD
) -> Proposal | None:
    """A point of the study's Sobol sequence, trained until that step, or to its end if that is None."""
    config = next_of_design(fresh, history, number, rng)
    if config is None:
        return None
    return Proposal(number, config, reason=NO_TIME if history.way is Way.NONE else reason, until_step=until)


def chosen_in_turn(
    chooser: Chooser | None, otherwise: Callable[[int], Proposal | None], history: History, n: int
) -> list[Proposal]:
    """Up to n proposals, one after the other; `otherwise(number)` where nobody can choose, until it has none either."""
    proposals: list[Proposal] = []
    while len(proposals) < n:
        if chooser is not None and proposals:
            chooser = chooser.with_running(proposals[-1])
        number = len(history.trials) + sum(proposal.trial >= len(history.trials) for proposal in proposals)
        proposal = None if chooser is None else chooser.next_proposal(number)
        if proposal is None:
            proposal = otherwise(number)
        if proposal is None:
            break
        proposals.append(proposal)
    return proposals
