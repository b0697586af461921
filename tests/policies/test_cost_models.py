"""Policies use what is known about cost: checked against brute force over every configuration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.history import History, units, values
from farthing.policies.cost_models import task_features
from farthing.policies.fits import value_model

GRID = ft.Space(x=ft.Integer(0, 19), size=ft.Ordered([1, 3, 10, 30, 100, 300]), kind=ft.Choice(["a", "b", "c"]))


def value(config: dict[str, Any]) -> float:
    return (config["x"] / 19.0 - 0.7) ** 2 + 0.1 / config["size"] + {"a": 0.0, "b": 0.05, "c": 0.2}[config["kind"]]


def known(config: dict[str, Any]) -> float:
    """All different, so that there is one cheapest."""
    return config["size"] * (1.0 + 0.013 * config["x"]) * {"a": 1.0, "b": 0.71, "c": 0.37}[config["kind"]]


def begun(policy: str | Any, n: int, seed: int) -> ft.Study:
    study = ft.Study(GRID, ft.Budget(cost=1e9), policy=policy, seed=seed, known_cost=known)
    for _ in range(n):
        proposal = study.ask()
        study.tell(proposal, value=value(proposal.config), cost=known(proposal.config))
    return study


def expected_improvement(history: History, configs: list[dict[str, Any]]) -> np.ndarray:
    """EI by its textbook formula, over the least posterior mean at what was evaluated."""
    complete = history.complete
    model = value_model(GRID, units(complete, len(GRID)), values(complete), history)
    target = model.predict(model.X)[0].min()
    mean, variance = model.predict(GRID.features(GRID.encode_many(configs)))
    deviation = np.sqrt(variance)
    z = (target - mean) / deviation
    return deviation * (z * norm.cdf(z) + norm.pdf(z))


def fresh(study: ft.Study) -> list[dict[str, Any]]:
    tried = {GRID.key(trial.config) for trial in study.trials}
    return [config for config in GRID.enumerate() if GRID.key(config) not in tried]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tradeoff", [0.1, 0.5, 0.9])
def test_contextual_ei_picks_the_cheapest_config_with_nearly_the_best_ei(seed, tradeoff):
    study = begun(ft.policies.CEI(tradeoff=tradeoff), 7 + seed, seed)
    configs = fresh(study)
    ei, cost = expected_improvement(study._history, configs), np.array([known(config) for config in configs])
    best = np.flatnonzero(ei >= (1.0 - tradeoff) * ei.max())
    expected = configs[best[np.argmin(cost[best])]]
    assert study.ask().config == expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
def test_ei_per_cost_picks_the_config_with_the_most(seed, alpha):
    study = begun(ft.policies.EIAlpha(alpha=alpha), 6 + seed, seed)
    configs = fresh(study)
    ei, cost = expected_improvement(study._history, configs), np.array([known(config) for config in configs])
    assert study.ask().config == configs[int(np.argmax(ei / cost**alpha))]


def test_contextual_ei_on_a_continuous_space_is_as_cheap_as_a_fine_grid():
    """Slopes of the known cost are by differences: the search must still reach the edge of what EI allows."""
    space = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1))

    def curved(config: dict[str, Any]) -> float:
        return math.exp(6.0 * config["x"] + 2.0 * math.sin(4.0 * config["y"]))

    for seed in range(2):
        study = ft.Study(space, ft.Budget(cost=1e9), policy=ft.policies.CEI(tradeoff=0.5), seed=seed, known_cost=curved)
        for _ in range(10):
            proposal = study.ask()
            config = proposal.config
            study.tell(proposal, value=(config["x"] - 0.6) ** 2 + (config["y"] - 0.4) ** 2, cost=curved(config))
        history = study._history
        model = value_model(space, units(history.complete, 2), values(history.complete), history)
        target = model.predict(model.X)[0].min()

        def log_ei(U: np.ndarray, model=model, target=target) -> np.ndarray:
            mean, variance = model.predict(U)
            z = (target - mean) / np.sqrt(variance)
            return np.log(np.sqrt(variance) * (z * norm.cdf(z) + norm.pdf(z)) + 1e-300)

        grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 161)] * 2), axis=-1).reshape(-1, 2)
        e, c = log_ei(grid), np.array([6.0 * x + 2.0 * np.sin(4.0 * y) for x, y in grid])
        proposal = study.ask()
        found = log_ei(space.encode(proposal.config)[None])[0]
        assert found >= e.max() + math.log(0.5) - 0.02
        assert math.log(proposal.predicted_cost) <= c[e >= e.max() + math.log(0.5)].min() + 0.02


@pytest.mark.parametrize("source", ["known", "prior"])
def test_carbo_needs_no_points_to_learn_costs_that_are_known(source):
    """Its cost-effective design begins with the first proposal, and continues until an eighth of the budget is used."""
    earlier = begun("sobol", 20, 0)
    knowledge = {"known_cost": known} if source == "known" else {"cost_prior": ft.CostPrior.from_studies([earlier])}
    study = ft.Study(GRID, ft.Budget(cost=4000.0), policy="carbo", seed=1, **knowledge)
    design = []
    while study.ledger.fraction < 1 / 8 and len(design) < 12:
        design.append(study.ask())
        study.tell(design[-1], value=value(design[-1].config), cost=known(design[-1].config))
    assert all("cheap" in proposal.reason for number, proposal in enumerate(design) if number != 1)
    assert "near the middle" in design[1].reason
    assert all(proposal.predicted_cost is not None for proposal in design)
    usual = np.median([known(config) for config in GRID.enumerate()])
    assert np.median([known(proposal.config) for proposal in design[1:]]) < usual
    assert len({GRID.key(proposal.config) for proposal in design}) == len(design)


def test_without_knowledge_carbo_begins_with_points_that_teach_it():
    study = ft.Study(GRID, ft.Budget(cost=4000.0), policy=ft.policies.CArBO(hints=False), seed=1)
    proposal = study.ask()
    assert proposal.predicted_cost is None
    assert "cheap" not in proposal.reason


def test_several_at_once_from_the_first_ask_on():
    study = ft.Study(GRID, ft.Budget(cost=4000.0), policy="carbo", seed=1, known_cost=known)
    proposals = study.ask(4)
    assert len({GRID.key(proposal.config) for proposal in proposals}) == 4
    assert study.ledger.committed == pytest.approx(sum(known(proposal.config) for proposal in proposals))


SPACES = {
    "conditions": ft.Space(
        kind=ft.Choice(["a", "b", "c", "d"]),
        depth=ft.Integer(1, 9, when={"kind": {"b", "c"}}),
        rate=ft.Real(1e-3, 1, log=True, when={"kind": "c"}),
        inner=ft.Real(0, 1, when={"depth": {8, 9}}),
    ),
    "one choice": ft.Space(kind=ft.Choice(list("abcdefghij"))),
    "one real": ft.Space(rate=ft.Real(1e-3, 1, log=True)),
    "levels": ft.Space(
        depth=ft.Integer(1, 9), bins=ft.Ordered([256, 64, 16]), words=ft.Ordered(["low", "mid", "high"])
    ),
}


def cost_anywhere(config: dict[str, Any]) -> float:
    return 1.0 + config.get("depth", 0) ** 2 + 10.0 * config.get("rate", 0.0) + config.get("inner", 0.0)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("argument", ["known_cost", "cost_features", "cost_prior"])
@pytest.mark.parametrize("policy", ["auto", "cei"])
def test_every_kind_of_space_works(name, argument, policy):
    space = SPACES[name]
    if argument == "cost_prior":
        earlier = ft.Study(space, "8 evaluations", policy="sobol", seed=9)
        for _ in range(8):
            proposal = earlier.ask()
            earlier.tell(proposal, value=0.0, cost=cost_anywhere(proposal.config))
        given: Any = ft.CostPrior.from_studies([earlier])
    else:
        given = cost_anywhere
    study = ft.Study(space, ft.Budget(cost=120.0), policy=policy, seed=0, maximize=True, **{argument: given})
    while study.ended is None and study.count() < 7:
        proposal = study.ask()
        if proposal.trial == 2:
            study.tell(proposal, failed="no", cost=1.0)
        else:
            study.tell(proposal, value=-config_value(proposal.config), cost=cost_anywhere(proposal.config))
    assert all(p is None or p > 0.0 for p in (trial.predicted_cost for trial in study.trials))
    if argument == "known_cost":
        assert study.trials[-1].predicted_cost == pytest.approx(cost_anywhere(study.trials[-1].config))


def config_value(config: dict[str, Any]) -> float:
    return len(config) + config.get("depth", 0) + config.get("rate", 0.3)


def test_tasks_are_described_by_what_the_new_one_says_and_all_do():
    earlier = [{"rows": 9.0, "gpu": "A", "noise": -3.0}, {"rows": 99.0, "gpu": "B", "noise": 0.0, "columns": 7.0}]
    M = task_features([*earlier, {"gpu": "A", "columns": 7.0, "noise": 3.0, "rows": 999.0}])
    np.testing.assert_allclose(M[:, :2], [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_allclose(M[:, 2], [-np.log(4), 0, np.log(4)])
    np.testing.assert_allclose(M[:, 3], np.log([10, 100, 1000]))
    assert M.shape == (3, 4)
    assert task_features([*earlier, {}]).shape == (3, 0)
    assert task_features([{"rows": 5.0}, {"rows": "many"}]).shape == (2, 0)
