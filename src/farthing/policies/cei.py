"""Policy `cei`: contextual expected improvement, the cheapest point with nearly the best EI (CEI, Eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.acquisitions.cost import contextual
from farthing.errors import InvalidArgument
from farthing.policies.fits import WARM_UP, Models, Pick, Weighing, check_initial

TRADEOFF = 0.65


@dataclass(frozen=True)
class CEI(Weighing):
    """The cheapest point whose EI is at least (1 - tradeoff) of the best: 0 is EI, 1 the cheapest of all."""

    name: ClassVar[str] = "cei"
    tradeoff: float = TRADEOFF
    initial: int = WARM_UP

    def __post_init__(self) -> None:
        check_initial(self.name, self.initial)
        if not 0.0 <= self.tradeoff <= 1.0:
            raise InvalidArgument(f"cei: tradeoff must be from 0 to 1, got {self.tradeoff!r}")

    def pick(self, models: Models) -> Pick:
        found = models.by_improvement()
        if models.log_cost is None:
            return found, "largest expected improvement, no cost known yet"
        chosen = contextual(models.improvement, models.log_cost, models.domain, found, self.tradeoff)
        return chosen, f"cheapest with at least {1 - self.tradeoff:.0%} of the best expected improvement"
