"""Which run comes next: a new configuration to the end of its fast period, or a paused one to completion.

BOPT-HPO, Algorithm 1 with Eqs. 4.1 and 4.2 (see `policy.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np

from farthing.acquisitions.confidence import ConfidenceBound, LogOptimism, width
from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.feasible import IfSuccessful
from farthing.acquisitions.improvement import Acquisition, Surrogate
from farthing.acquisitions.maximize import maximize
from farthing.budget import Ledger
from farthing.designs.nested import nested_latin_hypercube
from farthing.history import History, TrackedTrial, Way, units
from farthing.numerics.arrays import Array
from farthing.numerics.rows import MOST_PENDING
from farthing.policies.bopt.level_costs import CompleteCost, LevelCosts
from farthing.policies.bopt.two_levels import Modelling, TrainingRun, TwoLevels, ValueIs, training_runs
from farthing.policies.candidates import ANCHORS, FreshSpace
from farthing.policies.cost_models import LEAST_COST
from farthing.policies.fits import success_model
from farthing.policies.model_options import EndOfBudget
from farthing.policies.sampling import NO_TIME
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.shifted import shifted
from farthing.surrogates.feasibility import Feasibility
from farthing.surrogates.two_fidelity.model import TwoFidelity
from farthing.trial import Config, Proposal, Status

Aim: TypeAlias = Literal["complete", "fast"]
Width: TypeAlias = Literal["even", "dimension"]

FIRST_RATIO = 2  # s until there are costs to measure it, as in the paper
MOST_RATIO = 8  # of s: with more, too few complete trainings would be left to learn the bias from
FEWEST_RUNS = 2  # with fewer there is nothing to model
SOFTNESS = 0.01  # of the spread of the values: a gain below that is next to none


class ChoiceOptions(Protocol):
    """The options of `bopt` that choose the next run."""

    @property
    def modelling(self) -> Modelling: ...
    @property
    def s(self) -> int | None: ...
    @property
    def initial(self) -> int: ...
    @property
    def ratio(self) -> int | None: ...
    @property
    def level(self) -> ValueIs: ...
    @property
    def aim(self) -> Aim: ...
    @property
    def width(self) -> Width: ...
    @property
    def per_cost(self) -> bool: ...
    @property
    def joint(self) -> bool: ...
    @property
    def end(self) -> EndOfBudget: ...
    @property
    def complete_cost(self) -> CompleteCost: ...
    @property
    def cost_model(self) -> CostModelName: ...
    def fast_end(self, trial: TrackedTrial, max_steps: int | None) -> int | None: ...


@dataclass(frozen=True, eq=False)
class NextRun:
    """Chooses between a new configuration and a paused one to complete, and the best of either."""

    options: ChoiceOptions
    space: Space
    history: History
    ledger: Ledger
    rng: np.random.Generator
    fresh: FreshSpace
    levels: TwoLevels
    costs: LevelCosts
    begun: int  # number of configurations begun, including those proposed at this ask
    completing: frozenset[int]  # numbers of the trials that are being completed
    pending: Array  # (k, f) features of runs in their fast period

    @classmethod
    def of(
        cls, options: ChoiceOptions, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Self:
        runs, steps = training_runs(options, history), history.max_steps
        seen = {run.trial.number for run in runs}
        running = [trial for trial in history.running if trial.number not in seen]
        completing = frozenset(run.trial.number for run in runs if run.trial.status is Status.RUNNING)
        pending = space.features(units(running[-MOST_PENDING:], len(space)))
        stored = history.fits.get("bopt")
        levels = TwoLevels(space, runs, stored, options.modelling, history.way)
        costs = LevelCosts(
            runs, steps, history.start_price(ledger.unit), space, history.way, options.complete_cost,
            options.cost_model, history.cost_knowledge,
        )  # fmt: skip
        return cls(
            options, space, history, ledger, rng, FreshSpace(space, history), levels, costs,
            len(history.trials), completing, pending,
        )  # fmt: skip

    def proposals(self, n: int) -> list[Proposal]:
        """At most n, each as if those before it were running."""
        chooser, found = self, list[Proposal]()
        while len(found) < n and (proposal := chooser.proposal()) is not None:
            found.append(proposal)
            chooser = chooser.with_running(proposal)
        return found

    def with_running(self, proposal: Proposal) -> Self:
        """As if the proposal were running."""
        ledger = self.ledger.promised(proposal.predicted_cost or 0.0, 1)
        if proposal.trial < len(self.history.trials):
            return replace(self, ledger=ledger, completing=self.completing | {proposal.trial})
        x = self._features(proposal.config)
        return replace(self, ledger=ledger, begun=self.begun + 1, pending=np.concatenate([self.pending, x]))

    def proposal(self) -> Proposal | None:
        """A new configuration, or a paused one to complete."""
        if self.begun < self._designed_runs:
            return self._new(self._designed(), "initial design, trained to the end of its fast period")
        if not self.paused:
            return self._searched()
        if self.completed < self.options.initial:
            return self._resumed(self._of_design(), "initial design, trained completely")
        if self._completes_next():
            return self._best_paused()
        return self._searched() or self._best_paused()

    # -- which comes next ---------------------------------------------------------------------------------------------

    @property
    def paused(self) -> list[TrainingRun]:
        paused = [run for run in self.levels.runs if run.trial.status is Status.PAUSED]
        return [run for run in paused if run.trial.number not in self.completing]

    @property
    def completed(self) -> int:
        return sum(run.complete is not None for run in self.levels.runs) + len(self.completing)

    def _completes_next(self) -> bool:
        """Whether to complete a run now: after s new ones, or if the budget has no room for it after a new one."""
        if self._plans_end:
            cheapest = min(self.costs.price_of_rest(run) for run in self.paused)
            if self.costs.price_of_new() + cheapest > self._left >= cheapest:
                return True
        if self.options.joint and self._has_time:
            return self._joint_choice()
        new = self.begun - self._designed_runs
        return new >= self.ratio * (self.completed - self.options.initial + 1)

    @property
    def ratio(self) -> int:
        """s: as given, else half the measured ratio of the levels' costs, at least 1 and below that ratio."""
        if self.options.s is not None:
            return self.options.s
        if self.costs.rest_ratio is None:
            return FIRST_RATIO
        measured = 1.0 + self.costs.rest_ratio
        return int(np.clip(round(measured / 2.0), 1, max(min(np.ceil(measured) - 1, MOST_RATIO), 1)))

    @property
    def _has_time(self) -> bool:
        """Whether there is time for a model."""
        return self.history.way is not Way.NONE

    # -- what is left -----------------------------------------------------------------------------------------------

    @property
    def _plans_end(self) -> bool:
        """Whether the rest of the budget counts: only if it limits what costs are measured in, and not just the
        evaluations."""
        return self.options.end == "planned" and self.ledger.unit in self.ledger.budget.limits

    @property
    def _left(self) -> float:
        """What is left of the budget for one more run."""
        return self.ledger.available

    # -- proposals ---------------------------------------------------------------------------------------------------

    @property
    def _designed_runs(self) -> int:
        """Configurations of the nested design: Algorithm 1 has s for each complete one."""
        per_complete = self.options.ratio or self.options.s or FIRST_RATIO
        return per_complete * self.options.initial

    def _designed(self) -> Config | None:
        """The next point of the nested design, whose first points are those to be completed."""
        design = np.random.default_rng(self.history.seed)
        U = nested_latin_hypercube(self.options.initial, self._designed_runs, len(self.space), design)
        return self.fresh.claim_or_any(U[self.begun :], self.rng)

    def _of_design(self) -> TrainingRun:
        inner = [run for run in self.paused if run.trial.number < self.options.initial]
        return inner[0] if inner else min(self.paused, key=lambda run: run.fast)

    def _searched(self) -> Proposal | None:
        if len(self.levels.runs) < FEWEST_RUNS:
            return self._new(self.fresh.claim_any(self.rng), "drawn at random: no training has ended yet")
        if not self._has_time:
            return self._new(self.fresh.claim_any(self.rng), NO_TIME)
        reason = f"lowest confidence bound of {self.options.aim} training"
        return self._new(self.fresh.claim_or_any(self._ranked_new(), self.rng), reason)

    def _best_paused(self) -> Proposal:
        paused = self.paused
        fitting = [run for run in paused if not self._plans_end or self.costs.price_of_rest(run) <= self._left]
        some = fitting or paused
        if not self._has_time:
            return self._resumed(
                min(some, key=lambda run: run.fast), "best paused training: there was no time to think"
            )
        best = int(np.argmax(self._utility_of_completing(some)))
        return self._resumed(some[best], f"most promising of {len(paused)} paused trainings")

    def _new(self, config: Config | None, reason: str) -> Proposal | None:
        if config is None:
            return None
        cost = self.costs.of_new(self._features(config)[0]) or None
        return Proposal(self.begun, config, cost, reason, self.levels.fits)

    def _features(self, config: Config) -> Array:
        """(1, f)."""
        return self.space.features(self.space.encode(config)[None, :])

    def _resumed(self, run: TrainingRun, reason: str) -> Proposal:
        trial = run.trial
        cost = self.costs.of_rest(run) or None
        return Proposal(trial.number, trial.config, cost, reason, self.levels.fits, start_step=trial.kept_step)

    # -- models ------------------------------------------------------------------------------------------------------

    @cached_property
    def _pending_model(self) -> TwoFidelity:
        """The surrogate of both levels, as if runs in their fast period had ended it at their predicted means."""
        return self.levels.model.with_pending(self.pending)

    def _ranked_new(self) -> Array:
        best = np.argsort([run.fast for run in self.levels.runs], kind="stable")[:ANCHORS]
        anchors = units([self.levels.runs[i].trial for i in best], len(self.space))
        return np.asarray(maximize(self._acquisition(), self.fresh, anchors, self.rng, self.fresh.listed()).U)

    def _acquisition(self) -> Acquisition:
        model = self._pending_model
        aimed_at: Surrogate = model.low if self.options.aim == "fast" else model
        bound = self._bound(aimed_at, len(self.levels.runs))
        cost = shifted(self.costs.fast_cost_model, self.costs.start) if self.options.per_cost else None
        if cost is None and self._success is None:
            return bound
        gain: Acquisition = LogOptimism(bound, self._target, SOFTNESS)
        if self._success is not None:
            gain = IfSuccessful(gain, self._success)
        return gain if cost is None else PerCost(gain, cost, 1.0)

    @property
    def _target(self) -> float:
        """What a new run is to beat: the best value of the fast level, which every run shows first. It is no measure
        of a complete level of another size."""
        if self.options.aim == "complete" and not self.levels.has_one_size:
            return self.levels.target
        return float(min(self.levels.scaled([run.fast for run in self.levels.runs])))

    @cached_property
    def _success(self) -> Feasibility | None:
        """Where trials succeed; None while none has failed."""
        return success_model(self.space, self.history)

    def _bound(self, surrogate: Surrogate, evaluations: int) -> ConfidenceBound:
        parameters = len(self.space) if self.options.width == "dimension" else 1
        return ConfidenceBound(surrogate, width(parameters, evaluations))

    def _utility_of_completing(self, runs: Sequence[TrainingRun]) -> Array:
        """phi_c of paused runs, or the log of their possible gain per cost."""
        bound = self._bound(self.levels.model, self.completed)
        if not (self.options.per_cost or self.options.joint):
            return bound(self.levels.features(runs))
        gain = LogOptimism(bound, self.levels.target, SOFTNESS)(self.levels.features(runs))
        return np.asarray(gain - np.log([max(self.costs.price_of_rest(run), LEAST_COST) for run in runs]))

    def _joint_choice(self) -> bool:
        """Whether the best paused run gains more per cost than the best new configuration. Both are compared at
        completion, for which a new one has to pay for both levels."""
        paused = float(np.max(self._utility_of_completing(self.paused)))
        U = self._ranked_new()[:1]
        if not len(U):
            return True
        bound = self._bound(self.levels.model, self.completed)
        x = self.space.features(U)
        gain = float(LogOptimism(bound, self.levels.target, SOFTNESS)(x)[0])
        gain += 0.0 if self._success is None else float(self._success.log_success(x)[0])
        return bool(paused >= gain - np.log(max(self.costs.price_of_new_and_complete(x[0]), LEAST_COST)))
