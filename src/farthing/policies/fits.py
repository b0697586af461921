"""What model-based policies know when they choose: the surrogates of value and cost, and where they may look.

`Models` is built once per ask from the history. Policies differ only in how they rank points under it; everything else
(the initial design, running trials, several proposals at once, what is affordable) is here and the same for all.

Values come from complete trials alone. Trials that failed speak through the probability of success, which weighs every
improvement and does not exist before the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.acquisitions.affordable import IfAffordable
from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.feasible import IfSuccessful
from farthing.acquisitions.improvement import Acquisition, MeanLogEI
from farthing.acquisitions.maximize import Ranking, maximize
from farthing.budget import Ledger
from farthing.designs.filling import sobol
from farthing.errors import InvalidArgument
from farthing.history import History, units, values
from farthing.numerics.arrays import Array
from farthing.policies.candidates import FreshSpace
from farthing.policies.cheap_design import cheap_design
from farthing.policies.cost_models import CostModelOf, chosen_cost_model
from farthing.policies.sampling import next_of_design, numbered
from farthing.space import Space
from farthing.surrogates import feasibility, fitting, gp
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.feasibility import Feasibility
from farthing.surrogates.outputs import Warp
from farthing.trial import Config, Proposal, Status, Trial

ANCHORS = 3  # of the best evaluated points, perturbed in the search for the next
WARM_UP = 5  # points before the first modelled one where cost is weighed: CArBO's, and enough for a line
FEWEST_VALUES = 2  # below, there is nothing to model and the design goes on
NEAR_THE_END = 0.5  # share of the budget used from which on what is left decides what can be proposed
USEFUL = 0.01  # share of the best EI below which a point is not worth the rest of a budget
AHEAD = 64  # points of the design's sequence that are looked at for one that may succeed
SOME = 256  # points looked at to see whether anything is affordable


@dataclass(frozen=True)
class Models:
    """The state of knowledge at one proposal."""

    space: Space
    fresh: FreshSpace
    ledger: Ledger
    fantasies: Fantasies  # of the value
    anchors: Array  # (k, p) the best points evaluated
    pool: Array | None  # (m, p) all points, where they can be listed
    log_cost: CostModel | None  # None until a cost is known
    success: Feasibility | None  # None until a trial fails
    design_share: float  # of the budget, used by the initial design
    fits: dict[str, Any]  # for the proposal's event
    rng: np.random.Generator

    @property
    def log_remaining(self) -> float:
        """log of what is left of the budget's unit for one more evaluation."""
        left = self.ledger.available
        return float(np.log(left)) if left > 0.0 else -np.inf

    @property
    def is_limited(self) -> bool:
        """Whether the end of the budget is near enough to matter for what may be proposed."""
        return self.log_cost is not None and self.ledger.fraction > NEAR_THE_END and np.isfinite(self.log_remaining)

    @property
    def improvement(self) -> Acquisition:
        """log EI, weighed by the chance of success and, near the end of the budget, of its being paid for."""
        improvement: Acquisition = MeanLogEI(self.fantasies)
        if self.success is not None:
            improvement = IfSuccessful(improvement, self.success)
        if self.log_cost is None or not self.is_limited:
            return improvement
        return IfAffordable(improvement, self.log_cost, self.log_remaining)

    @property
    def domain(self) -> FreshSpace:
        """Where to look: near the end of the budget, only at what it can pay for, if there is any."""
        if self.log_cost is None or not self.is_limited:
            return self.fresh
        log_cost, limit = self.log_cost, self.log_remaining
        affordable = self.fresh.where(lambda X: log_cost.mean_at(X) <= limit)
        some = self.pool if self.pool is not None else self.fresh.snap(sobol(SOME, len(self.space), self.rng))
        return affordable if affordable.admissible(some).any() else self.fresh

    def by_improvement(self) -> Ranking:
        """Points by expected improvement."""
        return self.by(self.improvement)

    def by(self, acquisition: Acquisition) -> Ranking:
        """Points by an acquisition."""
        return maximize(acquisition, self.domain, self.anchors, self.rng, self.pool)

    def with_pending(self, x: Array, cost: float | None) -> Models:
        """As if x (1, f) were running too."""
        ledger = self.ledger.promised(cost or 0.0, 1)
        return replace(self, fantasies=self.fantasies.extended(x, self.rng), ledger=ledger)

    def cost_at(self, x: Array) -> float | None:
        """The cost to expect at x (1, f), its median."""
        return None if self.log_cost is None else float(np.exp(self.log_cost.mean_at(x)[0]))


Pick = tuple[Ranking, str]  # points, best first, and the reason in words


def per_cost(models: Models, alpha: float) -> Pick:
    """Points by log EI - alpha log cost."""
    if models.log_cost is None or alpha == 0.0:
        return models.by_improvement(), "largest expected improvement"
    ranking = models.by(PerCost(models.improvement, models.log_cost, alpha))
    return ranking, f"largest expected improvement per cost^{alpha:.2g}"


def propose_by(
    pick: Callable[[Models], Pick],
    design: int,
    space: Space,
    history: History,
    ledger: Ledger,
    n: int,
    rng: np.random.Generator,
    cost_model: CostModelOf = chosen_cost_model,
) -> list[Proposal]:
    """Up to n proposals: a Sobol design of that many points first, then the best of `pick`, one after another."""
    fresh = FreshSpace(space, history)
    if len(history.trials) < design or len(history.complete) < FEWEST_VALUES:
        success = success_model(space, history)
        designed = numbered(history, n, lambda i: _designed(space, fresh, history, success, i, rng), "initial design")
        return _with_costs(space, history, designed, cost_model)
    models = models_of(space, fresh, history, ledger, design, rng, cost_model)
    proposals: list[Proposal] = []
    first = len(history.trials)
    for number in range(first, first + n):
        ranking, reason = _last(models, *pick(models))
        config = fresh.claim_or_any(ranking.U, rng)
        if config is None:
            break
        x = space.features(space.encode(config)[None, :])
        cost = models.cost_at(x)
        proposals.append(Proposal(number, config, cost, reason, models.fits))
        if number < first + n - 1:
            models = models.with_pending(x, cost)
    return proposals


def _designed(
    space: Space, fresh: FreshSpace, history: History, success: Feasibility | None, number: int,
    rng: np.random.Generator,
) -> Config | None:  # fmt: skip
    """The next point of the study's Sobol sequence; once trials have failed, the next that more likely succeeds than
    not, or the likeliest of those looked at: away from the failures, however many there are."""
    if success is not None:
        ahead = sobol(number + AHEAD, len(space), np.random.default_rng(history.seed))[number:]
        chance = success.log_success(space.features(space.snap(ahead)))
        likely_first = np.argsort(-np.minimum(chance, np.log(0.5)), kind="stable")
        config = fresh.claim(ahead[likely_first])
        if config is not None:
            return config
    return next_of_design(fresh, history, number, rng)


def _with_costs(
    space: Space, history: History, proposals: list[Proposal], cost_model: CostModelOf
) -> list[Proposal]:  # fmt: skip
    """What they are expected to cost, where that is known from the start."""
    if not history.cost_knowledge.speaks_at_once or not proposals:
        return proposals
    log_cost, fits = cost_model(space, history)
    assert log_cost is not None  # it speaks at once
    costs = np.exp(log_cost.mean_at(space.features(space.encode_many(p.config for p in proposals))))
    return [replace(p, predicted_cost=float(c), fits=fits) for p, c in zip(proposals, costs, strict=True)]


class Weighing:
    """What policies that weigh cost share: `initial` points of a Sobol design, or of the cost-effective one where costs
    are known from the start, then the best of `pick`."""

    initial: int

    def pick(self, models: Models) -> Pick:
        raise NotImplementedError

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        if len(history.trials) < self.initial and history.cost_knowledge.speaks_at_once:
            designed = cheap_design(space, history, n, rng)
            if designed:
                return designed
        return propose_by(self.pick, self.initial, space, history, ledger, n, rng)


def _last(models: Models, ranking: Ranking, reason: str) -> Pick:
    """What was picked, unless nothing could be paid after it: the last trial is for EI among the affordable."""
    if models.log_cost is None or not models.is_limited or not len(ranking.U):
        return ranking, reason
    cost = models.cost_at(models.space.features(ranking.U[:1])) or 0.0
    rest = float(np.exp(models.log_remaining)) - cost
    found = models.by_improvement()
    useful = found.U[found.utility >= found.utility[:1] + np.log(USEFUL)]
    if not len(useful):
        return ranking, reason
    cheapest = float(np.exp(models.log_cost.mean_at(models.space.features(useful)).min()))
    return (ranking, reason) if rest >= cheapest else (found, "largest expected improvement the rest can pay for")


def models_of(
    space: Space,
    fresh: FreshSpace,
    history: History,
    ledger: Ledger,
    design: int,
    rng: np.random.Generator,
    cost_model: CostModelOf,
) -> Models:
    """All that the history says. The target is the least posterior mean at the evaluated points: with noise, the least
    observation is luck."""
    complete, p = history.complete, len(space)
    U, y = units(complete, p), values(complete)
    value = value_model(space, U, y, history)
    target = float(value.predict(value.X)[0].min())
    pending = space.features(units(history.running, p))
    log_cost, cost_fit = cost_model(space, history)
    success = success_model(space, history)
    success_fit = {} if success is None else {"success": success.hyperparameters.as_json()}
    return Models(
        space, fresh, ledger,
        Fantasies.of(value, target, pending, rng),
        U[np.argsort(y, kind="stable")[:ANCHORS]],
        fresh.listed(),
        log_cost,
        success,
        design_share(history.trials[:design], ledger),
        {"value": value.hyperparameters.as_json(), **cost_fit, **success_fit},
        rng,
    )  # fmt: skip


def recommend(space: Space, history: History) -> Trial | None:
    """The complete trial of least posterior mean: with noise, the one that is best and not the one that was lucky."""
    complete = history.complete
    if len(complete) < FEWEST_VALUES:
        return history.incumbent
    model = value_model(space, units(complete, len(space)), values(complete), history)
    return complete[int(np.argmin(model.predict(model.X)[0]))]


def value_model(space: Space, U: Array, y: Array, history: History) -> gp.GP:
    """The process over warped values, warm-started from the last fit in the history."""
    stored = history.fits.get("value")
    warm = gp.Hyperparameters.from_json(stored) if stored else None
    return gp.fit(space.features(U), Warp.of(y)(y), space.groups, warm, fitting.MEDIUM)


def success_model(space: Space, history: History) -> Feasibility | None:
    """Where trials succeed, learned from all that ended by their own doing; None while none of them failed."""
    failed = [trial for trial in history.trials if trial.unsuccessful]
    if not failed:
        return None
    ended = [*history.of(Status.COMPLETE, Status.PAUSED, Status.STOPPED), *failed]
    succeeded = np.arange(len(ended)) < len(ended) - len(failed)
    stored = history.fits.get("success")
    warm = gp.Hyperparameters.from_json(stored) if stored else None
    return feasibility.fit(space.features(units(ended, len(space))), succeeded, space.groups, warm)


def design_share(trials: Sequence[Trial], ledger: Ledger) -> float:
    """tau_init / tau: the share of the budget that the trials of the initial design have used."""
    limits = ledger.budget.limits
    shares = [len(trials) / limits["evaluations"]] if "evaluations" in limits else [0.0]
    if ledger.unit in limits:
        shares.append(sum(trial.cost or 0.0 for trial in trials) / limits[ledger.unit])
    return min(max(shares), 1.0)


def design_size(initial: int | None, space: Space) -> int:
    """How many points come first: as given, else p + 2, from 4 to 16."""
    return initial if initial is not None else min(max(len(space) + 2, 4), 16)


def check_initial(name: str, initial: int | None) -> None:
    """Refuse a size of the initial design that is none."""
    if initial is not None and (isinstance(initial, bool) or not isinstance(initial, int) or initial < 1):
        raise InvalidArgument(f"{name}: initial must be a whole number of at least 1, got {initial!r}")
