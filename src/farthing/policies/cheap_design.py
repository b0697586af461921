"""The cost-effective design (CArBO, Algorithm 1) over a space: cheap configurations, far from what was tried."""

from __future__ import annotations

import numpy as np

from farthing.designs.cost_effective import distances, next_point
from farthing.designs.filling import sobol
from farthing.history import History, units
from farthing.numerics.arrays import Array
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import chosen_cost_model
from farthing.space import Space
from farthing.trial import Proposal

CANDIDATES = 2_000
ALIKE = 1e-6  # log costs closer than this are equal


def cheap_design(space: Space, history: History, n: int, rng: np.random.Generator) -> list[Proposal]:
    """The next n points of the cost-effective design; running trials belong to it already. Empty without a cost."""
    model, fits = chosen_cost_model(space, history)
    if model is None:
        return []
    fresh, taken = FreshSpace(space, history), space.features(units(list(history.trials), len(space)))
    candidates = np.unique(space.snap(sobol(CANDIDATES, len(space), rng)), axis=0)  # finite spaces repeat themselves
    candidates = candidates[fresh.admissible(candidates)]
    X = space.features(candidates)
    log_cost, nearest = model.mean_at(X), distances(X, taken)
    proposals: list[Proposal] = []
    while len(X) and len(proposals) < n:
        best = next_point(log_cost, nearest) if np.isfinite(nearest).all() else _any_cheapest(log_cost, rng)
        config, cost = fresh.claim(candidates[[best]]), float(np.exp(log_cost[best]))
        if config is not None:
            number = len(history.trials) + len(proposals)
            proposals.append(Proposal(number, config, cost, "cheap and far from what was tried (initial design)", fits))
        nearest = np.delete(np.minimum(nearest, distances(X, X[[best]])), best)
        candidates, X, log_cost = (np.delete(array, best, axis=0) for array in (candidates, X, log_cost))
    return proposals


def _any_cheapest(log_cost: Array, rng: np.random.Generator) -> int:
    """The first point of a design has nothing to be far from: any of the cheapest."""
    return int(rng.choice(np.flatnonzero(log_cost <= log_cost.min() + ALIKE)))
