"""Policy `cei`: contextual expected improvement, the cheapest point with nearly the best EI (CEI, Eq. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from farthing.acquisitions.cost import EFFORT, ROUNDS, contextual
from farthing.checks import number
from farthing.policies.fits import LATER, FittedModels
from farthing.policies.model_based import CostWeighted, RankingWithReason
from farthing.policies.protocol import settle_option

LATER_ROUNDS = (2, 4)  # of the search for cheaper points, after the first pick of a batch


@dataclass(frozen=True, repr=False)
class CEI(CostWeighted):
    """The cheapest point whose EI is at least (1 - tradeoff) of the best: 0 is EI, 1 the cheapest of all."""

    name: ClassVar[str] = "cei"
    PAPER: ClassVar[Mapping[str, Any]] = {**CostWeighted.PAPER, "cost_model": "line3"}  # section 3.2 and Figure 9
    tradeoff: float = 0.65  # the best of the values tried in docs/blackbox.md

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "tradeoff", number, least=0.0, most=1.0)

    def rank(self, models: FittedModels) -> RankingWithReason:
        found = models.led_by_untried(models.by_improvement())  # else the best EI may be that of a tried point alone
        if models.log_price is None:
            return RankingWithReason(found, "largest expected improvement, no cost known yet")
        rounds, effort = (ROUNDS, EFFORT) if models.found is None else (LATER_ROUNDS, LATER)
        chosen = contextual(models.improvement, models.log_price, models.domain, found, self.tradeoff, rounds, effort)
        reason = f"cheapest with at least {1 - self.tradeoff:.0%} of the best expected improvement"
        return RankingWithReason(chosen, reason, found.U)
