"""The EI-cost front at a moment of a study in a twentieth of the time that `pareto.front_of` takes, for figures.

Hyperparameters are those that the ask itself found, or found last, and the models know at most 256 trials: the best,
and some of the others (`Way.FEW`). One search finds the points for all weights of cost (`acquisitions.front_search`).
Picks are by predicted cost alone, without what it takes to begin a run. What is drawn differs little; who needs the
picks of the policies to the last digit asks `pareto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from farthing.acquisitions.cost import contextual
from farthing.acquisitions.front_search import Pool, search
from farthing.acquisitions.maximize import Ranking
from farthing.acquisitions.pareto import Front, Landscape, front_among, non_dominated
from farthing.errors import SpaceExhausted
from farthing.history import Way
from farthing.numerics.arrays import Array
from farthing.policies.cei import CEI, LATER_ROUNDS
from farthing.policies.ei_alpha import EICool, cooled
from farthing.policies.fits import LATER, FittedModels
from farthing.policies.pareto import CONTEXTUAL, compared_by, landscape_of, models_at
from farthing.policies.protocol import Policy, generator_of
from farthing.record.state import State

KEPT = 64  # best points of contextual EI that join the others


def quick_models(
    state: State, policy: Policy | None, found: Mapping[str, Any], otherwise: Mapping[str, Any]
) -> FittedModels:
    """The models of a state with the hyperparameters that its ask `found`, else the last ones before it, else others:
    those that a model of today has, for a policy that fits none."""
    history = state.history
    fits = {**otherwise, **history.fits, **found}
    known = replace(history, fits=fits, way=Way.FEW, prepared=None)
    return models_at(state.space, known, state.ledger, generator_of(history), policy)


def quick_front(models: FittedModels, policy: Policy | None) -> Front:
    """The front by these models, with what EI, EIpu, EI-cool and CEI would evaluate next."""
    landscape, cooling = landscape_of(models), cooled(models.ledger, models.design_share)
    pool = search(landscape, models.anchors, deepcopy(models.rng), models.pool, (cooling,))
    policies, picked = compared_by(policy), dict[str, Array]()
    for name, compared in policies.items():
        if isinstance(compared, CEI):
            cheapest = _cheapest(models, landscape, pool, compared.tradeoff)
            if len(cheapest):
                picked[name] = cheapest[0]
            pool += Pool.of(landscape, cheapest[:KEPT])
    found = _front_of(models, pool)
    for name, compared in policies.items():
        if not isinstance(compared, CEI):
            weight = cooling if isinstance(compared, EICool) else getattr(compared, "alpha", 0.0)
            picked[name] = found.U[found.best(weight, 1)[0]]
    return front_among(landscape, found.U, {name: picked[name] for name in policies if name in picked}, CONTEXTUAL)


def _cheapest(models: FittedModels, landscape: Landscape, pool: Pool, tradeoff: float) -> Array:
    """What contextual EI ranks first, (m, p), from the points of a pool."""
    order = np.argsort(-pool.log_ei, kind="stable")
    by_ei = models.led_by_untried(Ranking(pool.U[order], pool.log_ei[order]))
    found = contextual(
        landscape.improvement, landscape.log_cost, landscape.domain, by_ei, tradeoff, LATER_ROUNDS, LATER
    )  # fmt: skip
    return models.led_by_untried(found).U


def _front_of(models: FittedModels, pool: Pool) -> Pool:
    """The points of a pool that no other dominates, without those that were tried."""
    while len(pool.U):
        found = pool.where(non_dominated(pool.log_cost, pool.log_ei))
        tried = np.array([key in models.fresh.taken for key in models.space.keys(found.U)], dtype=np.bool_)
        if not tried.any():
            return found
        of_tried = (pool.U[:, None, :] == found.U[tried]).all(axis=2).any(axis=1)
        pool = pool.where(~of_tried)
    raise SpaceExhausted("pareto: there is no front, every allowed configuration was proposed")
