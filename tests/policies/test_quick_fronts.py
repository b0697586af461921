"""The quick front of a moment, against the one that is searched for without haste."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NoTrial, SpaceExhausted
from farthing.policies.pareto import front_of, models_at
from farthing.policies.protocol import generator_of
from farthing.policies.quick_fronts import quick_front, quick_models

SPACE = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), rounds=ft.Integer(1, 200, log=True), kind=ft.Choice(["a", "b"]))


def tuned(policy="cei", trials=10, space=SPACE, cost=True):
    study = ft.Study(space, ft.Budget(cost=100.0), policy=policy, seed=5)
    for _ in range(trials):
        proposal = study.ask()
        config = proposal.config
        value = (np.log10(config["rate"]) + 2) ** 2 + config["rounds"] ** -0.5 + 0.3 * (config["kind"] == "a")
        study.tell(proposal, value=float(value), cost=0.1 + 0.05 * config["rounds"] if cost else None)
    return study


@pytest.fixture(scope="module")
def study():
    return tuned()


def models_of(study, moment):
    return quick_models(moment.state, study.policy, moment.asked.proposal.fits, {})


def test_the_model_of_values_is_the_one_that_the_ask_had(study):
    """Its hyperparameters are stored with the ask, so that nothing needs to be searched for."""
    for moment in study._session.record.moments.kept[-2:]:
        state = moment.state
        searched = models_at(SPACE, state.history, state.ledger, generator_of(state.history), study.policy)
        quick = models_of(study, moment)
        X = SPACE.features(SPACE.snap(np.random.default_rng(0).random((50, 3))))
        for mine, theirs in zip(quick.value.predict(X), searched.value.predict(X), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("last", [1, 4])
def test_the_front_is_nearly_the_one_of_the_study(study, last):
    """No point of it is much below, and the picks of EI and EI per cost are as good."""
    moment = study._session.record.moments.kept[-last]
    models = models_of(study, moment)
    quick, exact = quick_front(models, study.policy), front_of(study._session.record, moment.trial, study.policy)
    near = exact.log_ei > exact.log_ei[-1] - 4.0
    assert np.mean(quick.shortfall(exact.log_cost, exact.log_ei)[near]) > -0.5
    assert list(quick.picks) == ["EI", "EIpu", "EI-cool", "CEI"]
    assert quick.picks["EI"].log_ei == pytest.approx(exact.picks["EI"].log_ei, abs=0.1)
    per_cost = [front.picks["EIpu"].log_ei - front.picks["EIpu"].log_cost for front in (quick, exact)]
    assert per_cost[0] == pytest.approx(per_cost[1], abs=0.1)


def test_the_picks_keep_the_rules_of_their_policies(study):
    front = quick_front(models_of(study, study._session.record.moments.kept[-1]), study.policy)
    picks = front.picks
    assert picks["EI"].log_ei == front.log_ei.max()
    quotients = front.log_ei - front.log_cost
    assert picks["EIpu"].log_ei - picks["EIpu"].log_cost == pytest.approx(quotients.max())
    assert picks["CEI"].log_ei >= front.log_ei.max() + np.log1p(-study.policy.tradeoff) - 1e-6
    good_enough = front.log_ei >= picks["EI"].log_ei + np.log1p(-study.policy.tradeoff)
    assert picks["CEI"].log_cost <= front.log_cost[good_enough].min() + 1e-6


def test_a_policy_without_a_model_gets_the_hyperparameters_it_is_given():
    study = tuned("random")
    state = study._session.record.state
    first = quick_models(state, study.policy, {}, {})
    again = quick_models(state, study.policy, {}, {"value": first.fits["value"]})
    assert again.fits["value"] == first.fits["value"]
    np.testing.assert_array_equal(quick_front(again, study.policy).U, quick_front(again, study.policy).U)


def test_what_was_tried_is_not_on_the_front():
    space = ft.Space(n=ft.Integer(1, 9))
    study = ft.Study(space, "20 evaluations", policy="cei", seed=0)
    for number in range(9):
        if number > 4:
            front = quick_front(quick_models(study._session.record.state, study.policy, {}, {}), study.policy)
            tried = {trial.config["n"] for trial in study.trials}
            assert not tried & {space.decode(u)["n"] for u in [*front.U, *(pick.u for pick in front.picks.values())]}
        proposal = study.ask()
        study.tell(proposal, value=1.0 / proposal.config["n"], cost=float(proposal.config["n"]))
    with pytest.raises(SpaceExhausted):
        quick_front(quick_models(study._session.record.state, study.policy, {}, {}), study.policy)


def test_without_costs_there_is_none():
    study = tuned("ei", trials=4, cost=False)
    with pytest.raises(NoTrial, match="cost of at least 1 trial"):
        quick_models(study._session.record.state, study.policy, {}, {})
