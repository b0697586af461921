"""Finishing the best: the end of a budget goes to the trial that would be its result.

A policy that pauses runs to try others often ends with the best one paused: a configuration, and no trained model. A
policy with `finishes_best` leaves that to this rule, which follows from history and ledger alone:

    F       what the best trial still needs: the mean cost of its own steps so far, times the steps it has left, those
            included that have to be trained again; and times what the ledger was charged for all trials over what they
            cost, since under a budget of seconds waiting for a step takes longer than the step
    o       what the optimiser and starting processes spent per ask so far; nothing where they are free
    due     when what is left of the budget, without F and o (and some more for steps that cost more than their mean),
            is less than o and a fifth of a training: too little for a run that could show something, so the best goes
            on to its end
    guard   another run is paused before a step that would use up a part of F and o

Nothing is kept where F is more than is left, or more than MOST of the whole budget. A best trial that is complete needs
nothing: then all that is left is the policy's again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.budget import Ledger
from farthing.history import History, TrackedTrial
from farthing.policies.protocol import Policy
from farthing.trial import Decision, Proposal, Status

# The reason of such a proposal, and what later steps know it by.
FINISHING = "finishing the best: too little is left for another run"

OVERHEAD = ("optimiser", "start-up")  # accounts that no evaluation is charged to

# Chosen on six tasks that docs/finishing.md does not show, 46 studies with budgets of 2 to 8 trainings. Without the
# rule the best ended complete in 46 % of them, and the mean regret was 0.22; with it in 78 %, with 0.18.
SAFETY = 1.1  # times F, since steps vary; 1.0 gave 76 % and 0.20
MARGIN = 0.2  # of a training: the least that `bapi` trains a new one; 0 gave 70 % and 0.19, 1 gave 83 % and 0.21
MOST = 0.5  # of the whole budget; 0.25 gave 63 % and 0.21, 1 gave 74 % and 0.20


@dataclass(frozen=True)
class Reserve:
    """What is kept for the best trial."""

    best: TrackedTrial
    cost: float  # F and o, with what is added for safety
    margin: float  # of what is left after it, below which finishing begins


def finishes_best(policy: Policy) -> bool:
    """Whether the end of the budget is this rule's, and not the policy's own."""
    return bool(getattr(policy, "finishes_best", False))


def reserve_of(history: History, ledger: Ledger) -> Reserve | None:
    """What to keep, or None: the best is complete or cannot go on, or it costs too much."""
    best, steps = history.incumbent, history.max_steps
    if best is None or steps is None or best.status not in (Status.PAUSED, Status.RUNNING):
        return None
    per_step = cost_per_step(best)
    if per_step is None:
        return None
    cost = per_step * max(steps - best.kept_step, 0) * _charged_per_cost(history, ledger)
    if cost > ledger.remaining or cost > MOST * ledger.budget.limits.get(ledger.unit, math.inf):
        return None
    per_ask = _overhead(ledger) / max(history.asks, 1)
    return Reserve(best, SAFETY * cost + per_ask, MARGIN * per_step * steps + per_ask)


def proposal_to_finish(history: History, ledger: Ledger) -> Proposal | None:
    """The best trial, to the end of its training, once that is due."""
    reserve = reserve_of(history, ledger)
    if reserve is None or reserve.best.status is not Status.PAUSED or not _is_due(reserve, history, ledger):
        return None
    best = reserve.best
    return Proposal(
        best.number, best.config, reserve.cost, FINISHING, start_step=best.kept_step, until_step=history.max_steps
    )  # fmt: skip


def decision_to_finish(history: History, ledger: Ledger, trial: TrackedTrial) -> Decision | None:
    """What a running trial does after a step for the sake of the best: the best itself goes on once that is due, others
    make way before they use up what it needs. None leaves it to the policy."""
    best, reserve = history.incumbent, reserve_of(history, ledger)
    if best is not None and best.number == trial.number and trial.reason == FINISHING:
        return Decision.CONTINUE
    if reserve is None:
        return None
    if reserve.best.number == trial.number:
        return Decision.CONTINUE if _is_due(reserve, history, ledger) else None
    next_steps = [cost_per_step(other) or 0.0 for other in history.running if other.number != reserve.best.number]
    if ledger.unit == "seconds":  # time passes for all alike
        next_steps = [] if reserve.best.status is Status.RUNNING else [cost_per_step(trial) or 0.0]
    return Decision.PAUSE if next_steps and ledger.remaining - math.fsum(next_steps) < reserve.cost else None


def share_to_think(history: History, ledger: Ledger) -> float:
    """The share of what is left that a policy may think about: not the time that finishing the best needs."""
    reserve = reserve_of(history, ledger)
    if reserve is None or math.isinf(ledger.remaining):
        return 1.0
    return max(1.0 - reserve.cost / ledger.remaining, 0.0)


def cost_per_step(trial: TrackedTrial) -> float | None:
    """The mean of what its steps have cost, None while no cost is known."""
    known = [cost for cost in trial.curve.costs if cost is not None]
    return math.fsum(known) / len(known) if known else None


def _overhead(ledger: Ledger) -> float:
    return math.fsum(ledger.account(name) for name in OVERHEAD)


def _charged_per_cost(history: History, ledger: Ledger) -> float:
    """What evaluations were charged, in units of what they cost; less than 1 where several share the time."""
    cost = math.fsum(trial.cost or 0.0 for trial in history.trials)
    charged = ledger.spent - _overhead(ledger)
    return max(charged / cost, 1.0) if cost > 0.0 else 1.0


def _is_due(reserve: Reserve, history: History, ledger: Ledger) -> bool:
    """Whether too little would be left for another run, or at most one more may begin."""
    promised = ledger.committed if reserve.best.status is Status.PAUSED else 0.0
    left = ledger.remaining if ledger.unit == "seconds" else ledger.remaining - promised
    new = ledger.left("evaluations") - history.trials.uncounted
    return left - reserve.cost < reserve.margin or new <= 1
