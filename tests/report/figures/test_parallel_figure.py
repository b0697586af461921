"""Lines cross each axis where the configuration is, and say so in ticks that can be read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NoTrial
from farthing.report.figures import parallel
from farthing.report.figures.ticks import number_ticks, ticks_of
from studies import BOOSTER, error_of, line_study, tell_truth


@pytest.fixture(scope="module")
def sobol():
    study = ft.Study(BOOSTER, ft.Budget(cost=1e6), policy="sobol", seed=0)
    for _ in range(40):
        tell_truth(study, study.ask())
    return study


def test_places_are_those_of_the_configurations(sobol):
    found = parallel.numbers(sobol._session)
    axes = {axis.name: axis for axis in found.axes}
    assert list(axes) == ["eta", "depth", "booster", "drop", "cost", "value"]
    trials = [sobol.trial(int(number)) for number in found.trial]
    eta = [(math.log10(trial.config["eta"]) + 4) / 4 for trial in trials]
    assert axes["eta"].place == pytest.approx(eta)
    assert axes["depth"].place == pytest.approx([(trial.config["depth"] - 0.5) / 16 for trial in trials])
    assert 10 ** axes["cost"].place == pytest.approx([trial.cost for trial in trials])
    booster = dict(zip(axes["booster"].ticks.place, axes["booster"].ticks.text, strict=True))
    assert [booster[place] for place in axes["booster"].place] == [trial.config["booster"] for trial in trials]


def test_a_parameter_without_effect_goes_to_a_place_of_its_own(sobol):
    found = parallel.numbers(sobol._session)
    drop = next(axis for axis in found.axes if axis.name == "drop")
    used = np.array(["drop" in sobol.trial(int(number)).config for number in found.trial])
    assert 0 < used.sum() < len(used)
    assert np.all((drop.place < 0.0) == ~used)
    assert (drop.ticks.place[0], drop.ticks.text[0]) == (drop.low, "not used")


def test_the_best_lines_are_drawn_last_and_have_the_lowest_rank(sobol):
    found = parallel.numbers(sobol._session)
    values = [error_of(sobol.trial(int(number)).config) for number in found.trial]
    assert values == sorted(values, reverse=True)
    assert (found.rank[0], found.rank[-1]) == (1.0, 0.0)
    assert found.trial[-1] == sobol.best.number


def test_values_that_are_maximised_keep_their_sign_and_the_largest_is_the_best():
    study = line_study(maximize=True)
    for value in (0.2, 0.9, 0.5):
        study.tell(study.ask(), value=value)
    found = parallel.numbers(study._session)
    assert found.axes[-1].place.tolist() == [0.2, 0.5, 0.9]
    assert [axis.name for axis in found.axes] == ["x", "value"]  # costs are not known
    assert "the highest values" in parallel.draw(found).caption


def test_one_trial_is_a_line_and_failures_are_none():
    study = line_study()
    study.tell(study.ask(), failed="no", cost=1.0)
    with pytest.raises(NoTrial, match="no trial has a value"):
        parallel.numbers(study._session)
    study.tell(study.ask(), value=3.0, cost=1.0)
    found = parallel.numbers(study._session)
    assert (found.trial.tolist(), found.rank.tolist()) == ([1], [0.0])
    assert all(axis.low < axis.high for axis in found.axes)


def test_of_many_trials_the_best_are_drawn_and_others_of_all_of_the_study():
    study = line_study("1000 evaluations")
    rng = np.random.default_rng(0)
    values = (1.0 + rng.random(1_000)).tolist()
    for value in values:
        study.add({"x": float(rng.uniform(-1, 1))}, value=value)
    found = parallel.numbers(study._session)
    assert (len(found.trial), found.count) == (300, 1_000)
    assert found.axes[-1].place[-150:].tolist() == sorted(values, reverse=True)[-150:]
    assert "300 of 1000" in parallel.draw(found).caption


def test_of_many_parameters_those_are_drawn_that_go_with_the_value():
    space = ft.Space({f"p{i}": ft.Real(0, 1) for i in range(14)})
    study = ft.Study(space, "100 evaluations", policy="random", seed=0)
    for _ in range(60):
        proposal = study.ask()
        study.tell(proposal, value=10 * proposal.config["p3"] - 5 * proposal.config["p11"])
    found = parallel.numbers(study._session)
    names = [axis.name for axis in found.axes]
    assert len(names) == 11
    assert {"p3", "p11"} <= set(names)
    assert sorted([*names[:-1], *found.left_out]) == sorted(space.names)


def test_names_and_options_of_strangers_are_escaped_and_cut():
    nasty = "<script>alert(1)</script>"
    space = ft.Space({nasty: ft.Choice([nasty, "x" * 100_000, object()]), "b\u202e": ft.Real(0, 1)})
    study = ft.Study(space, "9 evaluations", policy="random", seed=0)
    for _ in range(4):
        study.tell(study.ask(), value=1.0)
    shown = str(parallel.draw(parallel.numbers(study._session)).as_json())
    assert "<script" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 5_000


@pytest.mark.parametrize(
    ("parameter", "texts"),
    [
        (ft.Real(0, 0.5), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (ft.Real(1e-5, 3e-1, log=True), ["1e-05", "0.0001", "0.001", "0.01", "0.1", "0.3"]),
        (ft.Real(-3.3, 8.8), ["-3.3", "0", "2.5", "5", "7.5", "8.8"]),
        (ft.Integer(1, 4), ["1", "2", "3", "4"]),
        (ft.Integer(16, 512, log=True), ["16", "50", "100", "200", "512"]),
        (ft.Integer(1, 10, step=3), ["1", "4", "10"]),
        (ft.Ordered([16, 32, 64]), ["16", "32", "64"]),
        (ft.Choice([None, "relu", 0.5]), ["None", "relu", "0.5"]),
    ],
)
def test_ticks_are_ends_and_round_numbers_at_their_places(parameter, texts):
    ticks = ticks_of(parameter)
    assert list(ticks.text) == texts
    assert np.all(np.diff(ticks.place) > 0.05)
    if isinstance(parameter, ft.Real | ft.Integer):
        assert ticks.place == pytest.approx([parameter.unit(parameter.find(float(text))) for text in texts], abs=0.02)


def test_ticks_of_thousands_of_options_are_few():
    assert len(ticks_of(ft.Choice(list(range(5_000)))).text) == 12


@pytest.mark.parametrize(("low", "high", "log"), [(0.0, 0.0, False), (-1e308, 1e308, False), (-300.0, 300.0, True)])
def test_ticks_of_any_numbers_are_few_and_finite(low, high, log):
    ticks = number_ticks(low, high, log=log)
    assert 1 <= len(ticks.text) <= 12
    assert np.isfinite(ticks.place).all()
