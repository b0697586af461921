"""What every policy that models cost must do with a budget of it."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.budget import Budget, Ledger
from farthing.policies.ei_alpha import cooled

SPACE = ft.Space(x=ft.Real(0, 1), size=ft.Integer(1, 100, log=True))
WEIGHING = ["eipu", "ei_alpha", "ei_cool", "cei", "carbo", "pbgi"]


def value(config: dict) -> float:
    return (config["x"] - 0.6) ** 2 + 0.3 / config["size"]


def cost(config: dict) -> float:
    return 1.0 + config["size"]


def spend(policy: str, budget: float, seed: int) -> tuple[ft.Study, list[tuple[float, float, float]]]:
    """A study to its end; for each modelled trial the share used, what remained, and its predicted cost."""
    study = ft.Study(SPACE, ft.Budget(cost=budget), policy=policy, seed=seed)
    seen = []
    while study.ended is None:
        used, left = study.ledger.fraction, study.ledger.remaining
        proposal = study.ask()
        if proposal.predicted_cost is not None:
            seen.append((used, left, proposal.predicted_cost))
        study.tell(proposal, value=value(proposal.config), cost=cost(proposal.config))
    return study, seen


@pytest.mark.parametrize("policy", [*WEIGHING, "ei"])
def test_near_the_end_nothing_is_proposed_that_the_rest_cannot_pay_for(policy):
    """The cheapest evaluation costs 2: while that much is left, something affordable exists."""
    _, seen = spend(policy, 400.0, seed=1)
    late = [(left, predicted) for used, left, predicted in seen if used > 0.5 and left > 2.5]
    assert late
    assert all(predicted <= left * 1.001 for left, predicted in late)


@pytest.mark.parametrize("policy", WEIGHING)
def test_weighing_cost_buys_more_evaluations_than_not_weighing_it(policy):
    ours = [spend(policy, 400.0, seed)[0].count() for seed in range(3)]
    blind = [spend("ei", 400.0, seed)[0].count() for seed in range(3)]
    assert np.mean(ours) > 1.2 * np.mean(blind)


@pytest.mark.parametrize("policy", WEIGHING)
def test_a_budget_of_evaluations_is_used_to_its_end(policy):
    """The other problem of the CEI paper: cost matters but does not stop."""
    study = ft.Study(SPACE, "25 evaluations", policy=policy, seed=0)
    while study.ended is None:
        proposal = study.ask()
        study.tell(proposal, value=value(proposal.config), cost=cost(proposal.config))
    assert study.count() == 25


def test_carbo_spends_its_share_on_cheap_points_far_from_each_other():
    study, _ = spend("carbo", 800.0, seed=0)
    design = [trial for trial in study.trials if "initial design" in trial.reason and trial.number >= 5]
    assert len(design) >= 5
    assert np.mean([trial.cost for trial in design]) < np.mean(
        [cost(SPACE.decode(u)) for u in np.random.default_rng(0).random((500, 2))]
    )
    used = sum(trial.cost for trial in study.trials[: design[-1].number])
    assert used < 800.0 / 8


@pytest.mark.parametrize(("spent", "alpha"), [(0.0, 1.0), (10.0, 1.0), (45.0, 0.5), (80.0, 0.0)])
def test_alpha_cools_from_one_at_the_end_of_the_design_to_zero_at_the_end_of_the_budget(spent, alpha):
    """CArBO, Eq. (4), with tau = 80 and tau_init = 10."""
    ledger = Ledger(Budget(cost=80.0)).charged({"evaluation": {"cost": spent}})
    assert cooled(ledger, 10.0 / 80.0) == pytest.approx(alpha)


def test_options_outside_their_range_are_refused_by_name():
    for make, name in (
        (lambda: ft.policies.CEI(tradeoff=1.5), "tradeoff"),
        (lambda: ft.policies.EIAlpha(alpha=-1.0), "alpha"),
        (lambda: ft.policies.CArBO(design_share=2.0), "design_share"),
        (lambda: ft.policies.CEI(initial=0), "initial"),
    ):
        with pytest.raises(ValueError, match=name):
            make()
