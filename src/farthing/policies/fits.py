"""The surrogates of value and success, fitted to a history, and all that model-based policies know at one ask.

Values come from complete trials only. Failed trials enter through the probability of success, which multiplies every
improvement and does not exist before the first failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from farthing.acquisitions.affordable import IfAffordable
from farthing.acquisitions.feasible import IfSuccessful, SuccessModel
from farthing.acquisitions.improvement import Acquisition, Believed, MeanLogEI
from farthing.acquisitions.maximize import Effort, Ranking, maximize
from farthing.budget import Ledger
from farthing.designs.filling import sobol
from farthing.history import History, TrackedTrial, units, values
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.ways import HURRIED_ROWS
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import EXACT, MOST_KNOWN, MOST_PENDING, few_rows, fitted_rows
from farthing.policies.candidates import ANCHORS, FreshSpace
from farthing.policies.cost_models import CostModelFit
from farthing.policies.initial_design import design_share
from farthing.policies.model_options import ModelledValues, ModelOptions
from farthing.policies.warm_models import earlier_models
from farthing.space import Space
from farthing.surrogates import feasibility, fitting, gp
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.cost.shifted import shifted
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.feasibility import Feasibility
from farthing.surrogates.fitting import number_of_groups
from farthing.surrogates.listed import ListedFantasies
from farthing.surrogates.many import found_from_some
from farthing.surrogates.outputs import Scale, Warp
from farthing.surrogates.trended import trend_of, trended
from farthing.trial import Status

GROWTH = 1.02  # of the values, after which hyperparameters are searched for again: at each ask up to 50 of them
FEWEST_VALUES = 2  # with fewer there is nothing to model, and the initial design continues
NEAR_THE_END = 0.5  # share of the budget after which the rest of it limits what can be proposed
HOPELESS = float(np.log(1.5))  # before: predicted log cost above that of the rest, where nobody would begin
LATER_POOL = 128  # points of the first search that later ones of a batch begin with: running trials change few of them
LATER = Effort(starts=2, rounds=6, turns=1, steps=2)  # of these, which begin near where the one before ended
AFFORDABLE_SAMPLE = 256  # points that show whether anything is affordable: 2 % of the space are hardly ever missed


# -- one surrogate -----------------------------------------------------------------------------------------------------


def value_model(space: Space, U: Array, y: Array, history: History, modelled: ModelledValues = "warped") -> gp.GP:
    """The process over values, warped or only scaled, around what earlier studies predict, if that is believed."""
    own = _own_value_model(space, U, y, history, modelled)
    trend = trend_of(own, earlier_models(space, history.warm_start))
    return own if trend is None else trended(own, trend)


def _own_value_model(space: Space, U: Array, y: Array, history: History, modelled: ModelledValues) -> gp.GP:
    """The process over this study's values, warm-started from the last fit in the history; if no fit is due or there is
    no time for it, with the hyperparameters of the last one, or of one to a few trials. Of thousands it knows some."""
    way, warm = history.way, _last_fit(space, history, "value")
    X, z = space.features(U), scale_of(y, modelled)(y)
    is_due = way.refits and (warm is None or len(y) >= GROWTH * warm.at)
    if is_due and len(y) <= EXACT:
        return gp.fit(X, z, space.groups, warm, fitting.MEDIUM)

    def found(rows: Ints, start: gp.Hyperparameters | None) -> gp.Hyperparameters:
        return gp.fit(X[rows], z[rows], space.groups, start, fitting.MEDIUM).hyperparameters

    if is_due:
        warm = found_from_some(len(y), warm, partial(found, fitted_rows(len(y), y)))
    elif warm is None:
        warm = found(few_rows(len(y), None, HURRIED_ROWS), None)
    rows = way.known(len(y), y)
    return gp.from_hyperparameters(X[rows], z[rows], warm, space.groups)


def scale_of(y: Array, modelled: ModelledValues = "warped") -> Warp | Scale:
    """The map from values to those that are modelled."""
    return Warp.of(y) if modelled == "warped" else Scale.of(y)


def _last_fit(space: Space, history: History, model: str) -> gp.Hyperparameters | None:
    """The hyperparameters stored for a model, if they are of this space."""
    stored = history.fits.get(model)
    found = gp.Hyperparameters.from_json(stored) if stored else None
    return found if found is not None and len(found.log_scales) == number_of_groups(space.groups) else None


def success_model(space: Space, history: History) -> Feasibility | None:
    """Where trials succeed, learned from all that ended by themselves; None while none of them failed."""
    failed = [trial for trial in history.trials if trial.unsuccessful]
    if not failed:
        return None
    ended = [*history.of(Status.COMPLETE, Status.PAUSED, Status.STOPPED), *failed]
    succeeded = np.arange(len(ended)) < len(ended) - len(failed)
    way, warm = history.way, _last_fit(space, history, "success")
    X = space.features(units(ended, len(space)))
    if way.refits and len(X) <= EXACT:
        return feasibility.fit(X, succeeded, space.groups, warm)
    failed_first = succeeded.astype(np.float64)
    if way.refits or warm is None:
        some = fitted_rows(len(X), failed_first) if way.refits else few_rows(len(X), failed_first, HURRIED_ROWS)
        warm = feasibility.fit(X[some], succeeded[some], space.groups, warm).hyperparameters
    rows = way.known(len(X), failed_first)
    return feasibility.from_hyperparameters(X[rows], succeeded[rows], warm, space.groups)


def recommend(space: Space, history: History) -> TrackedTrial | None:
    """The complete trial of least posterior mean: with noise, the least value may be luck."""
    complete = history.complete
    if len(complete) < FEWEST_VALUES:
        return history.incumbent
    model = value_model(space, units(complete, len(space)), values(complete), history)
    return complete[int(np.argmin(model.mean_at(model.X)))]


def rows_known(history: History) -> int:
    """How many observations the largest of these models may know: the time of an ask follows from it."""
    return min(len(history.trials), MOST_KNOWN)


# -- all of them at one ask --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedModels:
    """What a policy ranks candidates by: the surrogates of value, cost and success, and where it may look."""

    options: ModelOptions
    space: Space
    fresh: FreshSpace
    ledger: Ledger
    scale: Warp | Scale  # from values to those that are modelled
    value: gp.GP  # their process, without fantasies
    fantasies: Fantasies | ListedFantasies  # of it
    anchors: Array  # (k, p) the best points evaluated
    pool: Array | None  # (m, p) all points, where they can be listed
    log_cost: CostModel | None  # None until a cost is known
    log_price: CostModel | None  # the cost, and what it takes until a new run can begin
    success: SuccessModel | None  # None until a trial fails
    design_share: float  # of the budget, used by the initial design
    cost_knowledge: CostKnowledge  # of the study, before anything was evaluated
    fits: dict[str, Any]  # for the proposal's event
    earlier_fits: Mapping[str, Any]  # of the last one
    rng: np.random.Generator
    found: Array | None = None  # (m, p) the best points of the first search of a batch, None before it
    near_end: bool = False  # as if the end of the budget were near

    @classmethod
    def of(
        cls, options: ModelOptions, space: Space, fresh: FreshSpace, history: History, ledger: Ledger, design: int,
        rng: np.random.Generator, cost_model: CostModelFit,
    ) -> FittedModels:  # fmt: skip
        """Fitted to a history whose first `design` trials are the initial design."""
        complete, p = history.complete, len(space)
        U, y = units(complete, p), values(complete)
        value = value_model(space, U, y, history, options.values)
        target = float(np.min(value.y if options.target == "least" else value.mean_at(value.X)))
        pending = space.features(units(history.running[-MOST_PENDING:], p))
        log_cost, cost_fit = cost_model(space, history)
        success = success_model(space, history)
        success_fit = {} if success is None else {"success": success.hyperparameters.as_json()}
        return cls(
            options, space, fresh, ledger, scale_of(y, options.values), value,
            Fantasies.of(value, target, pending, rng),
            U[np.argsort(y, kind="stable")[:ANCHORS]],
            fresh.listed(),
            log_cost,
            shifted(log_cost, history.start_price(ledger.unit)),
            success,
            design_share([trial for trial in history.trials[:design] if not trial.added], ledger),
            history.cost_knowledge,
            {"value": value.hyperparameters.as_json(), **cost_fit, **success_fit},
            history.fits,
            rng,
        )  # fmt: skip

    @cached_property
    def log_remaining(self) -> float:
        """log of what is left of the budget's unit for one more evaluation."""
        left = self.ledger.available
        return float(np.log(left)) if left > 0.0 else -np.inf

    @cached_property
    def is_limited(self) -> bool:
        """Whether the end of the budget is near enough to limit what may be proposed."""
        return self._foresees_end and (self.near_end or self.ledger.fraction > NEAR_THE_END)

    @property
    def _foresees_end(self) -> bool:
        return self.options.plans_end and self.log_cost is not None and bool(np.isfinite(self.log_remaining))

    def is_hopeless(self, U: Array) -> bool:
        """Whether the first untried one of the points (m, p) is sure to be cut off by the end of the budget. Far from
        the end, costs are not yet known well enough to forbid more."""
        if self.log_price is None or self.is_limited or not self._foresees_end:
            return False
        first = self.fresh.leading_taken(U)
        price = self.log_price.mean_at(self.fresh.features(U[first : first + 1]))
        return bool((price > self.log_remaining + HOPELESS).any())

    @property
    def improvement(self) -> Acquisition:
        """log EI, times the chance of success and, near the end of the budget, the chance that it is affordable."""
        believes = self.options.target == "belief"
        return self.if_possible(MeanLogEI(Believed(self.fantasies, self.value.noise) if believes else self.fantasies))

    def if_possible(self, acquisition: Acquisition) -> Acquisition:
        """An acquisition plus the log chance of success and, near the end of the budget, that of being affordable."""
        if self.success is not None:
            acquisition = IfSuccessful(acquisition, self.success)
        if self.log_price is None or not self.is_limited:
            return acquisition
        return IfAffordable(acquisition, self.log_price, self.log_remaining)

    @property
    def domain(self) -> FreshSpace:
        """Where to look: near the end of the budget only at affordable points, if there are any."""
        if self.log_price is None or not self.is_limited:
            return self.fresh
        log_price, limit = self.log_price, self.log_remaining
        affordable = self.fresh.where(lambda X: log_price.mean_at(X) <= limit)
        if self.pool is not None:
            sample = self.pool
        else:
            sample = self.fresh.snap(sobol(AFFORDABLE_SAMPLE, len(self.space), self.rng))
        return affordable if affordable.admissible(sample).any() else self.fresh

    def by_improvement(self) -> Ranking:
        """Candidates by expected improvement."""
        return self.by(self.improvement)

    def by(self, acquisition: Acquisition) -> Ranking:
        """Candidates by an acquisition."""
        if self.found is None:
            return maximize(acquisition, self.domain, self.anchors, self.rng, self.pool)
        pool = self.found if self.pool is None else self.pool
        return maximize(acquisition, self.domain, self.anchors, self.rng, pool, LATER)

    def led_by_untried(self, ranking: Ranking) -> Ranking:
        """The ranking from its first point that was not tried: where the search ends in a corner of the space, again
        and again, that is not the first one."""
        first = self.fresh.leading_taken(ranking.U)
        return Ranking(ranking.U[first:], ranking.utility[first:])

    def with_pending(self, x: Array, cost: float | None, searched: Array) -> FittedModels:
        """As if x (1, f) were running too, after a search that ranked the points `searched` (m, p)."""
        ledger = self.ledger.promised(cost or 0.0, 1)
        found = searched[:LATER_POOL] if self.found is None else self.found
        assert isinstance(self.fantasies, Fantasies)  # of a short list one proposal is made
        return replace(self, fantasies=self.fantasies.extended(x, self.rng), ledger=ledger, found=found)

    def cost_at(self, x: Array) -> float | None:
        """The predicted cost at x (1, f), the median."""
        return None if self.log_cost is None else float(np.exp(self.log_cost.mean_at(x)[0]))
