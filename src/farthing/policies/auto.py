"""Policy `auto`: the one of Farthing's own that suits the budget.

Where cost is what is limited, the best of the cost-aware policies on `make bench-blackbox`. Where only evaluations are
counted each costs one of them, whatever it takes, and expected improvement alone says which is worth it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.history import History
from farthing.policies.carbo import CArBO
from farthing.policies.ei import EI
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True)
class Auto:
    """`carbo` for a budget of cost, `ei` for a count of evaluations."""

    name: ClassVar[str] = "auto"

    def for_budget(self, ledger: Ledger) -> CArBO | EI:
        """The policy that proposes."""
        return CArBO() if ledger.unit in ledger.budget.limits else EI()

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        policy = self.for_budget(ledger)
        proposals = policy.propose(space, history, ledger, n, rng)
        return [replace(proposal, reason=f"{policy.name}: {proposal.reason}") for proposal in proposals]
