"""The default policy: `thaw` or `carbo` where cost is limited, `ei` where only evaluations are."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

import farthing as ft
from farthing.policies.auto import for_steps
from farthing.surrogates.curves import network

SPACE = ft.Space(
    x=ft.Real(0, 1), size=ft.Integer(1, 100, log=True), kind=ft.Choice(["a", "b"]), z=ft.Real(0, 1, when={"kind": "b"})
)
BUDGETS = {
    "cost": (ft.Budget(cost=150.0), "carbo"),
    "seconds": ("150s", "carbo"),
    "both": ("150s, 40 evaluations", "carbo"),
    "dollars": ("$150", "carbo"),
    "evaluations": ("40 evaluations", "ei"),
}


def cost(config: dict[str, Any]) -> float:
    return 0.5 + 0.1 * config["size"]


def played(study: ft.Study, n: int) -> list[ft.Proposal]:
    proposals = []
    for _ in range(n):
        proposals.append(study.ask())
        config = proposals[-1].config
        value = (config["x"] - 0.4) ** 2 + 0.2 / config["size"] + config.get("z", 0.3)
        study.tell(proposals[-1], value=value, cost=cost(config))
    return proposals


def seen(proposals: list[ft.Proposal]) -> list[tuple[Any, ...]]:
    return [(p.trial, p.config, p.predicted_cost, dict(p.fits)) for p in proposals]


@pytest.mark.parametrize("name", BUDGETS)
def test_proposals_are_those_of_the_policy_it_stands_for(name):
    budget, policy = BUDGETS[name]
    ours, theirs = (played(ft.Study(SPACE, budget, policy=p, seed=2), 11) for p in ("auto", policy))
    assert seen(ours) == seen(theirs)
    assert [p.reason for p in ours] == [f"{policy}: {p.reason}" for p in theirs]


@pytest.mark.parametrize("name", ["cost", "evaluations"])
def test_several_at_once_too(name):
    budget, policy = BUDGETS[name]
    asked = []
    for given in ("auto", policy):
        study = ft.Study(SPACE, budget, policy=given, seed=2, known_cost=cost)
        played(study, 6)
        asked.append(seen(study.ask(3)))
    assert asked[0] == asked[1]


@pytest.mark.parametrize("name", ["cost", "evaluations"])
def test_a_study_goes_on_as_if_it_had_not_stopped(name, tmp_path):
    budget, policy = BUDGETS[name]
    expected = played(ft.Study(SPACE, budget, seed=2), 9)
    with ft.Study(SPACE, budget, seed=2, storage=tmp_path / "study.db") as study:
        assert study.policy.name == "auto"
        played(study, 7)
    with ft.Study.resume(tmp_path / "study.db") as resumed:
        assert resumed.policy.name == "auto"
        assert seen(played(resumed, 2)) == seen(expected[7:])
        assert all(trial.reason.startswith(f"{policy}: ") for trial in resumed.trials)


def test_it_is_the_default_of_study_and_of_tune():
    assert ft.Study(SPACE, "5 evaluations").policy.name == "auto"
    assert ft.tune(lambda config: 0.0, SPACE, "2 evaluations", progress=False).policy.name == "auto"


def test_a_budget_given_later_changes_the_policy_and_nothing_else(tmp_path):
    with ft.Study(SPACE, "40 evaluations", seed=2, storage=tmp_path / "study.db") as study:
        played(study, 6)
    with ft.Study.resume(tmp_path / "study.db", budget=ft.Budget(seconds=500.0)) as resumed:
        assert resumed.ask().reason.startswith("carbo: ")


def test_what_is_known_of_cost_reaches_it():
    study = ft.Study(SPACE, ft.Budget(cost=150.0), seed=2, known_cost=cost)
    proposal = study.ask()
    assert proposal.reason == "carbo: initial design: one of the cheapest, as known_cost says"
    assert proposal.predicted_cost == pytest.approx(cost(proposal.config))


def test_a_front_can_be_drawn():
    study = ft.Study(SPACE, ft.Budget(cost=150.0), seed=2)
    played(study, 7)
    for front in (study.pareto(), study.pareto(trial=5)):
        assert front.picks["CEI"].log_cost <= front.picks["EI"].log_cost + 1e-9


def learner(config: dict[str, Any]) -> Any:
    for step in range(1, 11):
        yield {"value": (config["x"] - 0.4) ** 2 + 1.0 / step, "cost": 1.0}


@pytest.mark.parametrize("max_steps", [10, None])
def test_learners_that_train_step_by_step_are_planned(max_steps):
    study = ft.tune(learner, SPACE, ft.Budget(cost=60), seed=0, max_steps=max_steps, progress=False)
    first = 0 if max_steps else 1
    assert all(trial.reason.startswith("thaw: ") for trial in study.trials[first:])
    assert study.count(ft.Status.PAUSED) > 0
    assert max_steps or len(study.trials[0].curve) == 10


@pytest.fixture
def network_file(tmp_path, monkeypatch):
    """A file that is taken for the network's, and does not exist yet."""
    path = tmp_path / "network.npz"
    monkeypatch.setattr(network, "_here", lambda: tmp_path)
    for kept in (network.weights, for_steps):
        kept.cache_clear()
    yield path
    for kept in (network.weights, for_steps):
        kept.cache_clear()


@pytest.mark.parametrize("content", [None, b"not a network"], ids=["missing", "damaged"])
def test_without_the_network_another_policy_takes_over_and_that_is_said_once(network_file, content):
    if content is not None:
        network_file.write_bytes(content)
    study = ft.Study(SPACE, ft.Budget(cost=1e3), seed=0, max_steps=10)
    with pytest.warns(RuntimeWarning, match=r"network.*policy auto takes bapi instead of thaw") as said:
        reasons = [one_run(study) for _ in range(8)]
    assert len(said) == 1
    assert all(reason.startswith("bapi: ") for reason in reasons)


def one_run(study: ft.Study) -> str:
    """Asks, trains until told otherwise, and says why it was this run."""
    proposal = study.ask()
    for point in islice(learner(proposal.config), proposal.start_step, None):
        if study.report(proposal, **point) is not ft.Decision.CONTINUE:
            break
    return proposal.reason


def test_where_evaluations_are_counted_learners_are_trained_completely():
    study = ft.tune(learner, SPACE, "6 evaluations", seed=0, max_steps=10, progress=False)
    assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE] * 6
    assert all(trial.reason.startswith("ei: ") for trial in study.trials)


@pytest.mark.parametrize("max_steps", [10, None])
def test_plain_functions_are_welcome_whatever_was_said_of_steps(max_steps):
    def plain(config: dict[str, Any]) -> dict[str, float]:
        return {"value": (config["x"] - 0.4) ** 2, "cost": 1.0}

    study = ft.tune(plain, SPACE, ft.Budget(cost=12), seed=0, max_steps=max_steps, progress=False)
    assert study.count(ft.Status.COMPLETE) == 12
    assert study.trials[-1].reason.startswith("carbo: ")
