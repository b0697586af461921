"""Policy `eqie`: expected quantile improvement per cost (EQIE; He, Tuo and Wu 2017), a rival of BOPT-HPO (section 4.1).

A training has the two levels of `bopt`, with the same initial design and the surrogate DGP of both levels (Eq. 3.2;
`surrogates/two_fidelity/`). What differs is the choice of the next run: place and level are chosen together, where

    EQIE = EQI(x, level) / cost of the level at x

is largest, with EQI from `acquisitions/quantile.py`, the quantile that of complete training. There are three kinds of
runs: a new configuration to the end of its fast period, a new one trained completely, and a paused one to the end, at
the cost of the rest.

He, Tuo and Wu take the cost of a level to be fixed and known. By default we model costs over configurations
(`level_costs.py`), since those of trainings differ widely; `EQIE.paper()` has one cost for each level, the median of
those seen. Their surrogate is for a fidelity that varies continuously, such as the size of a mesh; ours is that of two
levels, with the kernel, priors and noise of our `bopt`, also in `EQIE.paper()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.feasible import IfSuccessful
from farthing.acquisitions.improvement import Acquisition
from farthing.acquisitions.maximize import Ranking, maximize
from farthing.acquisitions.quantile import LogEQI
from farthing.budget import Ledger
from farthing.checks import number, one_of, whole_number
from farthing.history import History, TrackedTrial, units
from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import ndtri
from farthing.policies.bopt import stopping
from farthing.policies.bopt.level_costs import FixedCost
from farthing.policies.bopt.next_run import FEWEST_RUNS, NextRun
from farthing.policies.bopt.policy import BOPT
from farthing.policies.bopt.two_levels import LevelValues, TrainingRun, ValueIs
from farthing.policies.candidates import ANCHORS
from farthing.policies.cost_models import LEAST_COST
from farthing.policies.model_options import EndOfBudget
from farthing.policies.protocol import Published, settle_option
from farthing.policies.sampling import NO_TIME
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.cost.shifted import shifted
from farthing.surrogates.two_fidelity.model import TwoFidelity
from farthing.surrogates.two_fidelity.outlook import AfterComplete, AfterLow
from farthing.trial import Decision, Proposal

Costs: TypeAlias = Literal["modelled", "fixed"]

USUAL_RATIO = 4.0  # of the rest to the fast period while no run is complete: 80 % of the time, by the rule of Pareto


@dataclass(frozen=True, repr=False)
class EQIE(Published):
    """Two levels of training; the next run is the one whose expected quantile improvement per cost is largest.

    quantile   whose improvement counts: 0.9 is the value that complete training is expected to beat nine times in ten
    initial    complete trainings of the initial design
    fast_ends  rule that ends the fast period, by name or as an object of `policies.bopt.stopping`
    ends       rule that ends a complete training before max_steps, None for none
    level      value of a run at a level of training: the "best" reported so far, or the "last", as in the paper
    rho        factor between the levels, None to estimate it; give level="last" too, see `bopt`
    costs      of a run: "modelled" over configurations, or "fixed" for each level, as in the paper
    values     "cut": those of diverged runs are cut to the worst ordinary one; "plain": modelled as they are
    end        "planned": what the rest of a budget can pay for decides near its end; "ignored": as in the paper
    cost_model of what is modelled: all models of cost, weighted ("auto"), or one of them by name (docs/cost.md)
    """

    name: ClassVar[str] = "eqie"
    PAPER: ClassVar[Mapping[str, Any]] = {"level": "last", "costs": "fixed", "values": "plain", "end": "ignored"}
    quantile: float = 0.9
    initial: int = 4
    fast_ends: stopping.NamedRule = stopping.EIGHTY_PERCENT
    ends: stopping.NamedRule | None = stopping.COMPLETE
    level: ValueIs = "best"
    rho: float | None = 1.0
    costs: Costs = "modelled"
    values: LevelValues = "cut"
    end: EndOfBudget = "planned"
    cost_model: CostModelName = "auto"

    def __post_init__(self) -> None:
        settle_option(self, "quantile", number, above=0.0, below=1.0)
        settle_option(self, "initial", whole_number, least=1)
        settle_option(self, "fast_ends", stopping.checked_rule)
        settle_option(self, "ends", stopping.checked_rule, or_none=True)
        settle_option(self, "rho", number, above=0.0, or_none=True)
        for option, accepted in (
            ("level", ValueIs), ("costs", Costs), ("values", LevelValues), ("end", EndOfBudget),
            ("cost_model", CostModelName),
        ):  # fmt: skip
            settle_option(self, option, one_of, accepted=get_args(accepted))

    @property
    def levels(self) -> BOPT:
        """The same two levels, design and surrogate in `bopt`."""
        return BOPT(
            surrogate="dgp", joint=True, initial=self.initial, fast_ends=self.fast_ends, ends=self.ends,
            level=self.level, rho=self.rho, values=self.values, end=self.end,
            complete_cost="ratio" if self.costs == "fixed" else "model", cost_model=self.cost_model,
        )  # fmt: skip

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
    ) -> Decision:
        """As `bopt` decides; a run that was chosen to be trained completely is not paused on the way."""
        decision = self.levels.decide(space, history, ledger, trial, rng)
        is_complete = trial.until_step is not None
        return Decision.CONTINUE if is_complete and decision is Decision.PAUSE else decision

    def rows(self, history: History) -> int:
        return len(history.trials)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        chooser = MostEfficient.of(self.levels, space, history, ledger, rng)
        return replace(chooser, quantile=self.quantile, has_fixed_costs=self.costs == "fixed").proposals(n)


@dataclass(frozen=True, eq=False)
class NewRun:
    """New configurations by decreasing log EQIE, for one level."""

    found: Ranking
    is_complete: bool

    @property
    def efficiency(self) -> float:
        return float(self.found.utility[0]) if len(self.found.U) else -np.inf


@dataclass(frozen=True, eq=False)
class MostEfficient(NextRun):
    """Chooses the run of largest EQIE; the design and the end of the budget are those of `bopt`."""

    quantile: float = 0.5
    has_fixed_costs: bool = False

    # -- which comes next ---------------------------------------------------------------------------------------------

    def _joint_choice(self) -> bool:
        """Whether completing the best paused run is more efficient than any new one."""
        return bool(np.max(self._utility_of_completing(self.paused)) >= self._best_new.efficiency)

    def _utility_of_completing(self, runs: Sequence[TrainingRun]) -> Array:
        """log EQIE of paused runs."""
        gain = LogEQI(AfterComplete(self._both_pending), self._q_min, self._q)(self.levels.features(runs))
        return np.asarray(gain - np.log([max(self._price_of_rest(run), LEAST_COST) for run in runs]))

    def _searched(self) -> Proposal | None:
        if len(self.levels.runs) < FEWEST_RUNS:
            return self._new(self.fresh.claim_any(self.rng), "drawn at random: no training has ended yet")
        if not self._has_time:
            return self._new(self.fresh.claim_any(self.rng), NO_TIME)
        best = self._best_new
        config = self.fresh.claim_or_any(best.found.U, self.rng)
        level = "complete training" if best.is_complete else "training to the end of the fast period"
        proposal = self._new(config, f"largest expected quantile improvement per cost, by {level}")
        if proposal is None or not best.is_complete:
            return proposal
        cost = self.costs.price_of_new_and_complete(self._features(proposal.config)[0]) - self.costs.start
        return replace(proposal, predicted_cost=cost or None, until_step=self.history.max_steps)

    # -- efficiency ----------------------------------------------------------------------------------------------------

    @cached_property
    def _best_new(self) -> NewRun:
        """The level at which new configurations promise most; not the complete one, if what is left of the budget
        cannot pay for it."""
        fast, complete = (self._ranked_at(is_complete) for is_complete in (False, True))
        return complete if complete.efficiency > fast.efficiency and self._can_pay(complete) else fast

    def _can_pay(self, run: NewRun) -> bool:
        if not self._plans_end:
            return True
        log_price = self._cost(run.is_complete).mean_at(self.space.features(run.found.U[:1]))[0]
        return bool(np.exp(log_price) <= self._left)

    def _ranked_at(self, is_complete: bool) -> NewRun:
        best = np.argsort([run.fast for run in self.levels.runs], kind="stable")[:ANCHORS]
        anchors = units([self.levels.runs[i].trial for i in best], len(self.space))
        acquisition = self._efficiency(is_complete)
        return NewRun(maximize(acquisition, self.fresh, anchors, self.rng, self.fresh.listed()), is_complete)

    def _efficiency(self, is_complete: bool) -> Acquisition:
        """log EQIE of new configurations at a level, if they succeed."""
        model = self._both_pending
        gain: Acquisition = LogEQI(AfterComplete(model) if is_complete else AfterLow(model), self._q_min, self._q)
        if self._success is not None:
            gain = IfSuccessful(gain, self._success)
        return PerCost(gain, self._cost(is_complete), 1.0)

    @cached_property
    def _q(self) -> float:
        return float(ndtri(self.quantile))

    @cached_property
    def _q_min(self) -> float:
        """Also over runs that go on: what they are expected to reach is no improvement for another."""
        X = np.concatenate([self.levels.features(self.levels.runs), self.pending])
        mean, variance = self._both_pending.predict(X)
        return float(np.min(mean + self._q * np.sqrt(variance)))

    @cached_property
    def _both_pending(self) -> TwoFidelity:
        """The surrogate as if runs that go on had ended at their predicted means, at both levels: nobody says at which
        level a new run is, and a neighbour of it would teach little at either."""
        going_on = [run for run in self.levels.runs if run.trial.number in self.completing]
        X = np.concatenate([self.levels.features(going_on), self.pending]) if going_on else self.pending
        model = self._pending_model
        if not len(X):
            return model
        bias = model.bias.condition(X, model.bias.mean_at(X))
        return replace(model, joint=replace(model.joint, bias=bias))

    # -- costs ---------------------------------------------------------------------------------------------------------

    @property
    def _ratio(self) -> float:
        return USUAL_RATIO if self.costs.rest_ratio is None else self.costs.rest_ratio

    def _cost(self, is_complete: bool) -> CostModel:
        """Of a new run at a level, and until it can begin."""
        model = self.costs.complete_cost_model if is_complete else self.costs.fast_cost_model
        if self.has_fixed_costs or model is None:
            price = (self.costs.of_new() or 1.0) * (1.0 + is_complete * self._ratio) + self.costs.start
            return FixedCost(float(np.log(max(price, LEAST_COST))))
        return shifted(model, self.costs.start) or model

    def _price_of_rest(self, run: TrainingRun) -> float:
        if self.has_fixed_costs or run.fast_cost is None:
            return (self.costs.of_new() or 1.0) * self._ratio + self.costs.start * run.trial.needs_start
        return self.costs.price_of_rest(run)
