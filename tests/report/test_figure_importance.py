"""Importance: the shares that are drawn against indices that are known, and what the models cannot know."""

from __future__ import annotations

import time

import numpy as np
import pytest
from model_studies import SPACE, cost_of, known, tuned, value_of

import farthing as ft
from farthing.errors import NoTrial
from farthing.report.figures import importance

CUBE = ft.Space(x1=ft.Real(-np.pi, np.pi), x2=ft.Real(-np.pi, np.pi), x3=ft.Real(-np.pi, np.pi))


def ishigami(config):
    x1, x2, x3 = (config[name] for name in ("x1", "x2", "x3"))
    return float(np.sin(x1) + 7.0 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1))


def by_name(found, shares):
    return dict(zip(found.names, shares, strict=True))


def test_the_importance_for_value_is_that_of_ishigami_s_function_and_cost_has_its_own():
    """Values are plain, so that nothing is warped; the model knows 256 points of a function that swings."""
    study = known(CUBE, ishigami, 256, cost=lambda c: float(np.exp(c["x1"] + 0.5 * c["x3"])), policy=ft.policies.EI())
    plain = known(CUBE, ishigami, 256, cost=lambda c: 1.0, policy=ft.policies.EI(values="plain"))
    found = importance.numbers(plain._session)
    main, total = by_name(found, found.value_main), by_name(found, found.value_total)
    for name, share, with_others in (("x1", 0.3139, 0.5576), ("x2", 0.4424, 0.4424), ("x3", 0.0, 0.2437)):
        assert main[name] == pytest.approx(share, abs=0.06), name
        assert total[name] == pytest.approx(with_others, abs=0.06), name
    assert found.value_interactions == pytest.approx(0.2437, abs=0.06)
    assert found.explained > 0.8
    found = importance.numbers(study._session)
    assert by_name(found, found.cost_main)["x1"] == pytest.approx(0.8, abs=0.05)
    assert by_name(found, found.cost_main)["x3"] == pytest.approx(0.2, abs=0.05)
    assert found.cost_interactions < 0.05


def test_a_conditional_parameter_counts_as_far_as_it_is_active():
    """The value is share in a third of the space and 0 elsewhere: kind decides whether, share by how much."""
    study = known(SPACE, lambda config: config.get("share", 0.0), 200, policy=ft.policies.EI(values="plain"))
    found = importance.numbers(study._session)
    total, main = by_name(found, found.value_total), by_name(found, found.value_main)
    U = np.random.default_rng(0).random((200_000, 2))
    true = np.where(U[:, 0] < 1 / 3, 0.5 * U[:, 1], 0.0)
    of_kind = np.var([0.25, 0.0, 0.0]) / true.var()
    of_share = np.var(0.5 * U[:, 1] / 3.0) / true.var()
    assert main["kind"] == pytest.approx(of_kind, abs=0.07)
    assert main["share"] == pytest.approx(of_share, abs=0.05)
    assert found.value_interactions == pytest.approx(1.0 - of_kind - of_share, abs=0.08)
    assert total["rate"] < 0.03
    assert total["depth"] < 0.03


def test_what_is_maximised_is_as_important_as_what_is_minimised():
    up, down = (importance.numbers(tuned(maximize=turned)._session) for turned in (True, False))
    assert up.names == down.names
    np.testing.assert_allclose(up.value_total, down.value_total)


def test_parameters_stand_in_the_order_of_their_importance():
    found = importance.numbers(known(SPACE, value_of, 60, cost=cost_of)._session)
    assert found.names[0] == "rate"
    assert np.all(np.diff(found.value_total) <= 0.0)
    assert set(found.names) == set(SPACE.names)
    shown = importance.draw(found).as_json()
    assert [trace["name"] for trace in shown["data"]] == ["alone", "with others"] * 2
    np.testing.assert_allclose(np.add(shown["data"][0]["x"], shown["data"][1]["x"]), found.value_total)
    assert shown["layout"]["yaxis"]["ticktext"] == list(found.names)


def test_without_costs_only_the_value_has_bars():
    found = importance.numbers(tuned("ei", trials=8, cost=False)._session)
    assert found.cost_main is None
    assert {trace["xaxis"] for trace in importance.draw(found).traces} == {"x"}


def test_with_one_value_there_is_nothing_and_with_equal_values_nothing_is_important():
    with pytest.raises(NoTrial, match="2 complete trials, and there is 1 so far"):
        importance.numbers(tuned(trials=1)._session)
    found = importance.numbers(known(CUBE, lambda config: 3.0, 20)._session)
    assert not found.value_total.any()
    assert "no difference" in importance.draw(found).caption


def test_a_slow_function_of_cost_is_left_out_in_time():
    def slow(config):
        time.sleep(0.002)
        return 1.0 + config["x1"] ** 2

    study = ft.Study(CUBE, ft.Budget(cost=100.0), policy="random", known_cost=slow)
    for _ in range(4):
        proposal = study.ask()
        study.tell(proposal, value=proposal.config["x1"], cost=1.0)
    assert importance.numbers(study._session, seconds=0.02).cost_main is None
    assert importance.numbers(study._session).cost_main is not None


def test_hostile_names_are_shown_as_text_and_two_that_look_alike_keep_their_bars():
    names = ["<script>alert(1)</script>", "x" * 5000 + "1", "x" * 5000 + "2"]
    study = known(ft.Space({name: ft.Real(0, 1) for name in names}), lambda c: c[names[1]] + 2.0 * c[names[2]], 30)
    shown = importance.draw(importance.numbers(study._session)).as_json()
    assert len(shown["data"][0]["y"]) == 3
    assert "<" not in "".join(shown["layout"]["yaxis"]["ticktext"])
    assert all(len(text) < 40 for text in shown["layout"]["yaxis"]["ticktext"])
