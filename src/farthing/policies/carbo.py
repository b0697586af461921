"""Policy `carbo`: Cost Apportioned Bayesian Optimisation (Lee et al. 2020).

A few points to learn what things cost, then the cost-effective initial design until an eighth of the budget is used
(Algorithm 1, the first points included), then EI-cool (Eq. 4), batches by fantasies (Algorithm 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.errors import InvalidArgument
from farthing.history import History
from farthing.policies.cheap_design import cheap_design
from farthing.policies.ei_alpha import cooled
from farthing.policies.fits import WARM_UP, Models, Pick, Weighing, check_initial, per_cost
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True)
class CArBO(Weighing):
    """`initial` points warm the cost model; the design may use `design_share` of the budget, those included;
    alpha cools from 1 to `floor`."""

    name: ClassVar[str] = "carbo"
    initial: int = WARM_UP
    design_share: float = 1 / 8
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_initial(self.name, self.initial)
        for option in ("design_share", "floor"):
            if not 0.0 <= getattr(self, option) <= 1.0:
                raise InvalidArgument(f"carbo: {option} must be from 0 to 1, got {getattr(self, option)!r}")

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        warmed = len(history.trials) >= self.initial or history.cost_knowledge.speaks_at_once
        if warmed and ledger.fraction < self.design_share:
            proposals = cheap_design(space, history, n, rng)
            if proposals:
                return proposals
        return super().propose(space, history, ledger, n, rng)

    def pick(self, models: Models) -> Pick:
        alpha = self.floor + (1.0 - self.floor) * cooled(models.ledger, self.design_share)
        return per_cost(models, alpha)
