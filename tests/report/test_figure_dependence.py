"""Slices and partial dependence: the curves that are drawn against averages that are computed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from model_studies import SPACE, cost_of, known, tuned, value_of

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial
from farthing.report.figures import dependence
from farthing.report.surrogates import surrogates_of


@pytest.fixture(scope="module")
def session():
    return known(SPACE, value_of, 60, cost=cost_of)._session


def one(session, name):
    (effects,) = dependence.numbers(session, name).effects
    return effects


def test_a_slice_is_what_the_models_say_of_the_best_configuration_with_one_value_changed(session):
    models, effects = surrogates_of(session), one(session, "depth")
    best = min(session.history.complete, key=lambda trial: trial.value)
    for i, depth in enumerate(effects.x):
        X = SPACE.features(SPACE.encode({**best.config, "depth": int(depth)})[None, :])
        mean, variance = models.value.model.predict(X)
        ends = [models.value.shown(mean + sign * 1.96 * np.sqrt(variance))[0] for sign in (0.0, -1.0, 1.0)]
        assert [effects.value.slice[i], effects.value.low[i], effects.value.high[i]] == pytest.approx(ends)
        assert effects.cost.slice[i] == pytest.approx(np.exp(models.cost.model.predict(X)[0][0]))


def test_the_average_is_over_configurations_of_the_whole_space(session):
    """Against 2,000 random ones: in the figure there are 64 even ones."""
    models, rng = surrogates_of(session), np.random.default_rng(7)
    effects = one(session, "rate")
    for i in (0, 16, 32):
        U = rng.random((2_000, len(SPACE)))
        U[:, 0] = SPACE.params["rate"].unit(effects.x[i])
        mean = models.value.model.mean_at(SPACE.features(U))
        expected = models.value.shown(np.array([mean.mean()]))[0]
        assert effects.value.average[i] == pytest.approx(expected, abs=0.1 * np.ptp(effects.value.average))


def test_the_curves_follow_the_functions_that_were_evaluated(session):
    effects = one(session, "depth")
    assert effects.x.tolist() == list(range(1, 9))
    np.testing.assert_allclose(effects.cost.slice, 0.5 * effects.x, rtol=0.05)
    np.testing.assert_allclose(effects.cost.average, 0.5 * effects.x, rtol=0.05)
    rate = one(session, "rate")
    assert rate.x[int(np.argmin(rate.value.average))] == pytest.approx(0.01, rel=1.5)
    assert rate.x[[0, -1]].tolist() == [1e-4, 1.0]
    np.testing.assert_allclose(np.diff(np.log(rate.x)), np.diff(np.log(rate.x))[0], rtol=1e-6)


def test_a_conditional_parameter_is_looked_at_only_where_it_is_active(session):
    models, effects = surrogates_of(session), one(session, "share")
    dropped = [trial for trial in session.history.complete if "share" in trial.config]
    assert sorted(effects.value.seen_x) == sorted(trial.config["share"] for trial in dropped)
    best = min(dropped, key=lambda trial: trial.value)  # the best of all has no share
    X = SPACE.features(SPACE.encode({**best.config, "share": 0.0})[None, :])
    assert effects.value.slice[0] == pytest.approx(models.value.shown(models.value.model.mean_at(X))[0])
    assert np.ptp(effects.value.average) == pytest.approx(1.0, abs=0.3)  # 2 share, from 0 to 0.5


def test_trials_are_drawn_where_they_are_in_the_user_s_sign():
    up, down = tuned(maximize=True), tuned()
    for name in ("rate", "kind"):
        mine, theirs = one(up._session, name), one(down._session, name)
        complete = [trial for trial in up.trials if trial.value is not None]
        assert mine.value.seen.tolist() == [trial.value for trial in complete]
        np.testing.assert_allclose(mine.value.slice, -theirs.value.slice)
        np.testing.assert_allclose(mine.value.low, -theirs.value.high)
        assert np.all(mine.value.low <= mine.value.high)
    options = list(SPACE.params["kind"].options)
    assert mine.value.seen_x.tolist() == [options.index(trial.config["kind"]) for trial in complete]


def test_a_failed_trial_shows_its_cost_and_no_value():
    study = tuned("random", 12, fail=(3, 4))
    effects = one(study._session, "rate")
    assert len(effects.value.seen) == 10
    assert effects.cost.seen.tolist() == [trial.cost for trial in study.trials]


def test_options_and_names_of_strangers_are_shown_as_text(session):
    shown = dependence.draw(dependence.numbers(session, "kind")).as_json()
    assert shown["layout"]["xaxis"]["ticktext"] == ["plain", "dropped", "&lt;b&gt;bold&lt;/b&gt;"]

    class Odd:
        def __repr__(self):
            return "<script>alert(1)</script>" + "z" * 100_000

        __str__ = __repr__

    hostile = "<img src=x onerror=alert(1)>"
    study = known(ft.Space({hostile: ft.Choice([Odd(), "y" * 100_000, 3])}), lambda c: float(c[hostile] == 3), 6)
    shown = dependence.draw(dependence.numbers(study._session)).as_json()
    texts = [*shown["layout"]["xaxis"]["ticktext"], shown["layout"]["xaxis"]["title"]["text"]]
    assert all("<" not in text and len(text) <= 60 for text in texts)


def test_where_nobody_names_any_the_most_influential_ones_are_shown(session):
    assert dependence.numbers(session).effects[0].axis.name == "rate"
    many = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(12)})
    found = dependence.numbers(known(many, lambda c: 3.0 * c["x5"] + c["x2"], 40)._session)
    assert [effects.axis.name for effects in found.effects[:2]] == ["x5", "x2"]
    assert len(found.effects) == dependence.MOST_SHOWN


def test_axes_are_logarithmic_for_logarithmic_parameters_and_costs(session):
    shown = dependence.draw(dependence.numbers(session, "rate", "depth")).as_json()["layout"]
    assert [shown[axis]["type"] for axis in ("xaxis", "xaxis2", "xaxis3", "yaxis2")] == ["log", "log", "linear", "log"]
    assert shown["yaxis"]["range"] == shown["yaxis3"]["range"]  # rows can be compared


def test_without_costs_there_is_one_column():
    found = dependence.numbers(tuned("ei", 8, cost=False)._session, "rate")
    assert found.effects[0].cost is None
    assert {trace["xaxis"] for trace in dependence.draw(found).traces} == {"x"}


def test_a_diverged_run_does_not_flatten_the_axis():
    study = known(ft.Space(x=ft.Real(0, 1)), lambda c: 1e9 if c["x"] > 0.95 else c["x"], 30)
    low, high = dependence.draw(dependence.numbers(study._session)).as_json()["layout"]["yaxis"]["range"]
    assert low < 0.1
    assert 0.9 < high < 3.0


def test_a_wrong_name_is_refused_and_too_few_values_are_said(session):
    with pytest.raises(InvalidArgument, match=r"one of the parameters 'rate', 'depth', .*, got 'rates'"):
        dependence.numbers(session, "rates")
    with pytest.raises(NoTrial, match="there is none so far"):
        dependence.numbers(tuned(trials=0)._session)
