"""What a model-based policy proposes before it has models, and what of the budget that uses.

Three designs: points of a Sobol sequence, points drawn uniformly, and the cost-effective design (CArBO, Algorithm 1),
which needs a cost model and takes cheap configurations far from those already tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from farthing.budget import Ledger
from farthing.designs.cost_effective import distances, next_point
from farthing.designs.filling import sobol
from farthing.history import History, TrackedTrial, units
from farthing.numerics.arrays import Array
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_hints import who_hints
from farthing.policies.cost_models import CostModelFit, chosen_cost_model
from farthing.policies.sampling import SPREAD, next_of_design, numbered
from farthing.space import Space
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.feasibility import Feasibility
from farthing.trial import Config, Proposal

WARM_UP = 5  # points before the first modelled one where cost matters: as in CArBO, and enough to fit a line
INFORMED_WARM_UP = 3  # where costs are known or hinted at: models of cost have less to learn (docs/first-steps.md)
LOOKAHEAD = 64  # points searched for one that is likely to succeed: one of them is, even where only 1 in 20 does
CANDIDATES = 2_000  # of the cost-effective design: as many as are listed of a finite space (candidates.LISTABLE)
MIDDLE = 1  # number of the trial that an informed design has in the middle of the space
COST_STEP = float(np.log(1.25))  # costs that differ by less may count as equal
SAME_LOG_COST = 1e-6  # log costs closer than this differ only by rounding


def design_size(initial: int | None, space: Space) -> int:
    """The number of points in the initial design: as given, else p + 2, from 4 to 16."""
    return initial if initial is not None else min(max(len(space) + 2, 4), 16)


def own_design(size: int, history: History, ledger: Ledger) -> int:
    """The size of the initial design. Where cost is not limited, configurations of earlier studies replace it; where it
    is, they are a part of it, because costs are to be learned too."""
    replaced = history.warm_start is not None and history.warm_start.first and ledger.unit not in ledger.budget.limits
    return 0 if replaced else size


def design_share(trials: Sequence[TrackedTrial], ledger: Ledger) -> float:
    """tau_init / tau: the share of the budget that the trials of the initial design have used."""
    limits = ledger.budget.limits
    shares = [len(trials) / limits["evaluations"]] if "evaluations" in limits else [0.0]
    if ledger.unit in limits:
        shares.append(sum(trial.cost or 0.0 for trial in trials) / limits[ledger.unit])
    return min(max(shares), 1.0)


# -- points of a Sobol sequence ----------------------------------------------------------------------------------------


def sobol_design(
    space: Space, fresh: FreshSpace, history: History, success: Feasibility | None, n: int, rng: np.random.Generator,
    cost_model: CostModelFit,
) -> list[Proposal]:  # fmt: skip
    """The next n points of the study's Sobol sequence, likely to succeed; with costs where those are known already."""
    drawn = numbered(history, n, lambda i: _next_likely(space, fresh, history, success, i, rng), SPREAD)
    if not history.cost_knowledge.speaks_at_once or not drawn:
        return drawn
    log_cost, fits = cost_model(space, history)
    assert log_cost is not None  # it speaks at once
    costs = np.exp(log_cost.mean_at(space.features(space.encode_many(p.config for p in drawn))))
    return [replace(p, predicted_cost=float(c), fits=fits) for p, c in zip(drawn, costs, strict=True)]


def _next_likely(
    space: Space, fresh: FreshSpace, history: History, success: Feasibility | None, number: int,
    rng: np.random.Generator,
) -> Config | None:  # fmt: skip
    """The next point of the sequence. Once trials have failed: the next one that is more likely to succeed than to
    fail, or the most likely of those searched, so that the design moves away from failures."""
    if success is not None:
        ahead = sobol(number + LOOKAHEAD, len(space), np.random.default_rng(history.seed))[number:]
        chance = success.log_success(space.features(space.snap(ahead)))
        likely_first = np.argsort(-np.minimum(chance, np.log(0.5)), kind="stable")
        config = fresh.claim(ahead[likely_first])
        if config is not None:
            return config
    return next_of_design(fresh, history, number, rng)


# -- points drawn uniformly --------------------------------------------------------------------------------------------


def uniform_design(fresh: FreshSpace, history: History, n: int, rng: np.random.Generator) -> list[Proposal]:
    """n points drawn uniformly at random, each parameter in its own scale: what CArBO's paper begins with."""
    return numbered(history, n, lambda _: fresh.claim_any(rng), "initial design: drawn at random")


# -- cheap points far from each other ----------------------------------------------------------------------------------


def cost_effective_design(
    space: Space, history: History, n: int, rng: np.random.Generator, cost_model: CostModelFit = chosen_cost_model,
    hint: CostModel | None = None, most: float = math.inf, small: float | None = None, with_middle: bool = False,
) -> list[Proposal]:  # fmt: skip
    """The next n points of the cost-effective design; running trials belong to it already. Before a cost is known, a
    `hint` says what is cheap. Empty without either. Points that are predicted to cost more than `most` are left out,
    unless all are. With `small`, costs below it count as equal, and so do costs that are nearly equal. `with_middle`,
    the second trial is near the middle of the space: the cheap end is often where nothing works."""
    known, fits = cost_model(space, history)
    model = hint if known is None else known
    if model is None:
        return []
    fresh, taken = FreshSpace(space, history), space.features(units(list(history.trials), len(space)))
    middle = space.snap(np.full((1, len(space)), 0.5))
    candidates = _spread_out(fresh, rng, middle if with_middle else middle[:0])
    X = space.features(candidates)
    log_cost = model.mean_at(X)
    affordable = np.exp(log_cost) <= most
    if known is not None and affordable.any():
        candidates, X, log_cost = candidates[affordable], X[affordable], log_cost[affordable]
    predicted = np.exp(log_cost)
    if small is not None:
        log_cost = _coarse(log_cost, small if known is not None else 0.0)
    nearest, left = distances(X, taken), np.arange(len(X))
    says = _who_says(space, history, is_hinted=known is None)
    proposals: list[Proposal] = []
    while len(left) and len(proposals) < n:
        number = len(history.trials) + len(proposals)
        if with_middle and number == MIDDLE:
            best = left[np.argmin(distances(X[left], space.features(middle)))]
            where = "near the middle of the space"
        elif np.isfinite(nearest).all():
            best, where = left[next_point(log_cost[left], nearest[left])], "cheap and far from earlier trials"
        else:
            best, where = left[_any_cheapest(log_cost[left], rng)], "one of the cheapest"
        config, cost = fresh.claim(candidates[[best]]), None if known is None else float(predicted[best])
        if config is not None:
            proposals.append(Proposal(number, config, cost, f"initial design: {where}{says}", fits))
        nearest, left = np.minimum(nearest, distances(X, X[[best]])), left[left != best]
    return proposals


def _spread_out(fresh: FreshSpace, rng: np.random.Generator, more: Array) -> Array:
    """Points (m, p) all over the space that may be proposed, and `more` (k, p) of them."""
    spread = fresh.snap(sobol(CANDIDATES, len(fresh.space), rng))
    points = np.unique(np.concatenate([spread, more]), axis=0)  # finite spaces repeat themselves
    return points[fresh.admissible(points)]


def _coarse(log_cost: Array, small: float) -> Array:
    """Log costs in steps, from that of a small cost upwards. The design goes by the order of costs alone: without steps
    a difference that is next to nothing would decide as much as a large one."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.floor(np.maximum(log_cost, np.log(small)) / COST_STEP) * COST_STEP)


def _who_says(space: Space, history: History, is_hinted: bool) -> str:
    """Who says what is cheap, where it is not the costs of this study; for people."""
    knowledge = history.cost_knowledge
    if is_hinted:
        return f", as {who_hints(space, knowledge.cheap)}"
    if knowledge.known is not None:
        return ", as known_cost says"
    return ", as earlier costs say" if knowledge.prior is not None and not history.costed else ""


def _any_cheapest(log_cost: Array, rng: np.random.Generator) -> int:
    """One of the cheapest: the first point of a design has nothing to be far from."""
    return int(rng.choice(np.flatnonzero(log_cost <= log_cost.min() + SAME_LOG_COST)))
