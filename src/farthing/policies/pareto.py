"""The EI-cost front of a study, now and at earlier asks (CEI, Figures 1, 5 and 7).

The state that an ask saw is the fold of the events before it, so an earlier front is computed as the one of now is. The
picks are made by the policies themselves, each from the generator that its own ask would have received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from farthing import checks
from farthing.acquisitions.ei_change import Beliefs, EIChange, ei_change
from farthing.acquisitions.pareto import (
    Front,
    ImpliedAlpha,
    Landscape,
    Persistence,
    candidates,
    front_among,
    implied_alpha,
    persistence,
)
from farthing.budget import Ledger
from farthing.errors import NoTrial, SpaceExhausted
from farthing.history import History, Way, units, values
from farthing.numerics.arrays import Array
from farthing.numerics.threads import one_blas_thread
from farthing.policies.auto import Auto
from farthing.policies.candidates import FreshSpace
from farthing.policies.cei import CEI
from farthing.policies.cost_models import CostModelFit, chosen_cost_model
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EICool, EIpu
from farthing.policies.fits import FEWEST_VALUES, FittedModels, value_model
from farthing.policies.initial_design import design_size
from farthing.policies.model_based import CostWeighted, ModelBased
from farthing.policies.model_options import ModelOptions
from farthing.policies.protocol import Policy, generator_of
from farthing.record.events import Asked
from farthing.record.record import Record
from farthing.record.state import State
from farthing.space import Space
from farthing.surrogates.outputs import Scale

Compared = EI | EIpu | EICool | CEI

CONTEXTUAL = "CEI"
COMPARED: Mapping[str, Compared] = {"EI": EI(), "EIpu": EIpu(), "EI-cool": EICool(), CONTEXTUAL: CEI()}


# -- of a study, now and when a trial was asked for --------------------------------------------------------------------


def front_of(record: Record, trial: int | None = None, policy: Policy | None = None) -> Front:
    """The front of a study now, or as it was when that trial was proposed."""
    state, rng = _seen(record, "trial", trial)
    with one_blas_thread():
        return front_at(record.space, state.history, state.ledger, rng, policy)


def persistence_between(
    record: Record, before: int, now: int | None = None, policy: Policy | None = None
) -> Persistence:  # fmt: skip
    """The front as it was when trial `before` was proposed, and where its points are now, or were when `now` was."""
    (earlier, earlier_rng), (later, rng) = _seen_twice(record, before, now)
    with one_blas_thread():
        front = front_at(record.space, earlier.history, earlier.ledger, earlier_rng, policy)
        return persistence_of(front, record.space, later.history, later.ledger, rng, policy)


def implied_alphas(
    record: Record, trials: Iterable[int] | None = None, policy: Policy | None = None
) -> list[ImpliedAlpha]:  # fmt: skip
    """For each trial, the alphas that lead to what contextual EI picked when it was proposed; by default for all that
    a model of values chose and that saw a front. If none of them did, the error says why."""
    if trials is not None and (isinstance(trials, str) or not isinstance(trials, Iterable)):
        checks.refuse("trials", "numbers of trials, or None", trials)
    found, missing = list[ImpliedAlpha](), None
    for trial in _modelled(record, policy) if trials is None else trials:
        try:
            front = front_of(record, checks.whole_number("trials", trial), policy)
        except (NoTrial, SpaceExhausted) as error:
            if trials is not None:
                raise
            missing = error
            continue
        if CONTEXTUAL in front.picks:
            found.append(implied_alpha(int(trial), front, front.picks[CONTEXTUAL]))
    if missing is not None and not found:
        raise missing
    return found


def ei_change_between(
    record: Record, before: int, now: int | None = None, U: Array | None = None, policy: Policy | None = None
) -> EIChange:
    """How EI at U (m, p), or at the points of the earlier front, has changed since trial `before` was proposed."""
    (earlier, _), (later, _) = _seen_twice(record, before, now)
    points = front_of(record, before, policy).U if U is None else U
    with one_blas_thread():
        beliefs = (beliefs_at(record.space, state.history, points) for state in (earlier, later))
        return ei_change(*beliefs)


def _seen(record: Record, name: str, trial: int | None) -> tuple[State, np.random.Generator]:
    """The state now, or that the ask of a trial saw, and the generator of the next ask."""
    state = record.state if trial is None else record.before(checks.whole_number(name, trial, or_none=True))
    if state.history.way is Way.NONE:  # it had no model: the front is the one it would have seen
        state = replace(state, history=replace(state.history, way=Way.FULL))
    return state, generator_of(state.history)


def _seen_twice(
    record: Record, before: int, now: int | None
) -> tuple[tuple[State, np.random.Generator], tuple[State, np.random.Generator]]:
    """`_seen` for the earlier and the later of two times."""
    checks.whole_number("before", before)
    checks.optional(checks.whole_number, "now", now, least=before)
    return _seen(record, "before", before), _seen(record, "now", now)


def _modelled(record: Record, policy: Policy | None) -> list[int]:
    """The trials that a model of values chose, by their first ask."""
    fits: dict[int, Mapping[str, Any]] = {}
    for event in record.past():
        if isinstance(event, Asked):
            fits.setdefault(event.proposal.trial, event.proposal.fits)
    is_modelled = modelled_by(record, policy)
    return [trial for trial, fit in fits.items() if is_modelled(trial, fit)]


def modelled_by(record: Record, policy: Policy | None) -> Callable[[int, Mapping[str, Any]], bool]:
    """Whether a model of values chose a trial, by its number and its fits, which tell. Of a policy that has no model,
    such as `sobol`: all but as many as an initial design would have."""
    if isinstance(policy, Auto):
        policy = policy.chosen(record.history, record.ledger)
    if isinstance(policy, ModelOptions):
        return lambda trial, fits: "value" in fits
    design = max(design_size(getattr(policy, "initial", None), record.space), FEWEST_VALUES)
    return lambda trial, fits: trial >= design


# -- of a state --------------------------------------------------------------------------------------------------------


def front_at(
    space: Space,
    history: History,
    ledger: Ledger,
    rng: np.random.Generator,
    policy: Policy | None = None,
    cost_model: CostModelFit | None = None,
) -> Front:
    """The front at a state, with what EI, EIpu, EI-cool and CEI would evaluate next.

    A `policy` of one of these four kinds replaces the default one, with its own options. Where the rest of a budget
    changes a policy's ranking, since the first of it cannot be paid for or nothing can follow it, the picks are those
    before that.
    """
    return _front(models_at(space, history, ledger, rng, policy, cost_model), policy)


def persistence_of(
    before: Front,
    space: Space,
    history: History,
    ledger: Ledger,
    rng: np.random.Generator,
    policy: Policy | None = None,
    cost_model: CostModelFit | None = None,
) -> Persistence:
    """Where the points of an earlier front are at this state, and which are still on it."""
    models = models_at(space, history, ledger, rng, policy, cost_model)
    return persistence(before, _front(models, policy), landscape_of(models))


def beliefs_at(space: Space, history: History, U: Array) -> Beliefs:
    """What is believed of points U (m, p), in the units of the objective; running trials are left out."""
    complete = history.complete
    if len(complete) < FEWEST_VALUES:
        raise NoTrial(f"EI needs the values of {FEWEST_VALUES} complete trials, got {len(complete)}")
    y = values(complete)
    model, scale = value_model(space, units(complete, len(space)), y, history, "plain"), Scale.of(y)
    mean, variance = model.predict(space.features(U))
    return Beliefs(scale.inverse(mean), scale.spread * np.sqrt(variance), float(y.min()))


def models_at(
    space: Space, history: History, ledger: Ledger, rng: np.random.Generator, policy: Policy | None,
    cost_model: CostModelFit | None = None,
) -> FittedModels:  # fmt: skip
    """The models of a state, if it knows enough for a front; cost by the policy's own model."""
    known = len(history.complete)
    if known < FEWEST_VALUES:
        raise NoTrial(f"pareto: a front needs the values of {FEWEST_VALUES} complete trials, got {known}")
    options = policy if isinstance(policy, ModelOptions) else COMPARED["EI"]
    design = policy.design_size(space, history) if isinstance(policy, ModelBased) else design_size(None, space)
    fit = cost_model or cost_model_of(policy)
    models = FittedModels.of(options, space, FreshSpace(space, history), history, ledger, design, rng, fit)
    if models.log_cost is None:
        raise NoTrial("pareto: a front needs the cost of at least 1 trial; tell(..., cost=...) gives it")
    return models


def cost_model_of(policy: Policy | None) -> CostModelFit:
    """The policy's own model of cost, if it weighs costs."""
    return policy.cost_model_fit if isinstance(policy, CostWeighted) else chosen_cost_model


def _front(models: FittedModels, policy: Policy | None) -> Front:
    landscape = landscape_of(models)
    U = candidates(landscape, lambda acquisition: _again(models).by(acquisition))
    U = U[[key not in models.fresh.taken for key in models.space.keys(U)]] if len(U) else U
    if not len(U):
        raise SpaceExhausted("pareto: there is no front, every allowed configuration was proposed")
    found = {name: _first_fresh(models, compared) for name, compared in compared_by(policy).items()}
    picked = {name: u for name, u in found.items() if u is not None}
    return front_among(landscape, U, picked, CONTEXTUAL)


def landscape_of(models: FittedModels) -> Landscape:
    """Improvement and cost by these models, which know a cost."""
    assert models.log_cost is not None  # `models_at` refuses
    return Landscape(models.improvement, models.log_cost, _again(models).domain)


def _again(models: FittedModels) -> FittedModels:
    """The models with a copy of their generator: each search draws what it would draw if it were the only one."""
    return replace(models, rng=deepcopy(models.rng))


def compared_by(policy: Policy | None) -> Mapping[str, Compared]:
    """The policies that pick: the four, with the study's own in the place of the default one of its kind."""
    if not isinstance(policy, Compared):
        return COMPARED
    return {name: policy if type(policy) is type(default) else default for name, default in COMPARED.items()}


def _first_fresh(models: FittedModels, policy: Compared) -> Array | None:
    """The first candidate (p,) of a policy that was not tried before."""
    untried = models.led_by_untried(policy.rank(_again(models)).ranking)
    return untried.U[0] if len(untried.U) else None
