"""Policy `cei`: contextual expected improvement, the cheapest point with nearly the best EI (CEI, Eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.acquisitions.cost import contextual
from farthing.checks import number, whole_number
from farthing.policies.fits import FittedModels
from farthing.policies.initial_design import WARM_UP
from farthing.policies.model_based import CostWeighted, RankingWithReason
from farthing.policies.protocol import settle_option


@dataclass(frozen=True)
class CEI(CostWeighted):
    """The cheapest point whose EI is at least (1 - tradeoff) of the best: 0 is EI, 1 the cheapest of all."""

    name: ClassVar[str] = "cei"
    tradeoff: float = 0.65  # the best of the values tried in docs/blackbox.md
    initial: int = WARM_UP

    def __post_init__(self) -> None:
        settle_option(self, "tradeoff", number, least=0.0, most=1.0)
        settle_option(self, "initial", whole_number, least=1)

    def rank(self, models: FittedModels) -> RankingWithReason:
        found = models.by_improvement()
        if models.log_price is None:
            return RankingWithReason(found, "largest expected improvement, no cost known yet")
        chosen = contextual(models.improvement, models.log_price, models.domain, found, self.tradeoff)
        reason = f"cheapest with at least {1 - self.tradeoff:.0%} of the best expected improvement"
        return RankingWithReason(chosen, reason)
