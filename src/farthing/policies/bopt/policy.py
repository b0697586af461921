"""Policy `bopt`: Bayesian optimisation with Pareto-principled training (BOPT-HPO; Yang, Deng and Zhu 2023).

A training has two levels: eighty percent of the improvement comes early, and the end of that fast period is found on
the curve as it grows (policies/levels.py). New configurations are trained that far and paused; of the paused ones, one
after `s` new ones, the most promising is trained completely (Algorithm 1):

    the next new one       the largest -mu_e(x) + w s_e(x) over the whole space                      (Eq. 4.1)
    the next complete one  the largest -mu_c(x) + w s_c(x) among the paused                          (Eq. 4.2)

with w from acquisitions/confidence.py, (mu_e, s_e) the process of the first level and (mu_c, s_c) the joint surrogate
of both (surrogates/two_fidelity.py). What comes first is a nested Latin hypercube.

Two defaults differ from the paper, for what docs/bopt-synthetic.md shows: new configurations are sought by the bound of
the complete level too (`aim`), since the optimum of the first is not always its own; and w does not grow with the
number of parameters (`width`), since in ten dimensions the search would explore for ever. `PAPER` has the paper's.

Symbols: y_e the value when the fast period ended, y_c the value of the complete training; both are the best so far, so
that y_c <= y_e and the bias y_c - y_e lies in [-inf, 0], or in [-max y_e, 0] where values are not negative.

Beyond the paper, as options: `per_cost` weighs both choices by what they cost; `joint` lets the same quantity choose
between the levels in place of the fixed s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from farthing.acquisitions.confidence import ConfidenceBound, LogOptimism, width
from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.feasible import IfSuccessful
from farthing.acquisitions.improvement import Acquisition, Surrogate
from farthing.acquisitions.maximize import maximize
from farthing.budget import Ledger
from farthing.designs.nested import nested_latin_hypercube
from farthing.errors import InvalidArgument
from farthing.history import History, units
from farthing.numerics.arrays import Array
from farthing.policies.bopt import levels
from farthing.policies.bopt.two_levels import Run, TwoLevels
from farthing.policies.candidates import FreshSpace
from farthing.policies.fits import success_model
from farthing.space import Space
from farthing.surrogates.feasibility import Feasibility
from farthing.surrogates.two_fidelity import TwoFidelity
from farthing.trial import Config, Decision, Proposal, Status, Trial

INITIAL = 4  # complete trainings of the design
FIRST_RATIO = 2  # new configurations for each of them, as in the paper
MOST_RATIO = 8
ANCHORS = 3
SOFTNESS = 0.01  # of the spread of the values
PAPER = {"aim": "fast", "width": "dimension"}  # options, where ours are not the paper's


@dataclass(frozen=True)
class BOPT:
    """Two levels of training.

    surrogate  "tgp", the bias bounded, or "dgp", not bounded
    s          new configurations for each complete training; None takes half of the measured ratio of their costs
    initial    complete trainings of the initial design
    fast_ends  rule that ends the fast period, by name or as an object of policies.levels
    ends       rule that ends a complete training before max_steps, None for none
    bias       "truncated" as in the paper, or "lognormal"
    level      of a value: "best" of what was reported so far, or the "last"
    rho        factor between the levels, None to estimate it
    aim        of new configurations: where the bound of the "complete" level is least, or of the "fast" as in the paper
    width      of the bound: "even" for any number of parameters, or growing with it ("dimension"), as in the paper
    per_cost   weigh both choices by their predicted cost
    joint      let improvement per cost choose the level, in place of s
    """

    name: ClassVar[str] = "bopt"
    surrogate: Literal["tgp", "dgp"] = "tgp"
    s: int | None = None
    initial: int = INITIAL
    fast_ends: str | levels.Rule = levels.EIGHTY_PERCENT
    ends: str | levels.Rule | None = levels.COMPLETE
    bias: Literal["truncated", "lognormal"] = "truncated"
    level: Literal["best", "last"] = "best"
    rho: float | None = 1.0
    aim: Literal["complete", "fast"] = "complete"
    width: Literal["even", "dimension"] = "even"
    per_cost: bool = False
    joint: bool = False

    def __post_init__(self) -> None:
        for option, accepted in (
            ("surrogate", ("tgp", "dgp")), ("bias", ("truncated", "lognormal")), ("level", ("best", "last")),
            ("aim", ("complete", "fast")), ("width", ("even", "dimension")),
        ):  # fmt: skip
            if getattr(self, option) not in accepted:
                raise InvalidArgument(f"bopt: {option} must be one of {accepted}, got {getattr(self, option)!r}")
        for option in ("s", "initial"):
            given = getattr(self, option)
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise InvalidArgument(f"bopt: {option} must be a whole number of at least 1, got {given!r}")
        if self.rho is not None and not 0.0 < self.rho < np.inf:
            raise InvalidArgument(f"bopt: rho must be a number above 0, or None, got {self.rho!r}")
        if self.rho is None and self.bias == "lognormal":
            raise InvalidArgument("bopt: with a log-normal bias rho must be given")
        for option in ("fast_ends", "ends"):
            given = getattr(self, option)
            if isinstance(given, Mapping):  # from a file
                kind = levels.BY_NAME[given["name"]]
                given = kind(**{name: value for name, value in given.items() if name != "name"})
                object.__setattr__(self, option, given)
            if given is not None:
                levels.rule_of(given)

    # -- after a step ------------------------------------------------------------------------------------------------

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: Trial, rng: np.random.Generator
    ) -> Decision:
        """Pause where the fast period ends, stop where training has converged; the first run goes to its end."""
        if history.max_steps is None:
            return Decision.CONTINUE
        fast = self.fast_end(trial, history.max_steps)
        if fast is None:
            return Decision.CONTINUE
        if fast >= len(trial.curve):
            return Decision.PAUSE
        if self.ends is None:
            return Decision.CONTINUE
        over = levels.first_end(self.ends, trial.curve.values, _train_values(trial), history.max_steps)
        return Decision.CONTINUE if over is None else Decision.STOP

    def fast_end(self, trial: Trial, max_steps: int | None) -> int | None:
        """The step at which the fast period of a trial ended; a complete training without one ended with it."""
        found = levels.first_end(self.fast_ends, trial.curve.values, _train_values(trial), max_steps)
        if found is None and trial.status in (Status.COMPLETE, Status.STOPPED) and len(trial.curve):
            return len(trial.curve)
        return found

    # -- the next proposals ------------------------------------------------------------------------------------------

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        state = State.of(self, space, history, ledger, rng)
        proposals: list[Proposal] = []
        while len(proposals) < n and (proposal := state.next()) is not None:
            proposals.append(proposal)
            state = state.with_running(proposal)
        return proposals


@dataclass(frozen=True, eq=False)
class State:
    """All that decides about the next proposal."""

    policy: BOPT
    space: Space
    history: History
    ledger: Ledger
    rng: np.random.Generator
    fresh: FreshSpace
    known: TwoLevels
    begun: int  # configurations begun, those proposed just now included
    completing: frozenset[int]  # trials on their way to completion
    pending: Array  # (k, f) features of what is in its fast period

    @classmethod
    def of(cls, policy: BOPT, space: Space, history: History, ledger: Ledger, rng: np.random.Generator) -> State:
        steps = history.max_steps
        ended = (Run.of(trial, policy.fast_end(trial, steps), policy.level) for trial in history.trials)
        runs = [run for run in ended if run is not None]
        seen = {run.trial.number for run in runs}
        running = [trial for trial in history.running if trial.number not in seen]
        completing = frozenset(run.trial.number for run in runs if run.trial.status is Status.RUNNING)
        pending = space.features(units(running, len(space)))
        known = TwoLevels(
            space, runs, steps, history.fits.get("bopt"), policy.surrogate, policy.bias, policy.level, policy.rho
        )  # fmt: skip
        fresh = FreshSpace(space, history)
        return cls(policy, space, history, ledger, rng, fresh, known, len(history.trials), completing, pending)

    def with_running(self, proposal: Proposal) -> State:
        """As if the proposal were running."""
        ledger = self.ledger.promised(proposal.predicted_cost or 0.0, 1)
        if proposal.trial < len(self.history.trials):
            return replace(self, ledger=ledger, completing=self.completing | {proposal.trial})
        x = self.space.features(self.space.encode(proposal.config)[None, :])
        return replace(self, ledger=ledger, begun=self.begun + 1, pending=np.concatenate([self.pending, x]))

    def next(self) -> Proposal | None:
        """A new configuration, or a paused one to complete."""
        outer = FIRST_RATIO * self.policy.initial
        if self.begun < outer:
            return self._new(self._designed(), "initial design, trained to the end of its fast period")
        if not self.paused:
            return self._searched()
        if self.completed < self.policy.initial:
            return self._resumed(self._of_design(), "initial design, trained completely")
        if self._completes_next():
            return self._best_paused()
        return self._searched() or self._best_paused()

    # -- which level -------------------------------------------------------------------------------------------------

    @property
    def paused(self) -> list[Run]:
        resting = [run for run in self.known.runs if run.trial.status is Status.PAUSED]
        return [run for run in resting if run.trial.number not in self.completing]

    @property
    def completed(self) -> int:
        return sum(run.complete is not None for run in self.known.runs) + len(self.completing)

    def _completes_next(self) -> bool:
        """Whether it is the turn of a complete training: after s new ones, or when none would fit after a new one."""
        cheapest = min(self.known.rest_cost(run) for run in self.paused)
        if self._is_limited and self.known.new_cost() + cheapest > self._left >= cheapest:
            return True
        if self.policy.joint:
            return self._joint_choice()
        new = self.begun - FIRST_RATIO * self.policy.initial
        return new >= self.ratio * (self.completed - self.policy.initial + 1)

    @property
    def ratio(self) -> int:
        """s: as given, else half the measured ratio of the costs of the levels, at least 1 and below that ratio."""
        if self.policy.s is not None:
            return self.policy.s
        if self.known.rest_ratio is None:
            return FIRST_RATIO
        measured = 1.0 + self.known.rest_ratio
        return int(np.clip(round(measured / 2.0), 1, max(min(np.ceil(measured) - 1, MOST_RATIO), 1)))

    # -- what it costs -----------------------------------------------------------------------------------------------

    @property
    def _is_limited(self) -> bool:
        return self.ledger.unit in self.ledger.budget.limits

    @property
    def _left(self) -> float:
        return self.ledger.available

    # -- proposals ---------------------------------------------------------------------------------------------------

    def _designed(self) -> Config | None:
        """The next point of the nested design, whose first points are those to be completed."""
        inner = self.policy.initial
        design = np.random.default_rng(self.history.seed)
        U = nested_latin_hypercube(inner, FIRST_RATIO * inner, len(self.space), design)
        return self.fresh.claim_or_any(U[self.begun :], self.rng)

    def _of_design(self) -> Run:
        inner = [run for run in self.paused if run.trial.number < self.policy.initial]
        return inner[0] if inner else min(self.paused, key=lambda run: run.fast)

    def _searched(self) -> Proposal | None:
        if len(self.known.runs) < 2:
            return self._new(self.fresh.claim_any(self.rng), "drawn at random: nothing is known yet")
        reason = f"lowest confidence bound of the {'first' if self.policy.aim == 'fast' else 'complete'} level"
        return self._new(self.fresh.claim_or_any(self._ranked_new(), self.rng), reason)

    def _best_paused(self) -> Proposal:
        paused = self.paused
        fitting = [run for run in paused if self.known.rest_cost(run) <= self._left] if self._is_limited else paused
        some = fitting or paused
        best = int(np.argmax(self._utility_of_completing(some)))
        return self._resumed(some[best], f"most promising of {len(paused)} paused trainings")

    def _new(self, config: Config | None, reason: str) -> Proposal | None:
        if config is None:
            return None
        return Proposal(self.begun, config, self.known.new_cost() or None, reason, self.known.fits)

    def _resumed(self, run: Run, reason: str) -> Proposal:
        trial = run.trial
        cost = self.known.rest_cost(run) or None
        return Proposal(trial.number, trial.config, cost, reason, self.known.fits, start_step=trial.kept_step)

    # -- models ------------------------------------------------------------------------------------------------------

    @cached_property
    def _pending_model(self) -> TwoFidelity:
        """Both levels, with runs in their fast period as if they had ended at their means."""
        return self.known.model.with_pending(self.pending)

    def _ranked_new(self) -> Array:
        best = np.argsort([run.fast for run in self.known.runs], kind="stable")[:ANCHORS]
        anchors = units([self.known.runs[i].trial for i in best], len(self.space))
        return np.asarray(maximize(self._acquisition(), self.fresh, anchors, self.rng, self.fresh.listed()).U)

    def _acquisition(self) -> Acquisition:
        model = self._pending_model
        level: Surrogate = model.low if self.policy.aim == "fast" else model
        bound = self._bound(level, len(self.known.runs))
        cost = self.known.fast_cost_model if self.policy.per_cost else None
        if cost is None and self._success is None:
            return bound
        target = float(min(self.known.scaled([run.fast for run in self.known.runs])))
        gain: Acquisition = LogOptimism(bound, target, SOFTNESS)
        if self._success is not None:
            gain = IfSuccessful(gain, self._success)
        return gain if cost is None else PerCost(gain, cost, 1.0)

    @cached_property
    def _success(self) -> Feasibility | None:
        """Where trainings succeed; None while all do."""
        return success_model(self.space, self.history)

    def _bound(self, level: Surrogate, evaluations: int) -> ConfidenceBound:
        return ConfidenceBound(level, width(len(self.space) if self.policy.width == "dimension" else 1, evaluations))

    def _utility_of_completing(self, runs: Sequence[Run]) -> Array:
        """phi_c of paused runs, or what it may gain per cost."""
        bound = self._bound(self.known.model, self.completed)
        if not (self.policy.per_cost or self.policy.joint):
            return bound(self.known.features(runs))
        gain = LogOptimism(bound, self.known.target, SOFTNESS)(self.known.features(runs))
        return np.asarray(gain - np.log([max(self.known.rest_cost(run), 1e-300) for run in runs]))

    def _joint_choice(self) -> bool:
        """Whether the best paused run gains more per cost than the best new configuration, both seen at completion: a
        new one has to pay both levels for that."""
        paused = float(np.max(self._utility_of_completing(self.paused)))
        U = self._ranked_new()[:1]
        if not len(U):
            return True
        bound = self._bound(self.known.model, self.completed)
        x = self.space.features(U)
        gain = float(LogOptimism(bound, self.known.target, SOFTNESS)(x)[0])
        gain += 0.0 if self._success is None else float(self._success.log_success(x)[0])
        return bool(paused >= gain - np.log(max(self.known.whole_cost(), 1e-300)))


def _train_values(trial: Trial) -> Array | None:
    """Training values, NaN where a step reported none; None where none did."""
    if all(value is None for value in trial.curve.train_values):
        return None
    return np.array([np.nan if value is None else value for value in trial.curve.train_values])
