"""What the models of `bapi` are given: points of curves, and costs of steps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import farthing as ft
from farthing.policies import BAPI
from farthing.policies.bapi.curves import chosen_steps
from farthing.policies.step_costs import StepCosts
from farthing.surrogates.cost.choice import COUNTING
from farthing.surrogates.curves.points import by_posterior_variance
from farthing.surrogates.curves.unconstrained import Hyperparameters

SPACE = ft.Space(width=ft.Integer(8, 256, log=True), drop=ft.Real(0.0, 0.5))
STEPS = 30


def cost_of(config: dict) -> float:
    return 0.5 + config["width"] / 64.0


def begun(policy: BAPI, **options) -> ft.Study:
    """Twelve runs of some steps."""
    study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=policy, seed=0, max_steps=STEPS, **options)
    for number in range(12):
        proposal = study.ask()
        for step in range(1, 3 + number % 4):
            study.report(proposal, 1.0 / step + proposal.config["drop"], cost=cost_of(proposal.config))
    return study


CONFIGS = [{"width": width, "drop": 0.2} for width in (16, 64, 200)]


@pytest.mark.parametrize("name", ["gp", "line1", "line3", "gp-lv", "gp3", "flops", "flops-huber", "gp-flops"])
def test_a_step_is_priced_by_the_model_of_that_name(name):
    """Counts that cost follows exactly price it exactly; the others nearly."""
    counts = {"cost_features": lambda config: {"fixed": 1.0, "width": config["width"]}} if name in COUNTING else {}
    study = begun(BAPI(initial=20, cost_model=name), **counts)
    costs = StepCosts.of("lines", name, SPACE, study._history)
    found = np.exp(costs.log_per_step(SPACE.features(SPACE.encode_many(CONFIGS))))
    true = np.array([cost_of(config) for config in CONFIGS])
    assert np.all(np.abs(np.log(found / true)) < (0.02 if name in COUNTING else np.log(2.0)))


def test_a_model_that_counts_gives_way_where_only_the_cost_of_a_whole_training_is_known():
    study = begun(BAPI(initial=20, cost_model="flops"), known_cost=lambda config: STEPS * cost_of(config))
    named, auto = (StepCosts.of("lines", model, SPACE, study._history) for model in ("flops", "auto"))
    X = SPACE.features(SPACE.encode_many(CONFIGS))
    np.testing.assert_array_equal(named.log_per_step(X), auto.log_per_step(X))


@pytest.mark.parametrize(
    ("length", "steps"), [(1, [1]), (2, [1, 2]), (3, [1, 3]), (10, [2, 5, 10]), (52, [13, 26, 52])]
)
def test_halves_of_a_curve(length, steps):
    assert chosen_steps(length, 52, "halves", "decay", None).tolist() == steps


@pytest.mark.parametrize("points", ["variance", "posterior"])
def test_points_of_long_curves_take_little_memory(points):
    """A matrix over all 3,000 steps of a curve would be 72 MB."""
    known = Hyperparameters.expected("decay", 2)
    tracemalloc.start()
    if points == "posterior":
        found = by_posterior_variance(np.full((2, 2), 0.5), [3000, 3000], 3000, known, np.arange(2), 3)[1]
    else:
        found = chosen_steps(3000, 3000, points, "decay", known)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[-1] == 3000
    assert peak < 10e6
