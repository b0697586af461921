"""The EI-cost front of a study, now and at earlier asks (CEI, Figures 1, 5 and 7).

The state that an ask saw is the fold of the events before it, so an earlier front is computed as the one of now is. The
picks are made by the policies themselves, each from the generator that its own ask would have received.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import numpy as np

from farthing import checks
from farthing.acquisitions.pareto import Front, Landscape, Persistence, candidates, front_among, persistence
from farthing.budget import Ledger
from farthing.errors import NoTrial, SpaceExhausted
from farthing.history import History, Way
from farthing.numerics.arrays import Array
from farthing.numerics.threads import one_blas_thread
from farthing.policies.candidates import FreshSpace
from farthing.policies.cei import CEI
from farthing.policies.cost_models import CostModelFit, chosen_cost_model
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EICool, EIpu
from farthing.policies.fits import FEWEST_VALUES, FittedModels
from farthing.policies.initial_design import design_size
from farthing.policies.model_based import CostWeighted
from farthing.policies.model_options import ModelOptions
from farthing.policies.protocol import Policy
from farthing.record.record import Record
from farthing.space import Space

Compared = EI | EIpu | EICool | CEI

CONTEXTUAL = "CEI"
COMPARED: Mapping[str, Compared] = {"EI": EI(), "EIpu": EIpu(), "EI-cool": EICool(), CONTEXTUAL: CEI()}


def front_of(record: Record, trial: int | None = None, policy: Policy | None = None) -> Front:
    """The front of a study now, or as it was when that trial was proposed."""
    state = record.state if trial is None else record.before(checks.whole_number("trial", trial, or_none=True))
    rng = np.random.default_rng([record.settings.seed, state.history.asks])
    if state.history.way is Way.NONE:  # it had no model: the front is the one it would have seen
        state = replace(state, history=replace(state.history, way=Way.FULL))
    with one_blas_thread():
        return front_at(record.space, state.history, state.ledger, rng, policy)


def front_at(
    space: Space,
    history: History,
    ledger: Ledger,
    rng: np.random.Generator,
    policy: Policy | None = None,
    cost_model: CostModelFit | None = None,
) -> Front:
    """The front at a state, with what EI, EIpu, EI-cool and CEI would evaluate next.

    A `policy` of one of these four kinds replaces the default one, with its own options. At the very end of a budget,
    where the last trial is chosen for EI alone, the picks are those before that rule.
    """
    return _front(_models(space, history, ledger, rng, policy, cost_model), policy)


def persistence_of(
    before: Front,
    space: Space,
    history: History,
    ledger: Ledger,
    rng: np.random.Generator,
    cost_model: CostModelFit | None = None,
) -> Persistence:
    """Where the points of an earlier front are at this state, and which are still on it."""
    models = _models(space, history, ledger, rng, None, cost_model)
    return persistence(before, _front(models, None), _landscape(models))


def _models(
    space: Space, history: History, ledger: Ledger, rng: np.random.Generator, policy: Policy | None,
    cost_model: CostModelFit | None,
) -> FittedModels:  # fmt: skip
    """The models of a state, if it knows enough for a front; cost by the policy's own model."""
    known = len(history.complete)
    if known < FEWEST_VALUES:
        raise NoTrial(f"pareto: a front needs the values of {FEWEST_VALUES} complete trials, got {known}")
    options = policy if isinstance(policy, ModelOptions) else COMPARED["EI"]
    design = design_size(getattr(policy, "initial", None), space)
    if cost_model is None:
        cost_model = policy.cost_model_fit if isinstance(policy, CostWeighted) else chosen_cost_model
    models = FittedModels.of(options, space, FreshSpace(space, history), history, ledger, design, rng, cost_model)
    if models.log_cost is None:
        raise NoTrial("pareto: a front needs the cost of at least 1 trial; tell(..., cost=...) gives it")
    return models


def _front(models: FittedModels, policy: Policy | None) -> Front:
    landscape = _landscape(models)
    U = candidates(landscape, lambda acquisition: _again(models).by(acquisition))
    U = U[[key not in models.fresh.taken for key in models.space.keys(U)]] if len(U) else U
    if not len(U):
        raise SpaceExhausted("pareto: there is no front, every allowed configuration was proposed")
    found = {name: _first_fresh(models, compared) for name, compared in _compared(policy).items()}
    picked = {name: u for name, u in found.items() if u is not None}
    return front_among(landscape, U, picked, CONTEXTUAL)


def _landscape(models: FittedModels) -> Landscape:
    assert models.log_cost is not None  # `_models` refuses
    return Landscape(models.improvement, models.log_cost, _again(models).domain)


def _again(models: FittedModels) -> FittedModels:
    """The models with a copy of their generator: each search draws what it would draw if it were the only one."""
    return replace(models, rng=deepcopy(models.rng))


def _compared(policy: Policy | None) -> Mapping[str, Compared]:
    """The policies that pick: the four, with the study's own in the place of the default one of its kind."""
    if not isinstance(policy, Compared):
        return COMPARED
    return {name: policy if type(policy) is type(default) else default for name, default in COMPARED.items()}


def _first_fresh(models: FittedModels, policy: Compared) -> Array | None:
    """The first candidate (p,) of a policy that was not tried before."""
    untried = models.led_by_untried(policy.rank(_again(models)).ranking)
    return untried.U[0] if len(untried.U) else None
