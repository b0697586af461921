"""Policy `thaw`: for learners that train step by step, by a network that has learned in advance how curves go on.

The network (`surrogates/curves/network.py`) looks at all curves of a study and predicts the best value of any training
at any later step, with nothing to fit. Each ask compares new configurations and paused trainings, each at several
horizons, and takes the pair of largest

    log EI - alpha (1 - share of the budget used) log cost

EI the expected improvement over the best of the study when that horizon is reached, cost what it takes to get there:
at the beginning what is cheap, at the end what is best. New configurations that are nearly the same as one that was
begun are left out: the network would hope for another outcome each time. The run is trained for a small part of a
training, then all are compared again: a run that disappoints stays paused, and is resumed if the others disappoint
more. Where short trainings tell little of their ends, because learning begins late, the part is larger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

import numpy as np

from farthing.budget import Ledger
from farthing.checks import number, one_of, refuse, whole_number
from farthing.history import History
from farthing.numerics.arrays import Array
from farthing.numerics.deadline import keep_to_deadline
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import LEAST_COST
from farthing.policies.ei_alpha import cooled
from farthing.policies.fits import success_model
from farthing.policies.protocol import settle_option
from farthing.policies.ranking import in_words
from farthing.policies.run_candidates import RunCandidates, chosen_in_turn, designed, new_points
from farthing.policies.sampling import SPREAD
from farthing.policies.step_costs import StepCosts
from farthing.policies.thaw.runs import (
    MOST_CURVES,
    TINY,
    Expected,
    KnownCurves,
    known_steps,
    outcomes,
    paused_of,
    stops_of,
)
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.curves.network import CHECKSUM, expected_gain, require_file, weights
from farthing.surrogates.feasibility import Feasibility
from farthing.trial import Proposal

POOL = 96  # new configurations from all of the space
ANCHORS = 3  # trainings whose surroundings are searched
CLEAR = 0.25  # clarity from which on runs are compared again after one period; below it periods are longer
MOST_PERIODS = 4.0  # that a run is trained for between two comparisons where short trainings tell nothing
THINKING = 4.0  # times the time of an ask that a run is trained for, where a budget of seconds pays for both
DIGITS = 16  # of a checksum, which a study stores

TOO_LITTLE_LEFT = "the next point of the design: no run is predicted to fit into what is left of the budget"


@dataclass(frozen=True)
class Thaw:
    """Freeze and thaw by a network trained in advance.

    initial     configurations of the design, each trained for one `period`
    period      share of a complete training after which all runs are compared again; more where thinking would take
                a large part of the budget, and up to four times as much where short trainings tell little
    alpha       exponent of cost at the beginning of the budget, which falls to 0 at its end: with 0 only improvement
                counts, with 1 improvement per cost
    cost_model  of the cost of a step: all models of cost, weighted ("auto"), or one of them by name (docs/cost.md)

    `network` is no option: it tells a study of another network, which goes on with the one of this version.
    """

    name: ClassVar[str] = "thaw"
    needs_steps: ClassVar[bool] = True  # there is no `decide`: runs are paused where they were planned to stop
    initial: int = 6
    period: float = 0.05
    alpha: float = 1.0
    cost_model: CostModelName = "auto"
    network: str = field(default=CHECKSUM[:DIGITS], repr=False)

    def __post_init__(self) -> None:
        settle_option(self, "initial", whole_number, least=1)
        settle_option(self, "period", number, above=0.0, most=1.0)
        settle_option(self, "alpha", number, least=0.0)
        settle_option(self, "cost_model", one_of, accepted=get_args(CostModelName))
        settle_option(self, "network", _digits)
        require_file()

    def rows(self, history: History) -> int:
        return min(len(history.trials), MOST_CURVES)

    def steps_of_period(self, max_steps: int) -> int:
        return max(round(self.period * max_steps), 1)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        chooser = None if len(history.trials) < self.initial else _Chooser.of(self, space, history, ledger, fresh, rng)
        reason = SPREAD if chooser is None else TOO_LITTLE_LEFT
        until = None if history.max_steps is None else self.steps_of_period(history.max_steps)
        return chosen_in_turn(chooser, lambda number: designed(fresh, history, number, rng, until, reason), history, n)


def _digits(name: str, given: Any) -> str:
    """The first digits of a checksum."""
    if not isinstance(given, str) or re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", given) is None:
        refuse(name, f"{DIGITS} digits of a checksum", given)
    return given


@dataclass(frozen=True, eq=False)
class _Chooser:
    """Chooses among new configurations and paused trainings."""

    policy: Thaw
    space: Space
    history: History
    ledger: Ledger
    fresh: FreshSpace
    known: KnownCurves
    costs: StepCosts
    success: Feasibility | None
    start: float  # cost until a process is ready for a new run
    planned: Sequence[Expected]  # by this ask
    rng: np.random.Generator

    @classmethod
    def of(
        cls, policy: Thaw, space: Space, history: History, ledger: Ledger, fresh: FreshSpace, rng: np.random.Generator
    ) -> _Chooser | None:
        known = KnownCurves.of(space, history, weights(), ANCHORS)
        if known is None:
            return None
        costs = StepCosts.of("lines", policy.cost_model, space, history)
        start = history.start_price(ledger.unit)
        return cls(
            policy, space, history, ledger, fresh, known, costs, success_model(space, history), start, (), rng
        )  # fmt: skip

    def with_running(self, proposal: Proposal) -> _Chooser:
        """As if the proposal were running."""
        stop = proposal.until_step or self._T
        planned = (*self.planned, Expected(proposal.trial, self.space.encode(proposal.config), stop))
        ledger = self.ledger.promised(proposal.predicted_cost or 0.0, 1)
        return replace(self, known=self.known.expecting(planned[-1:]), planned=planned, ledger=ledger)

    @property
    def _T(self) -> int:
        assert self.history.max_steps is not None  # else no curves are known
        return self.history.max_steps

    def next_proposal(self, number: int) -> Proposal | None:
        """The run of largest gain, under `number` if it is new; None if nothing can be paid for."""
        found = self._candidates()
        stops = stops_of(found, self._T, self.ledger.available)
        utility = self._utility(found, stops)
        for i in np.argsort(-utility.max(axis=1), kind="stable"):
            best = utility[i].max()
            if best == -np.inf:
                return None
            horizon = int(stops[i, np.argmax(utility[i])])
            proposal = self._proposal(found, int(i), horizon, number)
            if proposal is not None:
                return proposal
        return None

    def _proposal(self, found: RunCandidates, i: int, horizon: int, number: int) -> Proposal | None:
        """The run i of the candidates, to its horizon or one period beyond what is known; None if it is taken."""
        step = int(found.step[i])
        stop = min(horizon, int(known_steps(found)[i]) + self._period(float(found.log_cost[i])))
        cost = float(np.exp(found.log_cost[i])) * (stop - step)
        trial = found.trials[i]
        config = self.fresh.claim(found.U[i : i + 1]) if trial is None else trial.config
        if config is None:
            return None
        what = "a new configuration" if trial is None else f"resumed at step {step}"
        reason = f"{what}: {in_words(self._alpha)}, by step {horizon}"
        return Proposal(number if trial is None else trial.number, config, cost, reason, self.costs.fits, step, stop)

    @property
    def _alpha(self) -> float:
        return self.policy.alpha * cooled(self.ledger, 0.0)

    def _period(self, log_cost: float) -> int:
        """Steps until all runs are compared again: more than a period where so little tells nothing. Training should
        cost THINKING times the asks, where those cost."""
        periods = min(max(CLEAR / max(self.known.clarity, TINY), 1.0), MOST_PERIODS)
        per_ask = self.ledger.account("optimiser") / max(self.history.asks, 1)
        enough = math.ceil(min(THINKING * per_ask / math.exp(log_cost), self._T)) if per_ask > 0.0 else 1
        return max(round(periods * self.policy.period * self._T), enough)

    def _candidates(self) -> RunCandidates:
        taken = {run.number for run in self.planned}
        paused = [trial for trial in paused_of(self.history, self.known) if trial.number not in taken]
        U = self.known.apart(new_points(self.fresh, self.known.anchors, POOL, self.rng))
        return RunCandidates.of(self.space, self.costs, self.start, U, paused)

    def _utility(self, found: RunCandidates, stops: Array) -> Array:
        """log EI - alpha log cost (c, q) of candidates at their horizons, with the chance of success; -inf where not
        one new step can be paid for."""
        keep_to_deadline()
        if not len(found.U):
            return np.full((1, 1), -np.inf)
        with np.errstate(divide="ignore", over="ignore"):
            log_ei = np.log(expected_gain(outcomes(found, self.known, stops)))
            cost = np.exp(found.log_cost)[:, None] * (stops - found.step[:, None]) + found.start[:, None]
        utility = log_ei - self._alpha * np.log(np.maximum(cost, LEAST_COST))
        if self.success is not None:
            utility = utility + self.success.log_success(found.X)[:, None]
        return np.where((stops > known_steps(found)[:, None]) & np.isfinite(utility), utility, -np.inf)
