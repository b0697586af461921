"""Policy `pbgi`: the Pandora's-box Gittins index (Xie et al. 2024).

The index of a point is the g with EI(x; g) = price E[c], and the point of least index is evaluated next.

The price says what an improvement has to bring for one unit of cost, in multiples of the values' spread and of the
geometric mean of costs. By default it begins at 0.1 and is halved after every ask whose least index is not below the
value to beat, when nothing is worth that price any more. The price of the next ask is stored with a proposal, as
hyperparameters are, so that a replay finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.acquisitions.gittins import LessExpectedCost, MinusIndex
from farthing.budget import Ledger
from farthing.checks import number
from farthing.history import History
from farthing.policies.fits import FittedModels
from farthing.policies.model_based import CostWeighted, RankingWithReason
from farthing.policies.protocol import settle_option
from farthing.space import Space

FIRST_PRICE = 0.1
LEAST_PRICE = 1e-9  # where the index is several standard deviations below the mean, and differs little for less


@dataclass(frozen=True, repr=False)
class PBGI(CostWeighted):
    """The point of least Gittins index at a fixed `price`, or at one that decays."""

    name: ClassVar[str] = "pbgi"
    price: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "price", number, above=0.0, or_none=True)

    def prepare(self, space: Space, history: History, ledger: Ledger, rng: np.random.Generator) -> None:
        """Asks are made in turn: what costs are usual, which sets the price, a short list does not know."""

    def rank(self, models: FittedModels) -> RankingWithReason:
        if models.log_price is None:
            return RankingWithReason(models.by_improvement(), "largest expected improvement, no cost known yet")
        price = self.price or models.earlier_fits.get(self.name, {}).get("price", FIRST_PRICE)
        usual = float(np.mean(models.log_price.mean_at(models.value.X)))
        worth = models.if_possible(LessExpectedCost(models.log_price, float(np.log(price)) - usual))
        ranking = models.by(MinusIndex(models.fantasies, worth))
        is_worth_it = len(ranking.U) > 0 and -ranking.utility[0] < models.fantasies.targets.mean()
        later = price if is_worth_it else max(0.5 * price, LEAST_PRICE)
        fits = {} if self.price else {self.name: {"price": later}}
        return RankingWithReason(ranking, f"least Gittins index at price {price:.2g}", fits=fits)
