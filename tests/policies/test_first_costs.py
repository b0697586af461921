"""The first evaluations pay for imports, data and compiled code: what they took says little of their configurations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.policies.cost_models import chosen_cost_model
from farthing.policies.step_costs import StepCosts

SPACE = ft.Space(trees=ft.Integer(4, 128, log=True), kind=ft.Choice(["a", "b"]))
SECONDS, ONCE = ft.Budget(seconds=60.0), 1.0


def took(config: dict[str, Any]) -> float:
    return 0.01 * config["trees"]


def begun(budget: ft.Budget, trials: int = 8, policy: str = "carbo", seed: int = 0) -> ft.Study:
    """A study of which the first evaluation took a second more."""
    study = ft.Study(SPACE, budget, policy=policy, seed=seed)
    for i in range(trials):
        proposal = study.ask()
        cost = took(proposal.config) + ONCE * (i == 0)
        study.tell(proposal, value=1 / proposal.config["trees"], cost=cost)
    return study


def cold(study: ft.Study) -> list[int]:
    return [trial.number for trial in study._session.history.trials if trial.cold]


def test_those_that_began_before_any_had_ended_are_the_first():
    study = ft.Study(SPACE, SECONDS, policy="random", seed=0)
    first = study.ask(3)
    study.tell(first[1], value=1.0, cost=1.0)
    study.tell(study.ask(), value=1.0, cost=1.0)
    assert cold(study) == [0, 1, 2]


def test_a_cost_that_is_told_is_believed():
    """In a unit that nothing measures."""
    assert cold(begun(ft.Budget(cost=60.0), policy="random")) == []


def test_it_is_the_same_after_a_study_is_read_from_its_file(tmp_path):
    study = ft.Study(SPACE, SECONDS, policy="random", seed=0, storage=tmp_path / "s.db")
    study.tell(study.ask(), value=1.0, cost=1.0)
    study.tell(study.ask(), value=1.0, cost=1.0)
    study.close()
    with ft.Study.resume(tmp_path / "s.db") as again:
        assert cold(again) == [0]


@pytest.mark.parametrize("seed", range(4))
def test_no_option_is_thought_to_be_expensive_because_it_came_first(seed):
    session = begun(SECONDS, seed=seed)._session
    model, _ = chosen_cost_model(SPACE, session.history)
    assert model is not None
    of_kind = [SPACE.encode({"trees": 4, "kind": kind}) for kind in ("a", "b")]
    log_cost = model.predict(SPACE.features(np.array(of_kind)))[0]
    assert abs(log_cost[0] - log_cost[1]) < np.log(3.0)
    assert log_cost == pytest.approx(np.log(0.04), abs=np.log(4.0))


def test_both_options_are_tried():
    """With its first cost believed, a search hardly ever comes back to the option that came first."""
    for seed in range(4):
        tried = Counter(trial.config["kind"] for trial in begun(SECONDS, trials=16, seed=seed).trials)
        assert min(tried["a"], tried["b"]) >= 2, tried


def test_the_first_step_of_the_first_training_is_left_out():
    study = ft.Study(SPACE, SECONDS, policy="random", seed=0, max_steps=5)
    proposal = study.ask()
    for cost in (5.0, 0.1, 0.1):
        study.report(proposal, 1.0, cost=cost)
    history = study._session.history
    costs = StepCosts.of("lines", "auto", SPACE, history)
    assert costs.log_per_step_of(history.trials[0]) == pytest.approx(np.log(0.1))
