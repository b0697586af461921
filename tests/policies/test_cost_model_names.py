"""Every cost model by its name, on every policy that weighs cost."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.numerics.threads import one_blas_thread
from farthing.policies import CEI, CArBO, EIAlpha, EICool, EIpu
from farthing.policies.cost_models import chosen_cost_model
from farthing.surrogates.cost import choice
from farthing.surrogates.cost.choice import COUNTING, CostModelName, choose
from farthing.trial import Outcome, Status
from oracles.network_costs import MLP, SPACE, cost_of, counts, more, networks, played

NAMES = get_args(CostModelName)
PROCESSES = {"gp": "gp", "gp-lv": "gp-lv", "gp3": "gp-selected", "gp-flops": "gp-flops"}  # and their names in files


@pytest.mark.parametrize("name", NAMES)
def test_a_study_goes_on_from_its_file_as_if_it_had_not_stopped(name, tmp_path):
    whole = played(EIpu(cost_model=name, initial=3), 9)
    played(EIpu(cost_model=name, initial=3), 6, storage=tmp_path / "study.db").close()
    with ft.Study.resume(tmp_path / "study.db", cost_features=counts) as study:
        assert study.policy.cost_model == name
        more(study, 3)
        assert [trial.config for trial in study.trials] == [trial.config for trial in whole.trials]
        assert [t.predicted_cost for t in study.trials] == [t.predicted_cost for t in whole.trials]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policy", [CArBO, CEI, EIAlpha, EICool], ids=lambda policy: policy.name)
def test_every_policy_proposes_by_it(policy, name):
    """After a few evaluations proposals have costs, and the models stored with them are the one that was named."""
    study = played(policy(cost_model=name, initial=3), 4)
    proposal = study.ask()
    assert 0.1 < proposal.predicted_cost / cost_of(proposal.config) < 10.0
    weights = proposal.fits["cost"]["weights"]
    assert name == "auto" or weights == {choice.CANDIDATE[name]: 1.0}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_evaluations_give_sensible_costs(name, n):
    """Between a hundredth of the least cost seen and a hundred times the largest, with a spread."""
    X, b, own = networks(n + 50, n)
    seen = np.arange(n)
    model = choose(X[seen], b[seen], MLP.groups, MLP.ratios, own=own(seen), model=name).model
    mean, variance = model.predict(X)
    assert (mean > b[seen].min() - np.log(100.0)).all()
    assert (mean < b[seen].max() + np.log(100.0)).all()
    assert (variance > 0.0).all()
    assert np.isfinite(variance).all()


@pytest.mark.parametrize("name", PROCESSES)
def test_without_time_hyperparameters_are_the_stored_ones(name):
    """And without stored ones they come from a few observations: the model is the one that was named."""
    X, b, own = networks(30, 1)
    seen, fewer = np.arange(30), np.arange(20)
    first = choose(X[fewer], b[fewer], MLP.groups, MLP.ratios, own=own(fewer), model=name).state
    hurried, cold = (
        choose(X, b, MLP.groups, MLP.ratios, stored, own=own(seen), model=name, refit=False) for stored in (first, None)
    )
    stored, kept = (state["processes"][PROCESSES[name]]["hyperparameters"] for state in (first, hurried.state))
    assert kept["log_scales"] == stored["log_scales"]
    assert kept["log_noise"] == stored["log_noise"]
    assert cold.name == PROCESSES[name]
    assert np.isfinite(cold.model.predict(X)[0]).all()


@pytest.mark.parametrize("name", sorted(COUNTING))
def test_counting_without_counts_is_refused_when_the_study_is_made(name):
    with pytest.raises(InvalidArgument, match=f"carbo: cost_model: '{name}' needs cost_features="):
        ft.Study(SPACE, ft.Budget(cost=1), policy=CArBO(cost_model=name))
    known = ft.Study(SPACE, ft.Budget(cost=100), policy=CArBO(cost_model=name), known_cost=cost_of)
    assert known.ask().predicted_cost == pytest.approx(cost_of(known.trials[0].config))


@pytest.mark.parametrize("name", ["gp", "line1", "gp-lv"])
def test_with_a_prior_it_models_what_the_prior_leaves(name):
    """CEI, appendix B: earlier studies give a model; the one that is named learns the difference."""
    earlier = [played("sobol", 12, task={"rows": 100.0 * i}) for i in (1, 2)]
    prior = ft.CostPrior.from_studies(earlier)
    study = ft.Study(
        SPACE, ft.Budget(cost=1e9), policy=EIpu(cost_model=name), seed=3, cost_prior=prior, task={"rows": 300.0}
    )
    more(study, 8)
    proposal = study.ask()
    assert proposal.fits["cost"]["weights"] == {choice.CANDIDATE[name]: 1.0}
    assert abs(np.log(proposal.predicted_cost / cost_of(proposal.config))) < 0.3


def test_the_cost_effective_design_uses_it():
    """CArBO's design takes cheap points by the model that was named: with a line in one parameter, by that alone."""
    study = played(CArBO(cost_model="line1", design_share=1.0), 6)
    proposal = study.ask()
    assert proposal.reason.startswith("initial design: cheap")
    assert proposal.fits["cost"]["weights"] == {"linear-1": 1.0}


def test_a_front_is_drawn_with_the_policys_own_cost_model():
    study = played(EIpu(cost_model="line1"), 8)
    front, proposal = study.pareto(), study.ask()
    assert np.exp(front.picks["EIpu"].log_cost) == pytest.approx(proposal.predicted_cost)
    with one_blas_thread():
        default, _ = chosen_cost_model(SPACE, study._history)
    assert front.picks["EIpu"].log_cost != pytest.approx(
        float(default.mean_at(SPACE.features(front.picks["EIpu"].u[None]))[0]), abs=1e-3
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_the_cost_of_a_killed_trial_is_a_bound_for_it(name):
    """Where everything above 8 was killed at 8, more than that is expected there."""
    study = ft.Study(SPACE, ft.Budget(cost=1e9), policy=EIpu(cost_model=name, initial=14), seed=0, cost_features=counts)
    for _ in range(14):
        proposal = study.ask()
        cost = cost_of(proposal.config)
        if cost <= 8.0:
            study.tell(proposal, value=0.0, cost=cost)
        else:
            study._session.end(proposal.trial, Outcome(Status.KILLED, cost=8.0, error="too long"), {"cost": 8.0})
    with one_blas_thread():
        model, _ = chosen_cost_model(SPACE, study._history, name)
    dear = SPACE.encode({"first": 120, "second": 120, "rate": 0.01, "dropout": 0.1, "kind": "tanh"})
    assert np.exp(model.mean_at(SPACE.features(dear[None, :]))[0]) > 8.0
