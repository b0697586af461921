"""Policies `ei_alpha`, `eipu` and `ei_cool`: expected improvement per cost^alpha (CEI, Eq. 1; CArBO, Eq. 4).

alpha = 0 is EI, 1 is EI per unit cost. `ei_cool` begins with 1 and ends with 0 as the budget is used up:
alpha = (tau - tau_k) / (tau - tau_init), tau_k what is spent, tau_init what the initial design used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from farthing.budget import Ledger
from farthing.checks import number
from farthing.policies.fits import FittedModels
from farthing.policies.model_based import CostWeighted, RankingWithReason, rank_per_cost
from farthing.policies.protocol import settle_option


@dataclass(frozen=True, repr=False)
class EIAlpha(CostWeighted):
    """EI / cost^alpha with a fixed alpha of at least 0."""

    name: ClassVar[str] = "ei_alpha"
    PAPER: ClassVar[Mapping[str, Any]] = {**CostWeighted.PAPER, "cost_model": "line3"}  # CEI, section 3.2
    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "alpha", number, least=0.0)

    def rank(self, models: FittedModels) -> RankingWithReason:
        return rank_per_cost(models, self.alpha)


@dataclass(frozen=True, repr=False)
class EIpu(EIAlpha):
    """EI per unit cost: alpha = 1."""

    name: ClassVar[str] = "eipu"
    PAPER: ClassVar[Mapping[str, Any]] = CostWeighted.PAPER  # Snoek et al. 2012: a Gaussian process on log cost
    alpha: float = 1.0


@dataclass(frozen=True, repr=False)
class EICool(CostWeighted):
    """EI per cost^alpha with alpha cooling from 1 to 0 over the budget."""

    name: ClassVar[str] = "ei_cool"

    def rank(self, models: FittedModels) -> RankingWithReason:
        return rank_per_cost(models, cooled(models.ledger, models.design_share))


def cooled(ledger: Ledger, design_share: float) -> float:
    """alpha = (tau - tau_k) / (tau - tau_init) of CArBO's Eq. (4), from shares of the budget, between 0 and 1.

    >>> from farthing.budget import Budget
    >>> cooled(Ledger(Budget(cost=80.0)).charged({"evaluation": {"cost": 45.0}}), 1 / 8)
    0.5
    """
    if design_share >= 1.0:
        return 0.0
    return min(max((1.0 - ledger.fraction) / (1.0 - design_share), 0.0), 1.0)
