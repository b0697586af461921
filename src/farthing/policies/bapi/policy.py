"""Policy `bapi`: budget-aware planning for iterative learners (BAPI; Belakaria, Doppa, Fusi and Sheth 2023).

Training curves are a Gaussian process over configuration and time that only falls (`surrogates/curves/monotone.py`).
Each ask plans what the rest of the budget could buy, and takes the first step of that plan (Algorithms 2 and 4; see
`planner.py`):

    the horizon     configurations, one after the other, each with the largest expected improvement at the end of its
                    training given those before it, until their costs use up the budget or there are `horizon` of them
    its stop        the first step from which the rest of the curve gains less than eps                 (Eq. 8)
    the next run    of the horizon, the one whose improvement at its stop is largest per cost

A run is paused at its stop. It is paused earlier if the curve so far shows that it will not win (Algorithm 5): once per
`period` of a training, if the value predicted for its stop is not better than the best and about as certain as the
present value. Paused runs are candidates like any other, at the cost of the steps they still need, so that a paused run
is resumed if its prediction improves.

Symbols: t steps, t_max those of a complete training; mu and s mean and standard deviation of the process; y the running
best of what was reported, warped; R what is left of the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from farthing.budget import Ledger
from farthing.checks import number, one_of, switch, whole_number
from farthing.history import History, TrackedTrial, Way
from farthing.policies.bapi.curves import POINTS, CurvePoints, TrainingCurves
from farthing.policies.bapi.planner import Planner
from farthing.policies.bapi.step_costs import StepCostModel
from farthing.policies.candidates import FreshSpace
from farthing.policies.protocol import Published, settle_option
from farthing.policies.sampling import NO_TIME, next_of_design
from farthing.space import Space
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.trial import Decision, Proposal

OVERRUN = 1.25  # times its predicted cost, at which a run is paused and planned again: beyond the usual error


@dataclass(frozen=True, repr=False)
class BAPI(Published):
    """Budget-aware planning.

    horizon   number of runs that are planned ahead, at most
    points    of each curve that enter the data: up to three, those of largest variance ("variance"), or the "last"
    kernel    over time: "decay" for curves that fall fast and then slowly, "rbf" for those that may stay flat first
    monotone  whether the model knows that curves only fall
    eps       gain below which more training is not worth it, in the units of the value; None: 5 % of the way from
              the median of the values seen to the best
    tau       a run is paused early only if its predicted end is at most tau times as uncertain as the present
    period    share of a complete training after which a run is judged again
    initial   configurations of the design, each trained for one period
    cost      of a step: by Farthing's low-variance models ("lines"), or a process times the steps ("process")
    """

    name: ClassVar[str] = "bapi"
    PAPER: ClassVar[Mapping[str, Any]] = {"cost": "process"}
    horizon: int = 4
    points: CurvePoints = "variance"
    kernel: TimeKernel = "decay"
    monotone: bool = True
    eps: float | None = None
    tau: float = 2.0
    period: float = 0.2
    initial: int = 5
    cost: StepCostModel = "lines"

    def __post_init__(self) -> None:
        for option, accepted in (("points", CurvePoints), ("kernel", TimeKernel), ("cost", StepCostModel)):
            settle_option(self, option, one_of, accepted=get_args(accepted))
        for option in ("horizon", "initial"):
            settle_option(self, option, whole_number, least=1)
        settle_option(self, "monotone", switch)
        settle_option(self, "eps", number, above=0.0, or_none=True)
        settle_option(self, "tau", number, above=1.0)
        settle_option(self, "period", number, above=0.0, most=1.0)

    def steps_of_period(self, max_steps: int) -> int:
        return max(round(self.period * max_steps), 1)

    def rows(self, history: History) -> int:
        return len(history.trials) * (1 if self.points == "last" else POINTS)

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
    ) -> Decision:
        """Pause a run that will not win (Algorithm 5), or that costs more than predicted, to plan again with its true
        cost. Where a run that may win stops was decided when it was proposed. Without time to think it goes on."""
        if history.max_steps is None:
            return Decision.CONTINUE
        if _is_over_its_predicted_cost(trial):
            return Decision.PAUSE
        if len(history.trials) <= self.initial:
            return Decision.CONTINUE
        if trial.kept_step % self.steps_of_period(history.max_steps):
            return Decision.CONTINUE
        curves = TrainingCurves.of(self, space, history, rng)
        if curves is None:
            return Decision.CONTINUE
        x = space.features(trial.unit[None, :])
        stop = int(curves.stops(x)[0])
        here = float(trial.kept_step)
        mean, variance = curves.paths.at(np.repeat(x, 2, axis=0), np.array([max(stop, here), here])).moments()
        wins = mean[0] < curves.best
        sure = variance[0] <= self.tau**2 * variance[1]
        return Decision.PAUSE if sure and not wins else Decision.CONTINUE

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        proposals: list[Proposal] = []
        curves = None if len(history.trials) < self.initial else TrainingCurves.of(self, space, history, rng)
        planner = None if curves is None else Planner.of(self, space, history, ledger, fresh, curves, rng)
        while len(proposals) < n:
            number = _next_number(proposals, history)
            proposal = None if planner is None else planner.next_proposal(number)
            if proposal is None:
                proposal = self._designed(fresh, history, number, rng)
            if proposal is None:
                break
            proposals.append(proposal)
            if planner is not None:
                planner = planner.with_running(proposal)
        return proposals

    def _designed(self, fresh: FreshSpace, history: History, number: int, rng: np.random.Generator) -> Proposal | None:
        """A point of a Sobol sequence, trained for one period; to its end while max_steps is not known."""
        config = next_of_design(fresh, history, number, rng)
        if config is None:
            return None
        until = None if history.max_steps is None else self.steps_of_period(history.max_steps)
        reason = "initial design" if history.way is not Way.NONE else NO_TIME
        return Proposal(number, config, reason=reason, until_step=until)


def _is_over_its_predicted_cost(trial: TrackedTrial) -> bool:
    spent = sum(cost or 0.0 for cost in trial.curve.costs[trial.from_step :])
    return trial.predicted_cost is not None and spent > OVERRUN * trial.predicted_cost


def _next_number(proposals: Sequence[Proposal], history: History) -> int:
    """The number of the next new trial, after those proposed already."""
    return len(history.trials) + sum(proposal.trial >= len(history.trials) for proposal in proposals)
