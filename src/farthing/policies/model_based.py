"""How model-based policies propose: an initial design, then the best candidate of a ranking, one after the other.

Policies differ only in how they rank candidates under the `FittedModels` of an ask. Everything else (the initial
design, running trials, several proposals at once, what is affordable) is the same for all and is done here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from farthing.acquisitions.cost import PerCost
from farthing.budget import Ledger
from farthing.checks import one_of, switch, whole_number
from farthing.history import History, Way
from farthing.history.cost_knowledge import CostKnowledge
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import CostModelFit, chosen_cost_model, hint_at_cost, named_cost_model
from farthing.policies.fits import FEWEST_VALUES, FittedModels, rows_known, success_model
from farthing.policies.initial_design import (
    INFORMED_WARM_UP,
    WARM_UP,
    cost_effective_design,
    own_design,
    sobol_design,
)
from farthing.policies.model_options import ModelOptions
from farthing.policies.prepared import AHEAD, Ahead, Prepared, listed
from farthing.policies.prospects import prospects_after
from farthing.policies.protocol import propose_prepared, settle_option
from farthing.policies.ranking import RankingWithReason as RankingWithReason
from farthing.policies.ranking import in_words
from farthing.policies.sampling import NO_TIME, next_of_design, numbered
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.hinted import HintedCost
from farthing.trial import Config, Proposal

SMALL_SHARE = 1 / 400  # of the budget: an evaluation that costs less is not worth saving on
USEFUL = 0.01  # share of the best EI below which a candidate is not worth the rest of a budget


class ModelBased(ModelOptions):
    """What model-based policies share: a design, then the best candidate of `rank`. Asks can be prepared."""

    @property
    def cost_model_fit(self) -> CostModelFit:
        raise NotImplementedError

    def design_size(self, space: Space, history: History) -> int:
        """How many points come before the first modelled one."""
        raise NotImplementedError

    def rank(self, models: FittedModels) -> RankingWithReason:
        raise NotImplementedError

    def rows(self, history: History) -> int:
        return rows_known(history)

    def designed(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        """What comes before the Sobol design, if anything does."""
        return []

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        if history.prepared is not None:
            return propose_prepared(self, space, history, ledger, rng)
        designed = self.designed(space, history, ledger, n, rng)
        if designed:
            return designed
        design = own_design(self.design_size(space, history), history, ledger)
        return propose_by_rank(self.rank, self, design, space, history, ledger, n, rng, self.cost_model_fit)

    def prepare(self, space: Space, history: History, ledger: Ledger, rng: np.random.Generator) -> Prepared | None:
        """All that is expensive about the next ask, while its trials are running; None if there is nothing, or if asks
        have to say what more is worth, which a short list cannot."""
        if history.worth is not None:
            return None
        design, fresh = own_design(self.design_size(space, history), history, ledger), FreshSpace(space, history)
        left = min(max(design - len(history.trials), 1), AHEAD)
        early = self.designed(space, history, ledger, AHEAD, rng) or _before_models(
            fresh, space, history, design, left, rng, self.cost_model_fit
        )
        if early is not None:
            return Ahead(early)
        models = FittedModels.of(self, space, fresh, history, ledger, design, rng, self.cost_model_fit)
        return listed(self._rank_to_the_end, models, history)

    def finish(
        self, prepared: Prepared, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Proposal | None:
        """The proposal of a prepared ask, now that more is known; None if nothing of it is left."""
        return prepared.finished(self._rank_to_the_end, space, history, ledger, rng)

    def _rank_to_the_end(self, models: FittedModels) -> RankingWithReason:
        return _ranked(self.rank, models)


@dataclass(frozen=True, kw_only=True, repr=False)
class CostWeighted(ModelBased):
    """What cost-aware policies share: `initial` points of a Sobol design, or of the cost-effective one where costs are
    known or hinted at from the start, then the best candidate of `rank`. By default 5 points, or 3.

    cost_model  "auto": all models of cost, weighted by how well they predict; or one of them by name (docs/cost.md)
    hints       whether names of parameters (`n_estimators`, `depth`) and `cheap` say what is cheap, until costs do, and
                the second point of a design that knows costs is near the middle of the space
    """

    PAPER: ClassVar[Mapping[str, Any]] = {
        **ModelOptions.PAPER, "cost_model": "gp", "hints": False, "initial": WARM_UP
    }  # fmt: skip  # EI per unit cost, CArBO: warped

    initial: int | None = None
    cost_model: CostModelName = "auto"
    hints: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "initial", whole_number, least=1, or_none=True)
        settle_option(self, "cost_model", one_of, accepted=get_args(CostModelName))
        settle_option(self, "hints", switch)

    @property
    def cost_model_fit(self) -> CostModelFit:
        return named_cost_model(self.cost_model, self.hints)

    def hint(self, space: Space, knowledge: CostKnowledge) -> HintedCost | None:
        """What is cheap, as far as hints say; None where there are none, or where costs are known at once."""
        return hint_at_cost(space, knowledge) if self.hints else None

    def is_informed(self, space: Space, knowledge: CostKnowledge) -> bool:
        """Whether costs are known or hinted at before the first evaluation."""
        return knowledge.speaks_at_once or self.hint(space, knowledge) is not None

    def design_size(self, space: Space, history: History) -> int:
        if self.initial is not None:
            return self.initial
        return INFORMED_WARM_UP if self.is_informed(space, history.cost_knowledge) else WARM_UP

    def designed(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        informed = self.is_informed(space, history.cost_knowledge)
        if informed and len(history.trials) < self.design_size(space, history):
            return self.cheap_and_far(space, history, ledger, n, rng)
        return []

    def cheap_and_far(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        """The cost-effective design, as far as the end of the budget is planned with what that can pay for. Costs are
        compared exactly in the form of the paper, and where they are known at once; guesses are not."""
        knowledge, hint = history.cost_knowledge, self.hint(space, history.cost_knowledge)
        most = ledger.available if self.plans_end else math.inf
        is_exact = not self.hints or knowledge.speaks_at_once
        small = None if is_exact else SMALL_SHARE * ledger.budget.limits.get(ledger.unit, 0.0)
        return cost_effective_design(
            space, history, n, rng, self.cost_model_fit, hint, most, small, with_middle=self.hints
        )


def rank_per_cost(models: FittedModels, alpha: float) -> RankingWithReason:
    """Candidates by log EI - alpha log cost."""
    if models.log_price is None or alpha == 0.0:
        return RankingWithReason(models.by_improvement(), in_words(0.0))
    ranking = models.by(PerCost(models.improvement, models.log_price, alpha))
    return RankingWithReason(ranking, in_words(alpha))


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
    fresh = FreshSpace(space, history)
    early = _before_models(fresh, space, history, design, n, rng, cost_model)
    if early is not None:
        return early
    models = FittedModels.of(options, space, fresh, history, ledger, design, rng, cost_model)
    prospects = {} if history.worth is None else prospects_after(models)
    proposals: list[Proposal] = []
    first = len(history.trials)
    for number in range(first, first + n):
        ranking, reason, searched, fits = _ranked(rank, models)
        config = fresh.claim_or_any(ranking.U, rng)
        if config is None:
            break
        x = space.features(space.encode(config)[None, :])
        cost = models.cost_at(x)
        proposals.append(Proposal(number, config, cost, reason, {**models.fits, **fits, **prospects}))
        if number < first + n - 1:
            models = models.with_pending(x, cost, ranking.U if searched is None else searched)
    return proposals


def _before_models(
    fresh: FreshSpace, space: Space, history: History, design: int, n: int, rng: np.random.Generator,
    cost_model: CostModelFit,
) -> list[Proposal] | None:  # fmt: skip
    """What is proposed without a model of values; None where there is one."""
    if history.way is Way.NONE:
        return _unmodelled(fresh, history, design, n, rng)
    if len(history.trials) < design or len(history.complete) < FEWEST_VALUES:
        return sobol_design(space, fresh, history, success_model(space, history), n, rng, cost_model)
    return None


def _unmodelled(fresh: FreshSpace, history: History, design: int, n: int, rng: np.random.Generator) -> list[Proposal]:
    """What is left of the initial design, then random points."""

    def draw(number: int) -> Config | None:
        return next_of_design(fresh, history, number, rng) if number < design else fresh.claim_any(rng)

    return numbered(history, n, draw, NO_TIME)


def _ranked(rank: Callable[[FittedModels], RankingWithReason], models: FittedModels) -> RankingWithReason:
    """The policy's ranking, as the rest of the budget allows it."""
    ranked = rank(models)
    if models.is_hopeless(ranked.ranking.U):
        models = replace(models, near_end=True)
        ranked = rank(models)
    return _by_improvement_if_last(models, ranked)


def _by_improvement_if_last(models: FittedModels, ranked: RankingWithReason) -> RankingWithReason:
    """The ranking, unless nothing useful is affordable after its first candidate: then the largest EI that is
    affordable, since saving cost no longer buys anything."""
    if models.log_price is None or not models.is_limited or not len(ranked.ranking.U):
        return ranked
    price = float(np.exp(models.log_price.mean_at(models.fresh.features(ranked.ranking.U[:1]))[0]))
    rest = float(np.exp(models.log_remaining)) - price
    found = models.by_improvement()
    useful = found.U[found.utility >= found.utility[:1] + np.log(USEFUL)]
    if not len(useful):
        return ranked
    cheapest = float(np.exp(models.log_price.mean_at(models.fresh.features(useful)).min()))
    if rest >= cheapest:
        return ranked
    reason = "largest expected improvement that the rest of the budget can pay for"
    return ranked._replace(ranking=found, reason=reason)
