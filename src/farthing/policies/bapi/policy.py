"""Policy `bapi`: budget-aware planning for iterative learners (BAPI; Belakaria, Doppa, Fusi and Sheth 2023).

Training curves are a Gaussian process over configuration and time that only falls (`surrogates/curves/monotone.py`).
Each ask plans what the rest of the budget could buy, and takes the first step of that plan (Algorithms 2 and 4; see
`planner.py`):

    the horizon     configurations, one after the other, each with the largest expected improvement at the end of its
                    training given those before it, until their costs use up the budget or there are `horizon` of them
    its stop        the first step from which the rest of the curve gains less than eps                 (Eq. 8)
    the next run    of the horizon, the one whose improvement at its stop is largest per cost

Once per `period` of a training, and at its stop, a run is looked at with its own curve (Algorithm 5). If the value
predicted for its stop is not better than the best of the others, and about as certain as the present value, it will
not win and is paused. Else its stop is that of the new prediction, earlier or later (line 7), and it is paused there.
Paused runs are candidates like any other, at the cost of the steps they still need, so that a paused run is resumed if
its prediction improves.

Symbols: t steps, t_max those of a complete training; mu and s mean and standard deviation of the process; y the running
best of what was reported, warped; R what is left of the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from farthing.budget import Ledger
from farthing.checks import finite, number, one_of, refuse, whole_number
from farthing.history import History, TrackedTrial
from farthing.policies.bapi.curves import POINTS, CurvePoints, Tolerance, TrainingCurves
from farthing.policies.bapi.planner import Planner
from farthing.policies.candidates import FreshSpace
from farthing.policies.finishing import cost_per_step
from farthing.policies.model_options import EndOfBudget, ModelledValues
from farthing.policies.protocol import Published, settle_option
from farthing.policies.run_candidates import chosen_in_turn, designed
from farthing.policies.step_costs import StepCostModel
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.curves.choice import Auto, KernelOption
from farthing.trial import ContinueTo, Decision, Proposal

InitialTraining: TypeAlias = Literal["period", "complete"]

WORDS = {
    "points": CurvePoints, "kernel": KernelOption, "values": ModelledValues, "initial_training": InitialTraining,
    "cost": StepCostModel, "cost_model": CostModelName, "end": EndOfBudget,
}  # fmt: skip
OVERRUN = 1.25  # default of overrun: beyond the usual error of predicted costs


@dataclass(frozen=True, repr=False)
class BAPI(Published):
    """Budget-aware planning.

    horizon   number of runs that are planned ahead, at most
    points    of each curve that enter the data: up to three, those of largest variance given the others of the same
              curve ("variance") or of all curves ("posterior"); the end, half and quarter ("halves"); or the "last"
    kernel    over time: "decay" for curves that fall fast and then slowly, "rbf" for those that may stay flat first,
              "rbf-plain" as the paper prints it; "auto": "decay" or "rbf", whichever predicts the curves better
    monotone  whether the model knows that curves only fall; "auto": if their ends are predicted no worse so
    values    as they are modelled: "warped" by a monotone transform, or "plain", in which EI has the units of the value
    eps       gain below which more training is not worth it, in the units of the value; None: 5 % of the way from
              the median of the values seen to the best; "least": the least that a complete curve still gained from
              one of its steps to its end, and as with None while no curve is complete
    tau       a run is paused early only if its predicted end is at most tau times as uncertain as the present
    period    share of a complete training after which a run is looked at again
    overrun   times its predicted cost, at which a run is paused and planned again; None: never
    initial   configurations of the design
    initial_training  of each of them: for one "period", or "complete"
    cost      of a step: by Farthing's low-variance models ("lines"), or a process times the steps ("process")
    cost_model  of "lines": all models of cost, weighted ("auto"), or one of them by name (docs/cost.md)
    end       "planned": improvement counts as far as the rest of the budget reaches, and runs are planned to stop
              there; "ignored": it counts at the end of the training, and the budget ends unforeseen
    """

    name: ClassVar[str] = "bapi"
    PAPER: ClassVar[Mapping[str, Any]] = {
        "points": "posterior",
        "values": "plain",
        "eps": "least",
        "overrun": None,
        "initial_training": "complete",
        "cost": "process",
        "end": "ignored",
    }
    horizon: int = 4
    points: CurvePoints = "variance"
    kernel: KernelOption = "decay"
    monotone: bool | Auto = True
    values: ModelledValues = "warped"
    eps: float | Literal["least"] | None = None
    tau: float = 2.0
    period: float = 0.2
    overrun: float | None = OVERRUN
    initial: int = 5
    initial_training: InitialTraining = "period"
    cost: StepCostModel = "lines"
    cost_model: CostModelName = "auto"
    end: EndOfBudget = "planned"

    def __post_init__(self) -> None:
        for option, accepted in WORDS.items():
            settle_option(self, option, one_of, accepted=get_args(accepted))
        for option in ("horizon", "initial"):
            settle_option(self, option, whole_number, least=1)
        settle_option(self, "monotone", _switch_or_auto)
        settle_option(self, "eps", _tolerance)
        settle_option(self, "tau", number, above=1.0)
        settle_option(self, "period", number, above=0.0, most=1.0)
        settle_option(self, "overrun", number, least=1.0, or_none=True)

    @property
    def plans_end(self) -> bool:
        return self.end == "planned"

    def steps_of_period(self, max_steps: int) -> int:
        return max(round(self.period * max_steps), 1)

    def rows(self, history: History) -> int:
        return len(history.trials) * (1 if self.points == "last" else POINTS)

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
    ) -> Decision | ContinueTo:
        """Algorithm 5 for a run that was planned; one of the design is trained as it was proposed. A run that costs
        more than predicted is paused, to plan again with its true cost. Without time to think a run goes on."""
        if history.max_steps is None or self._is_of_design(trial):
            return Decision.CONTINUE
        if self._is_over_its_predicted_cost(trial):
            return Decision.PAUSE
        if trial.kept_step % self.steps_of_period(history.max_steps) and trial.kept_step != trial.until_step:
            return Decision.CONTINUE
        curves = TrainingCurves.of(self, space, history, rng, chooses=False)
        return Decision.CONTINUE if curves is None else self._looked_at(curves, space, ledger, trial)

    def _looked_at(
        self, curves: TrainingCurves, space: Space, ledger: Ledger, trial: TrackedTrial
    ) -> Decision | ContinueTo:
        """Paused if it will not win, or is at its stop; else it goes on to where its stop is now (lines 4 to 7)."""
        x, here = space.features(trial.unit[None, :]), trial.kept_step
        stop = int(curves.stops(x)[0])
        mean, variance = curves.paths.at(np.repeat(x, 2, axis=0), np.array([max(stop, here), here])).moments()
        wins = mean[0] < curves.best_of_others(trial.number)
        sure = variance[0] <= self.tau**2 * variance[1]
        stop = min(stop, self._last_to_move_to(trial, ledger, curves.t_max))
        if (sure and not wins) or stop <= here:
            return Decision.PAUSE
        return Decision.CONTINUE if stop == trial.until_step else ContinueTo(stop)

    def _last_to_move_to(self, trial: TrackedTrial, ledger: Ledger, t_max: int) -> int:
        """The last step that a run can be moved on to, and at least the one it was planned to: what is left pays for
        it, but for what other runs were promised. Time passes for all alike."""
        per_step = cost_per_step(trial)
        if not self.plans_end or not per_step:
            return t_max
        others = 0.0 if ledger.unit == "seconds" else max(ledger.committed - (trial.predicted_cost or 0.0), 0.0)
        steps = max(ledger.remaining - others, 0.0) / per_step
        return max(trial.until_step or 0, trial.kept_step + int(min(steps, t_max)))

    def _is_of_design(self, trial: TrackedTrial) -> bool:
        return trial.number < self.initial and trial.predicted_cost is None

    def _is_over_its_predicted_cost(self, trial: TrackedTrial) -> bool:
        spent = sum(cost or 0.0 for cost in trial.curve.costs[trial.from_step :])
        limit = None if self.overrun is None or trial.predicted_cost is None else self.overrun * trial.predicted_cost
        return limit is not None and spent > limit

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        curves = None if len(history.trials) < self.initial else TrainingCurves.of(self, space, history, rng)
        planner = None if curves is None else Planner.of(self, space, history, ledger, fresh, curves, rng)
        until = history.max_steps
        if until is not None and self.initial_training == "period":
            until = self.steps_of_period(until)
        return chosen_in_turn(planner, lambda number: designed(fresh, history, number, rng, until), history, n)


def _tolerance(name: str, given: Any) -> Tolerance:
    """A number above 0, "least" or None."""
    if given is None:
        return None
    if isinstance(given, str) and given == "least":
        return "least"
    found = finite(given)
    return found if found is not None and found > 0.0 else refuse(name, "a number above 0, 'least', or None", given)


def _switch_or_auto(name: str, given: Any) -> bool | Auto:
    """True, False or "auto"."""
    if isinstance(given, str) and given == "auto":
        return "auto"
    return bool(given) if isinstance(given, bool | np.bool_) else refuse(name, "True, False or 'auto'", given)
