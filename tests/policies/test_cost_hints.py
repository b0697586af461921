"""Hints at what is cheap, before any cost is known: names of parameters, and `cheap`."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, StudyMismatch
from farthing.policies.carbo import CArBO
from farthing.policies.cost_hints import elasticity, hinted_cost
from farthing.policies.cost_models import chosen_cost_model
from farthing.surrogates.cost.lines import fit_sizes

FOREST = ft.Space(
    n_estimators=ft.Integer(10, 1000, log=True), max_depth=ft.Integer(1, 16), rate=ft.Real(1e-3, 1, log=True)
)
NAMELESS = ft.Space(a=ft.Integer(10, 1000, log=True), b=ft.Integer(1, 16), c=ft.Real(1e-3, 1, log=True))


def log_cost(space, cheap, *configs):
    return hinted_cost(space, cheap).mean_at(space.features(space.encode_many(configs)))


def told(study, count, cost):
    proposals = []
    for _ in range(count):
        proposal = study.ask()
        study.tell(proposal, value=float(np.sum(study.space.encode(proposal.config))), cost=cost(proposal.config))
        proposals.append(proposal)
    return proposals


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("n_estimators", 1.0),
        ("clf__max_iter", 1.0),
        ("numLayers", 1.0),
        ("HIDDEN_UNITS", 1.0),
        ("batch_size", -0.5),
        ("min_samples_leaf", -0.5),
        ("learning_rate", 0.0),
        ("C", 0.0),
        ("", 0.0),
    ],
)
def test_names_say_how_cost_grows(name, expected):
    assert elasticity(name) == expected


def test_cost_is_proportional_to_what_is_counted_on_every_scale():
    for parameter in (ft.Real(10, 1000), ft.Real(10, 1000, log=True), ft.Ordered([10, 100, 1000], log=True)):
        cheap, mid, dear = log_cost(ft.Space(epochs=parameter), {}, *({"epochs": e} for e in (10, 100, 1000)))
        assert mid - cheap == pytest.approx(np.log(10), rel=1e-6)
        assert dear - cheap == pytest.approx(np.log(100), rel=1e-6)


def test_a_grid_that_falls_is_cheap_at_its_end():
    cheap, dear = log_cost(ft.Space(trees=ft.Ordered([100, 10])), {}, {"trees": 10}, {"trees": 100})
    assert dear - cheap == pytest.approx(np.log(10))


def test_larger_batches_are_cheaper():
    space = ft.Space(batch_size=ft.Integer(16, 512, log=True))
    small, large = log_cost(space, {}, {"batch_size": 16}, {"batch_size": 512})
    assert small > large


def test_without_a_hint_there_is_none():
    assert hinted_cost(NAMELESS, {}) is None
    assert hinted_cost(ft.Space(depth=ft.Choice(["a", "b", "c"])), {}) is None


@pytest.mark.parametrize("options", [["x", "y"], ["x", "y", "z"]])
def test_what_is_said_to_be_cheap_is_the_cheapest(options):
    space = ft.Space(a=ft.Real(-1, 1), kind=ft.Choice(options))
    study = ft.Study(space, ft.Budget(cost=9), cheap={"a": 0.5, "kind": "y"})
    cheap = study._session.history.cost_knowledge.cheap
    (
        here,
        elsewhere,
        other,
    ) = log_cost(space, cheap, {"a": 0.5, "kind": "y"}, {"a": -0.5, "kind": "y"}, {"a": 0.5, "kind": "x"})
    assert here == pytest.approx(0.0, abs=1e-9)
    assert elsewhere > 1.0
    assert other == pytest.approx(1.0)


def test_the_gradient_is_that_of_the_mean():
    model = hinted_cost(FOREST, {"rate": 0.4})
    X = np.random.default_rng(0).uniform(0.05, 0.95, (20, 3))
    mean, variance, slope, variance_slope = model.predict_with_gradient(X)
    np.testing.assert_allclose(mean, model.mean_at(X))
    assert (variance > 0).all()
    assert not variance_slope.any()
    for j, shift in enumerate(1e-6 * np.eye(3)):
        difference = (model.mean_at(X + shift) - model.mean_at(X - shift)) / 2e-6
        np.testing.assert_allclose(slope[:, j], difference, atol=1e-5)


def test_the_first_evaluations_cost_little():
    """A quarter of what they cost without hints, in the median over seeds, if the budget pays for 40 of mean cost."""

    def cost(config):
        return float(np.prod(list(config.values())[:2]))

    mean = np.mean([cost(config) for config in FOREST.decode_many(np.random.default_rng(0).random((1000, 3)))])

    def spent(policy, seed):
        study = ft.Study(FOREST, ft.Budget(cost=40 * mean), policy=policy, seed=seed)
        return sum(cost(proposal.config) for proposal in told(study, 3, cost))

    ratios = [spent(CArBO(), seed) / spent(CArBO(hints=False), seed) for seed in range(9)]
    assert np.median(ratios) < 0.25


def test_a_hint_that_is_wrong_is_found_out_by_the_initial_design():
    """Every evaluation costs the same. If the smallest differences of predicted costs decided, all points would lie at
    the end that is said to be cheap, and nothing would ever contradict it."""
    space = ft.Space(share=ft.Real(1e-6, 1.0, log=True), metric=ft.Choice(list("abcdef")), size=ft.Real(0.0, 1.0))
    for seed in range(5):
        study = ft.Study(space, ft.Budget(cost=400.0), seed=seed, cheap={"share": 1e-6})
        first, *later = told(study, 20, lambda config: 0.5)
        assert first.config["share"] < 1e-5
        assert max(proposal.config["share"] for proposal in later) > 0.5
        assert np.median([proposal.config["share"] for proposal in later]) > 1e-5


def test_a_hint_that_is_right_is_followed_by_the_initial_design():
    """Costs grow as it says; the initial design costs a tenth of the budget at most, where nearly half of all points
    cost more than that each."""
    space = ft.Space(share=ft.Real(1e-6, 1.0, log=True), metric=ft.Choice(list("abcdef")), size=ft.Real(0.0, 1.0))
    for seed in range(5):
        study = ft.Study(space, ft.Budget(cost=400.0), seed=seed, cheap={"share": 1e-6})
        proposals = told(study, 3, lambda config: 0.5 * (config["share"] / 1e-6) ** 0.6)
        assert all("initial design" in proposal.reason for proposal in proposals)
        assert sum(0.5 * (proposal.config["share"] / 1e-6) ** 0.6 for proposal in proposals) < 40.0


def test_the_second_point_is_the_middle_and_tells_what_lies_beyond_the_cheap_end():
    study = ft.Study(FOREST, ft.Budget(cost=1e9), seed=0)
    middle = FOREST.decode([0.5] * 3)
    proposals = told(study, 3, lambda config: 1.0)
    assert [proposal.config == middle for proposal in proposals] == [False, True, False]
    assert proposals[1].reason == "carbo: initial design: near the middle of the space"
    together = ft.Study(FOREST, ft.Budget(cost=1e9), seed=0).ask(3)  # none of the costs is known yet
    assert [proposal.config == middle for proposal in together] == [False, True, False]


def test_a_middle_that_is_forbidden_or_too_expensive_is_approached():
    space = ft.Space(
        trees=ft.Integer(1, 101), rate=ft.Real(0.0, 1.0), forbid=lambda config: 40 <= config["trees"] <= 62
    )
    second = told(ft.Study(space, ft.Budget(cost=1e9), seed=0), 2, lambda config: 1.0)[1].config
    assert 30 <= second["trees"] <= 72
    assert abs(second["rate"] - 0.5) < 0.2
    study = ft.Study(NAMELESS, ft.Budget(cost=5.0), seed=0, cheap={"a": 10})
    first, second = told(study, 2, lambda config: config["a"] / 10)
    assert first.config["a"] < second.config["a"] < 50 + first.config["a"], "the middle, 100, would cost more than all"


def test_nothing_is_begun_that_is_sure_to_be_cut_off():
    """The cheapest corner is the best one. Once it is tried, most of what is left to try is on the expensive side,
    where an evaluation costs up to five times the budget."""
    space = ft.Space(share=ft.Real(1e-6, 1.0, log=True), metric=ft.Choice(list("abcdef")), size=ft.Real(0.0, 1.0))
    for seed in range(4):
        study = ft.Study(space, ft.Budget(cost=400.0), seed=seed, cheap={"share": 1e-6})
        spent = 0.0
        for _ in range(20):
            proposal = study.ask()
            assert proposal.predicted_cost is None or proposal.predicted_cost <= 1.5 * (400.0 - spent)
            cost = 0.5 * (proposal.config["share"] / 1e-6) ** 0.6
            study.tell(proposal, value=float(np.sum(space.encode(proposal.config))), cost=cost)
            spent += cost
            if spent >= 400.0:
                break


def test_no_cost_is_predicted_from_hints_alone():
    study = ft.Study(FOREST, ft.Budget(cost=1e6), seed=0)
    first, second = told(study, 2, lambda config: 7.0)
    assert first.predicted_cost is None
    assert first.reason == "carbo: initial design: one of the cheapest, as names of parameters hint"
    assert second.predicted_cost is not None


@pytest.mark.parametrize(
    ("space", "cheap", "hint"),
    [
        (FOREST, {}, "names of parameters hint"),
        (ft.Space(a=ft.Integer(1, 100)), {"a": 1}, "`cheap` hints"),
        (ft.Space(a=ft.Integer(1, 100), trees=ft.Integer(1, 9)), {"a": 1}, "names of parameters and `cheap` hint"),
    ],
)
def test_the_first_reason_says_who_hints(space, cheap, hint):
    study = ft.Study(space, ft.Budget(cost=1e6), seed=0, cheap=cheap)
    assert study.ask().reason == f"carbo: initial design: one of the cheapest, as {hint}"


def test_costs_that_contradict_the_names_outvote_them():
    """Where fewer estimators cost more, and depth nothing, the model of cost says so after a few evaluations."""
    study = ft.Study(FOREST, ft.Budget(cost=1e9), policy=CArBO(design_share=1.0), seed=1)
    told(study, 10, lambda config: 1e4 / config["n_estimators"])
    model, _ = chosen_cost_model(FOREST, study._session.history)
    U = np.random.default_rng(0).random((64, 3))
    truth = -np.log([config["n_estimators"] for config in FOREST.decode_many(U)])
    assert np.corrcoef(model.mean_at(FOREST.features(U)), truth)[0, 1] > 0.95


def test_right_hints_make_a_model_of_two_costs():
    """With two costs a line without hints hardly knows a slope; with them the order of costs is right."""
    rng = np.random.default_rng(0)
    truth = lambda U: np.log([c["n_estimators"] * c["max_depth"] for c in FOREST.decode_many(U)])  # noqa: E731
    seen, new = rng.random((2, 3)), rng.random((50, 3))
    study = ft.Study(FOREST, ft.Budget(cost=1e6))
    for u, b in zip(seen, truth(seen), strict=True):
        study.add(FOREST.decode(u), value=0.0, cost=float(np.exp(b)))
    model, _ = chosen_cost_model(FOREST, study._session.history)
    without = next(iter(fit_sizes(FOREST.features(seen), truth(seen)).values()))
    errors = [np.abs(m.mean_at(FOREST.features(new)) - truth(new)).mean() for m in (model, without)]
    assert errors[0] < 0.5 * errors[1]


def test_hints_come_back_from_the_file(tmp_path):
    path = tmp_path / "s.db"
    ft.Study(NAMELESS, ft.Budget(cost=100), storage=path, seed=3, cheap={"a": 10})
    with pytest.raises(StudyMismatch, match="cheap"):
        ft.Study(NAMELESS, ft.Budget(cost=100), storage=path, cheap={"a": 20})
    memory = ft.Study(NAMELESS, ft.Budget(cost=100), seed=3, cheap={"a": 10})
    expected = told(memory, 6, lambda config: config["a"] / 100)
    found = told(ft.Study.resume(path), 3, lambda config: config["a"] / 100)
    found += told(ft.Study(NAMELESS, ft.Budget(cost=100), storage=path), 3, lambda config: config["a"] / 100)
    assert [p.config for p in found] == [p.config for p in expected]
    assert expected[0].config["a"] < 20


@pytest.mark.parametrize(
    ("cheap", "message"),
    [
        ({"z": 1}, "cheap: expected names of parameters"),
        ({"a": 5000}, r"cheap\['a'\]: expected an integer from 10 to 1000, got 5000"),
        (10, "cheap: expected a dict"),
    ],
)
def test_bad_hints_are_refused(cheap, message):
    with pytest.raises(InvalidArgument, match=message):
        ft.Study(NAMELESS, ft.Budget(cost=100), cheap=cheap)


def test_the_papers_know_no_hints():
    """What is published begins as if names meant nothing."""
    named = ft.Study(FOREST, ft.Budget(cost=1e6), policy="carbo-paper", seed=0)
    nameless = ft.Study(NAMELESS, ft.Budget(cost=1e6), policy="carbo-paper", seed=0)
    for _ in range(8):
        pair = named.ask(), nameless.ask()
        assert list(pair[0].config.values()) == list(pair[1].config.values())
        for study, proposal in zip((named, nameless), pair, strict=True):
            first, *_ = proposal.config.values()
            study.tell(proposal, value=1 / first, cost=first)


def test_a_design_leaves_out_what_the_rest_of_the_budget_cannot_pay_for():
    """By the hint, the largest evaluations cost a hundred times as much as the first one."""

    def dearest(end):
        policy = CArBO(design_share=1.0, end=end)
        study = ft.Study(NAMELESS, ft.Budget(cost=40), policy=policy, cheap={"a": 10}, seed=0)
        study.tell(study.ask(), value=1.0, cost=10.0)
        return max(proposal.predicted_cost for proposal in study.ask(20))

    assert dearest("ignored") > 30.0
    assert dearest("planned") <= 30.0
