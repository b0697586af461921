"""Policy `carbo`: Cost Apportioned Bayesian Optimisation (Lee et al. 2020).

A few points to learn what things cost, then the cost-effective initial design until an eighth of the budget is used
(Algorithm 1, the first points included), then EI-cool (Eq. 4), batches by fantasies (Algorithm 3). `CArBO.paper()` is
the method as published; docs/carbo.md has what differs by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from farthing.budget import Ledger
from farthing.checks import number, one_of
from farthing.history import History
from farthing.policies.candidates import FreshSpace
from farthing.policies.ei_alpha import cooled
from farthing.policies.fits import FEWEST_VALUES, FittedModels
from farthing.policies.initial_design import design_share, uniform_design
from farthing.policies.model_based import CostWeighted, RankingWithReason, rank_per_cost
from farthing.policies.protocol import settle_option
from farthing.space import Space
from farthing.trial import Proposal

WarmUp: TypeAlias = Literal["sobol", "uniform"]

DESIGN_SHARE = 1 / 8  # of the budget, for the initial design: tau_init / tau of the paper
INFORMED_DESIGN_SHARE = 1 / 20  # where costs are known or hinted at: more of it buys less (docs/first-steps.md)


@dataclass(frozen=True, repr=False)
class CArBO(CostWeighted):
    """`initial` points warm up the cost model; the design may use `design_share` of the budget, those included; then
    EI per cost^alpha, where alpha cools from `alpha` to `floor` as the budget is used up. By default the share is an
    eighth, as in the paper; a twentieth where costs are known or hinted at from the start.

    warm_up  "sobol": points of the study's Sobol sequence; "uniform": drawn uniformly at random, as in the paper

    The ablations of the paper's Figure 8 are CArBO(alpha=0), EI after the design, and CArBO(floor=1), EI per unit cost.
    """

    name: ClassVar[str] = "carbo"
    PAPER: ClassVar[Mapping[str, Any]] = {**CostWeighted.PAPER, "warm_up": "uniform", "design_share": DESIGN_SHARE}

    design_share: float | None = None
    floor: float = 0.0
    alpha: float = 1.0
    warm_up: WarmUp = "sobol"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "design_share", number, least=0.0, most=1.0, or_none=True)
        settle_option(self, "alpha", number, least=0.0)
        settle_option(self, "floor", number, least=0.0, most=min(self.alpha, 1.0))  # it cools
        settle_option(self, "warm_up", one_of, accepted=get_args(WarmUp))

    def designed(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        informed = self.is_informed(space, history.cost_knowledge)
        is_warm = informed or len(history.trials) >= self.design_size(space, history)  # the cost model may speak
        if is_warm and self._is_designing(history, ledger, informed):
            proposals = self.cheap_and_far(space, history, ledger, n, rng)
            if proposals:
                return proposals
        # Where the cost is known at once, only values may be missing.
        if self.warm_up == "uniform" and not (is_warm and len(history.complete) >= FEWEST_VALUES):
            return uniform_design(FreshSpace(space, history), history, n, rng)
        return super().designed(space, history, ledger, n, rng)

    def _is_designing(self, history: History, ledger: Ledger, informed: bool) -> bool:
        """Line 4 of Algorithm 1, ct < tau_init, without what start-up took, which teaches nothing. Known results are a
        design that others have paid for."""
        known = [trial for trial in history.trials if trial.added]
        return ledger.fraction_without("start-up") + design_share(known, ledger) < self._share(informed)

    def _share(self, informed: bool) -> float:
        """tau_init / tau."""
        if self.design_share is not None:
            return self.design_share
        return INFORMED_DESIGN_SHARE if informed else DESIGN_SHARE

    def rank(self, models: FittedModels) -> RankingWithReason:
        share = self._share(self.is_informed(models.space, models.cost_knowledge))
        alpha = self.floor + (self.alpha - self.floor) * cooled(models.ledger, share)
        return rank_per_cost(models, alpha)
