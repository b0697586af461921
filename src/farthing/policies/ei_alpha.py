"""Policies `ei_alpha`, `eipu` and `ei_cool`: expected improvement per cost^alpha (CEI, Eq. 1; CArBO, Eq. 4).

alpha = 0 is EI, 1 is EI per unit cost. `ei_cool` begins with 1 and ends with 0 as the budget is used up:
alpha = (tau - tau_k) / (tau - tau_init), tau_k what is spent, tau_init what the initial design was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.errors import InvalidArgument
from farthing.policies.fits import WARM_UP, Models, Pick, Weighing, check_initial, per_cost


@dataclass(frozen=True)
class EIAlpha(Weighing):
    """EI / cost^alpha with a fixed alpha of at least 0."""

    name: ClassVar[str] = "ei_alpha"
    alpha: float = 0.5
    initial: int = WARM_UP

    def __post_init__(self) -> None:
        check_initial(self.name, self.initial)
        if not 0.0 <= self.alpha < np.inf:
            raise InvalidArgument(f"{self.name}: alpha must be a number of at least 0, got {self.alpha!r}")

    def pick(self, models: Models) -> Pick:
        return per_cost(models, self.alpha)


@dataclass(frozen=True)
class EIpu(EIAlpha):
    """EI per unit cost: alpha = 1."""

    name: ClassVar[str] = "eipu"
    alpha: float = 1.0


@dataclass(frozen=True)
class EICool(Weighing):
    """EI per cost^alpha with alpha cooling from 1 to 0 over the budget."""

    name: ClassVar[str] = "ei_cool"
    initial: int = WARM_UP

    def __post_init__(self) -> None:
        check_initial(self.name, self.initial)

    def pick(self, models: Models) -> Pick:
        return per_cost(models, cooled(models.ledger, models.design_share))


def cooled(ledger: Ledger, design_share: float) -> float:
    """alpha = (tau - tau_k) / (tau - tau_init) of CArBO's Eq. (4), from shares of the budget, between 0 and 1.

    >>> from farthing.budget import Budget
    >>> cooled(Ledger(Budget(cost=80.0)).charged({"evaluation": {"cost": 45.0}}), 1 / 8)
    0.5
    """
    if design_share >= 1.0:
        return 0.0
    return min(max((1.0 - ledger.fraction) / (1.0 - design_share), 0.0), 1.0)
