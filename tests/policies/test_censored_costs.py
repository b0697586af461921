"""What policies make of trials that were killed: their costs are bounds, in this study and in earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.numerics.threads import one_blas_thread
from farthing.policies.cost_models import chosen_cost_model, linear_cost_model
from farthing.trial import Outcome, Status

SPACE = ft.Space(size=ft.Real(0.0, 1.0), rate=ft.Real(0.0, 1.0))
LIMIT = 10.0
GRID = SPACE.features(np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 5)), axis=-1).reshape(-1, 2))


def cost_of(config: dict[str, Any]) -> float:
    """From 1 to 100: the more expensive half takes longer than the limit."""
    return float(100.0 ** config["size"])


def killed(study: ft.Study, proposal: ft.Proposal, cost: float) -> None:
    study._session.end(proposal.trial, Outcome(Status.KILLED, cost=cost, error="too long"), {"cost": cost})


def step(study: ft.Study, limit: float = LIMIT, noise: float = 0.0, as_bound: bool = True) -> ft.Proposal:
    """One evaluation, ended at the limit: as what it is, or as a failure whose cost is taken for its cost."""
    proposal = study.ask()
    rng = np.random.default_rng([study.seed, proposal.trial])
    cost = cost_of(proposal.config) * float(np.exp(noise * rng.standard_normal()))
    if cost <= limit:
        value = (proposal.config["size"] - 0.8) ** 2 + (proposal.config["rate"] - 0.5) ** 2
        study.tell(proposal, value=value, cost=cost)
    elif as_bound:
        killed(study, proposal, limit)
    else:
        study.tell(proposal, failed="too long", cost=limit)
    return proposal


def played(seed: int, n: int, policy: str = "sobol", **options: Any) -> ft.Study:
    as_bound, noise = options.pop("as_bound", True), options.pop("noise", 0.1)
    study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=policy, seed=seed, **options)
    for _ in range(n):
        step(study, noise=noise, as_bound=as_bound)
    return study


def predicted(study: ft.Study, model_of: Any = chosen_cost_model) -> np.ndarray:
    with one_blas_thread():
        model, _ = model_of(SPACE, study._history)
    return np.exp(model.mean_at(GRID))


def features(config: dict[str, Any]) -> dict[str, float]:
    return {"work": 100.0 ** config["size"]}


@pytest.mark.parametrize("model_of", [chosen_cost_model, linear_cost_model])
def test_where_trials_were_killed_more_than_the_limit_is_expected(model_of):
    """And where they were complete what they cost; taken for costs, the bounds flatten both."""
    costly, cheap = GRID[:, 0] >= 0.6, GRID[:, 0] <= 0.4
    truth = 100.0 ** GRID[:, 0]
    for seed in range(3):
        found, naive = (predicted(played(seed, 16, as_bound=b), model_of) for b in (True, False))
        assert found[costly].min() > LIMIT
        ratio, naive_ratio = (np.abs(np.log(f / truth)) for f in (found, naive))
        assert ratio[costly].mean() < 0.5 * naive_ratio[costly].mean()
        assert ratio[cheap].mean() < 0.25


def test_the_proposal_says_so():
    """The cost shown with a proposal in the costly half is above the limit at which all there were killed."""
    study = played(0, 16, policy="ei")
    costly = [trial for trial in study.trials[8:] if trial.config["size"] > 0.65]
    assert costly
    assert all(trial.predicted_cost > LIMIT for trial in costly)


def test_counts_of_the_program_are_priced_by_what_complete_trials_cost():
    """All that is killed is not known to cost the same: prices go up with the bounds, and so near the truth."""
    errors = {}
    for as_bound in (True, False):
        study = played(1, 16, cost_features=features, as_bound=as_bound)
        errors[as_bound] = np.abs(np.log(predicted(study) / 100.0 ** GRID[:, 0])).mean()
    assert errors[True] < 0.5 * errors[False]


@pytest.mark.parametrize("policy", ["eipu", "carbo", "cei", "ei_cool", "ei"])
def test_every_policy_goes_on_where_everything_was_killed(policy):
    study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=policy, seed=0)
    for _ in range(9):
        killed(study, study.ask(), LIMIT)
    proposal = study.ask()
    assert proposal.predicted_cost is None or LIMIT < proposal.predicted_cost < 10.0 * LIMIT


def test_a_running_trial_that_reported_a_step_is_not_taken_to_be_cheap():
    """Side by side with others, its cost so far is a bound."""
    study = played(0, 10, noise=0.0)
    before = predicted(study)
    proposal = study.ask()
    study.report(proposal, 0.5, cost=1e-3 * cost_of(proposal.config))
    np.testing.assert_allclose(predicted(study), before, rtol=0.1)


def test_what_is_spent_stays_what_is_spent():
    study = played(0, 12)
    reported = sum(trial.cost for trial in study.trials)
    assert study.ledger.spent == pytest.approx(reported)
    assert study.ledger.account("killed") == pytest.approx(LIMIT * study._history.count(Status.KILLED))


class TestEarlierStudies:
    def test_what_was_killed_there_is_expected_to_cost_more_than_its_bound(self):
        found, naive = (
            ft.Study(
                SPACE,
                ft.Budget(cost=1e6),
                cost_prior=ft.CostPrior.from_studies([played(s, 12, as_bound=b) for s in range(3)]),
            )
            for b in (True, False)
        )
        truth, costly = 100.0 ** GRID[:, 0], GRID[:, 0] >= 0.6
        errors = [np.abs(np.log(predicted(study) / truth))[costly].mean() for study in (found, naive)]
        assert predicted(found)[costly].min() > LIMIT
        assert errors[0] < 0.5 * errors[1]

    def test_files_keep_what_is_a_bound(self, tmp_path):
        prior = ft.CostPrior.from_studies([played(0, 12)])
        with ft.Study(SPACE, ft.Budget(cost=9), cost_prior=prior, storage=tmp_path / "a.db", seed=0) as study:
            expected = study.ask().predicted_cost
            assert prior.studies[0].bounds.any()
        again = ft.CostPrior.from_json(prior.as_json())
        np.testing.assert_array_equal(again.studies[0].bounds, prior.studies[0].bounds)
        fresh = ft.Study(SPACE, ft.Budget(cost=9), cost_prior=again, seed=0)
        assert fresh.ask().predicted_cost == expected

    def test_without_bounds_a_file_says_nothing_of_them(self):
        """So that studies begun before there were bounds are still the same."""
        study = ft.Study(SPACE, ft.Budget(cost=1e6), seed=0)
        study.tell(study.ask(), value=0.0, cost=1.0)
        stored = ft.CostPrior.from_studies([study]).as_json()
        assert stored["studies"][0].keys() == {"units", "costs", "task"}

    def test_a_prior_and_bounds_go_together(self):
        """The prior knows the shape; killed trials of this study raise its level."""
        prior = ft.CostPrior.from_studies([played(s, 12, as_bound=True) for s in range(3)])
        study = ft.Study(SPACE, ft.Budget(cost=1e6), policy="sobol", seed=7, cost_prior=prior)
        before = predicted(study)
        for _ in range(4):
            proposal = study.ask()
            killed(study, proposal, 5.0 * cost_of(proposal.config))
        assert predicted(study).mean() > 2.0 * before.mean()
