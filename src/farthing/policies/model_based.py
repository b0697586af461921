"""How model-based policies propose: an initial design, then the best candidate of a ranking, one after the other.

Policies differ only in how they rank candidates under the `FittedModels` of an ask. Everything else (the initial
design, running trials, several proposals at once, what is affordable) is the same for all and is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np

from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.maximize import Ranking
from farthing.budget import Ledger
from farthing.checks import one_of, whole_number
from farthing.history import History, Way
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import CostModelFit, chosen_cost_model, named_cost_model
from farthing.policies.fits import FEWEST_VALUES, FittedModels, success_model
from farthing.policies.initial_design import WARM_UP, cost_effective_design, own_design, sobol_design
from farthing.policies.model_options import ModelOptions
from farthing.policies.protocol import settle_option
from farthing.policies.sampling import NO_TIME, next_of_design, numbered
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.trial import Config, Proposal

USEFUL = 0.01  # share of the best EI below which a candidate is not worth the rest of a budget


class RankingWithReason(NamedTuple):
    """Candidates, best first, and why they are, in words for the user."""

    ranking: Ranking
    reason: str


@dataclass(frozen=True, kw_only=True, repr=False)
class CostWeighted(ModelOptions):
    """What cost-aware policies share: `initial` points of a Sobol design, or of the cost-effective one where costs are
    known from the start, then the best candidate of `rank`.

    cost_model  "auto": all models of cost, weighted by how well they predict; or one of them by name (docs/cost.md)
    """

    PAPER: ClassVar[Mapping[str, Any]] = {**ModelOptions.PAPER, "cost_model": "gp"}  # EI per unit cost, CArBO: warped

    initial: int = WARM_UP
    cost_model: CostModelName = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "initial", whole_number, least=1)
        settle_option(self, "cost_model", one_of, accepted=get_args(CostModelName))

    @property
    def cost_model_fit(self) -> CostModelFit:
        return named_cost_model(self.cost_model)

    def rank(self, models: FittedModels) -> RankingWithReason:
        raise NotImplementedError

    def rows(self, history: History) -> int:
        return len(history.trials)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        if len(history.trials) < self.initial and history.cost_knowledge.speaks_at_once:
            designed = cost_effective_design(space, history, n, rng, self.cost_model_fit)
            if designed:
                return designed
        return propose_by_rank(self.rank, self, self.initial, space, history, ledger, n, rng, self.cost_model_fit)


def rank_per_cost(models: FittedModels, alpha: float) -> RankingWithReason:
    """Candidates by log EI - alpha log cost."""
    if models.log_price is None or alpha == 0.0:
        return RankingWithReason(models.by_improvement(), "largest expected improvement")
    ranking = models.by(PerCost(models.improvement, models.log_price, alpha))
    return RankingWithReason(ranking, f"largest expected improvement per cost^{alpha:.2g}")


def propose_by_rank(
    rank: Callable[[FittedModels], RankingWithReason],
    options: ModelOptions,
    design: int,
    space: Space,
    history: History,
    ledger: Ledger,
    n: int,
    rng: np.random.Generator,
    cost_model: CostModelFit = chosen_cost_model,
) -> list[Proposal]:
    """Up to n proposals: a Sobol design of `design` points first, then the best of `rank`, one after the other."""
    fresh, design = FreshSpace(space, history), own_design(design, history, ledger)
    if history.way is Way.NONE:
        return _unmodelled(fresh, history, design, n, rng)
    if len(history.trials) < design or len(history.complete) < FEWEST_VALUES:
        return sobol_design(space, fresh, history, success_model(space, history), n, rng, cost_model)
    models = FittedModels.of(options, space, fresh, history, ledger, design, rng, cost_model)
    proposals: list[Proposal] = []
    first = len(history.trials)
    for number in range(first, first + n):
        ranking, reason = _by_improvement_if_last(models, rank(models))
        config = fresh.claim_or_any(ranking.U, rng)
        if config is None:
            break
        x = space.features(space.encode(config)[None, :])
        cost = models.cost_at(x)
        proposals.append(Proposal(number, config, cost, reason, models.fits))
        if number < first + n - 1:
            models = models.with_pending(x, cost)
    return proposals


def _unmodelled(fresh: FreshSpace, history: History, design: int, n: int, rng: np.random.Generator) -> list[Proposal]:
    """What is left of the initial design, then random points."""

    def draw(number: int) -> Config | None:
        return next_of_design(fresh, history, number, rng) if number < design else fresh.claim_any(rng)

    return numbered(history, n, draw, NO_TIME)


def _by_improvement_if_last(models: FittedModels, ranked: RankingWithReason) -> RankingWithReason:
    """The ranking, unless nothing useful is affordable after its first candidate: then the largest EI that is
    affordable, since saving cost no longer buys anything."""
    if models.log_price is None or not models.is_limited or not len(ranked.ranking.U):
        return ranked
    price = float(np.exp(models.log_price.mean_at(models.space.features(ranked.ranking.U[:1]))[0]))
    rest = float(np.exp(models.log_remaining)) - price
    found = models.by_improvement()
    useful = found.U[found.utility >= found.utility[:1] + np.log(USEFUL)]
    if not len(useful):
        return ranked
    cheapest = float(np.exp(models.log_price.mean_at(models.space.features(useful)).min()))
    if rest >= cheapest:
        return ranked
    return RankingWithReason(found, "largest expected improvement that the rest of the budget can pay for")
