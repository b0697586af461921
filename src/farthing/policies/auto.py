"""Policy `auto`: picks the policy that suits the objective and the budget.

Where cost is limited: for learners that train step by step, the better of `thaw` and `bapi` on the half of the recorded
curves that defaults are chosen on (docs/curve-network.md); else the best of the cost-aware policies on
`make bench-blackbox`. Where only evaluations are counted, all cost the same, and expected improvement alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.checks import refuse, whole_number
from farthing.errors import NetworkUnavailable
from farthing.history import History, TrackedTrial
from farthing.policies.bapi import BAPI
from farthing.policies.carbo import CArBO
from farthing.policies.ei import EI
from farthing.policies.fits import rows_known
from farthing.policies.model_based import ModelBased
from farthing.policies.prepared import Prepared
from farthing.policies.protocol import propose_prepared, settle_option
from farthing.policies.thaw import Thaw
from farthing.policies.worth import require_judge
from farthing.space import Space
from farthing.surrogates.curves.network import weights
from farthing.text.plain import warn
from farthing.trial import ContinueTo, Decision, Proposal, Status

EDITION = 6  # counts the changes of what `auto` does; a study file holds the one it was begun with
CHANGES = {
    2: "the stop of a training moves with its own curve, the best training is not paused for not beating itself, the "
    "noise of curves may be smaller, of equally expensive configurations the initial design takes those far from each "
    "other, and with cost_features a process on the counts joins the average of cost models",
    3: "for learners that train step by step it stands for thaw instead of bapi",
    4: "names of parameters and cheap= hint at what is cheap until costs are known, and the initial design is shorter",
    5: "the initial design counts costs that are small or nearly equal as equal, unless costs are known at once",
    6: "the second point of an initial design that goes by costs is near the middle of the space, and no evaluation is "
    "begun that is predicted to cost more than one and a half times what is left",
}


BY_VALUE, BY_COST = EI(), CArBO()  # made once: checking their options takes a tenth of finishing a prepared ask


@dataclass(frozen=True)
class Auto:
    """For a budget of cost: `thaw` if training goes step by step, else `carbo`. For a number of evaluations: `ei`.

    Where the file of the network that `thaw` asks is missing or damaged, `bapi` takes its place, with a warning.

    `edition` is no option: it tells a file of an earlier version, whose study goes on as `auto` is now. A new study is
    always of the present one.
    """

    name: ClassVar[str] = "auto"
    needs_steps: ClassVar[bool] = False  # plain functions are accepted
    finishes_best: ClassVar[bool] = True  # at the end of the budget, see finishing.py
    judges_worth: ClassVar[bool] = True  # where the policy that it picks does, see worth.py
    edition: int = EDITION

    def __post_init__(self) -> None:
        settle_option(self, "edition", whole_number, least=1)
        if self.edition > EDITION:
            refuse("auto: edition", f"a whole number from 1 to {EDITION}", self.edition)

    def chosen(self, history: History, ledger: Ledger) -> Thaw | BAPI | CArBO | EI:
        """The policy that proposes."""
        if ledger.unit not in ledger.budget.limits:
            return BY_VALUE
        if not trains_in_steps(history):
            return BY_COST
        require_judge(for_steps(), history.worth)
        return for_steps()

    def rows(self, history: History) -> int:
        return for_steps().rows(history) if trains_in_steps(history) else rows_known(history)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        if history.prepared is not None:
            return propose_prepared(self, space, history, ledger, rng)
        policy = self.chosen(history, ledger)
        return [_said_by(policy, proposal) for proposal in policy.propose(space, history, ledger, n, rng)]

    def prepare(self, space: Space, history: History, ledger: Ledger, rng: np.random.Generator) -> Prepared | None:
        """As prepared by the policy that proposes, if it can: asks about learners that train in steps are made in
        turn."""
        policy = self.chosen(history, ledger)
        return policy.prepare(space, history, ledger, rng) if isinstance(policy, ModelBased) else None

    def finish(
        self, prepared: Prepared, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Proposal | None:
        policy = self.chosen(history, ledger)
        if not isinstance(policy, ModelBased):
            return None
        found = policy.finish(prepared, space, history, ledger, rng)
        return None if found is None else _said_by(policy, found)

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
    ) -> Decision | ContinueTo:
        """As decided by the policy that proposes."""
        policy = self.chosen(history, ledger)
        return policy.decide(space, history, ledger, trial, rng) if isinstance(policy, BAPI) else Decision.CONTINUE


def _said_by(policy: Thaw | BAPI | CArBO | EI, proposal: Proposal) -> Proposal:
    return replace(proposal, reason=f"{policy.name}: {proposal.reason}")


@cache
def for_steps() -> Thaw | BAPI:
    """The policy for learners that train step by step; what is wrong with the network is said once."""
    try:
        weights()
    except NetworkUnavailable as error:
        warn(f"{error}; policy auto takes bapi instead of thaw for learners that train step by step")
        return BAPI()
    return Thaw()


def trains_in_steps(history: History) -> bool:
    """Whether trials train step by step and max_steps is known: not if the first complete one reported no step."""
    if history.max_steps is None:
        return False
    first = next((trial for trial in history.trials if trial.status is Status.COMPLETE), None)
    return first is None or len(first.curve) > 0
