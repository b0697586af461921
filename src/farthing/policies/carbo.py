"""Policy `carbo`: Cost Apportioned Bayesian Optimisation (Lee et al. 2020).

A few points to learn what things cost, then the cost-effective initial design until an eighth of the budget is used
(Algorithm 1, the first points included), then EI-cool (Eq. 4), batches by fantasies (Algorithm 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.checks import number
from farthing.history import History
from farthing.policies.ei_alpha import cooled
from farthing.policies.fits import FittedModels
from farthing.policies.initial_design import cost_effective_design, design_share
from farthing.policies.model_based import CostWeighted, RankingWithReason, rank_per_cost
from farthing.policies.protocol import settle_option
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True, repr=False)
class CArBO(CostWeighted):
    """`initial` points warm up the cost model; the design may use `design_share` of the budget, those included;
    alpha cools from 1 to `floor`."""

    name: ClassVar[str] = "carbo"
    design_share: float = 1 / 8
    floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "design_share", number, least=0.0, most=1.0)
        settle_option(self, "floor", number, least=0.0, most=1.0)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        warmed = len(history.trials) >= self.initial or history.cost_knowledge.speaks_at_once
        if warmed and ledger.fraction < self.design_share and self._is_designing(history, ledger):
            proposals = cost_effective_design(space, history, n, rng, self.cost_model_fit)
            if proposals:
                return proposals
        return super().propose(space, history, ledger, n, rng)

    def _is_designing(self, history: History, ledger: Ledger) -> bool:
        """Known results are a design that others have paid for."""
        known = [trial for trial in history.trials if trial.added]
        return ledger.fraction + design_share(known, ledger) < self.design_share

    def rank(self, models: FittedModels) -> RankingWithReason:
        alpha = self.floor + (1.0 - self.floor) * cooled(models.ledger, self.design_share)
        return rank_per_cost(models, alpha)
