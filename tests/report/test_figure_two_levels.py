"""Two levels of training: what is drawn against the model of the next ask, and the studies that have none."""

from __future__ import annotations

import numpy as np
import pytest
from model_studies import tuned

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial
from farthing.policies.bopt.next_run import NextRun
from farthing.policies.bopt.two_levels import Modelling, Scale, TrainingRun
from farthing.policies.protocol import generator_of
from farthing.report.figures import two_levels

SPACE = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), width=ft.Integer(1, 12), kind=ft.Choice(["a", "b"]))
STEPS = 10


def train(config):
    x = np.log10(config["rate"]) + 2.0
    for step in range(1, STEPS + 1):
        yield float(0.2 + 0.1 * x**2 + 0.05 * (config["kind"] == "b") + np.exp(-step / 2) * (1.0 + 0.2 * x))


def accuracy(config):
    for value in train(config):
        yield 1.0 - value


def trained(objective=train, policy="bopt", evaluations=14, **options):
    budget = f"{evaluations} evaluations"
    return ft.tune(objective, SPACE, budget, policy=policy, max_steps=STEPS, seed=2, progress=False, **options)


@pytest.fixture(scope="module")
def study():
    return trained()


@pytest.mark.parametrize("policy", ["bopt", "eqie"])
def test_both_levels_are_what_the_model_of_the_next_ask_says_around_the_best(study, policy):
    study = study if policy == "bopt" else trained(policy="eqie")
    session, options = study._session, study.policy if policy == "bopt" else study.policy.levels
    next_run = NextRun.of(options, SPACE, session.history, session.ledger, generator_of(session.history))
    best = min(session.history.complete, key=lambda trial: trial.value)
    found = two_levels.numbers(session, "rate")
    X = SPACE.features(np.array([SPACE.encode({**best.config, "rate": rate}) for rate in found.x[0]]))
    levels, scale = next_run.levels, next_run.levels._scale
    for level, model in ((found.fast, levels.model.low), (found.complete, levels.model)):
        mean, variance = model.predict(X)
        in_units = (mean * scale.spread + scale.centre) * scale.unit
        np.testing.assert_allclose(level.mean, in_units, atol=0.02 * np.ptp(level.seen))  # it searches once more
        width = 1.96 * np.sqrt(variance) * scale.spread * scale.unit
        np.testing.assert_allclose(level.high - level.low, 2.0 * width, atol=0.05 * np.ptp(level.seen))


def test_what_was_seen_are_the_curves_where_the_fast_period_ended_and_where_all_did(study):
    found = two_levels.numbers(study._session, "rate")
    complete = [trial for trial in study.trials if trial.status.value in ("complete", "stopped")]
    assert sorted(found.complete.seen) == pytest.approx(sorted(min(trial.curve.values) for trial in complete))
    for rate, value in zip(found.fast.seen_at[0], found.fast.seen, strict=True):
        (trial,) = [trial for trial in study.trials if trial.config["rate"] == rate]
        assert value in np.minimum.accumulate(trial.curve.values)
        assert value >= min(trial.curve.values)


def test_a_study_that_maximises_shows_the_same_the_other_way_up(study):
    up = two_levels.numbers(trained(accuracy, maximize=True)._session, "rate")
    down = two_levels.numbers(study._session, "rate")
    assert np.max(up.complete.seen) == pytest.approx(1.0 - np.min(down.complete.seen), abs=0.05)
    assert np.all(up.complete.low <= up.complete.high)
    assert np.mean(up.complete.mean) > np.mean(up.fast.mean)


def test_two_parameters_are_a_map_in_which_the_first_one_runs_across(study):
    found = two_levels.numbers(study._session, "width", "rate")
    assert found.fast.mean.shape == (12, 25)
    best = min(study._session.history.complete, key=lambda trial: trial.value)
    line = two_levels.numbers(study._session, "rate")
    row = found.complete.mean[best.config["width"] - 1]
    np.testing.assert_allclose(row, np.interp(np.log(found.x[1]), np.log(line.x[0]), line.complete.mean), atol=0.02)
    shown = two_levels.draw(found).as_json()
    first = shown["data"][0]
    assert (len(first["z"]), len(first["z"][0])) == (25, 12)
    assert first["type"] == "contour"
    listed = two_levels.draw(two_levels.numbers(study._session, "kind", "width")).as_json()["data"][0]
    assert listed["type"] == "heatmap"


def test_where_nobody_names_any_it_is_the_number_that_matters(study):
    assert two_levels.numbers(study._session).axes[0].name == "rate"


def test_other_names_are_refused_and_studies_without_two_levels_say_so(study):
    with pytest.raises(InvalidArgument, match="one of the parameters"):
        two_levels.numbers(study._session, "depth")
    for names in (("rate", "width", "kind"), ("rate", "rate")):
        with pytest.raises(InvalidArgument, match="one or two different parameters"):
            two_levels.numbers(study._session, *names)
    with pytest.raises(InvalidArgument, match=r"only the policies bopt and eqie .* this study has random"):
        two_levels.numbers(tuned("random", 10)._session)
    with pytest.raises(NoTrial, match="no training is complete"):
        two_levels.numbers(ft.Study(SPACE, "9 evaluations", policy="bopt")._session)


def test_scaled_values_lead_back_to_the_values():
    trial = trained(evaluations=5)._session.history.trials[0]
    runs = [TrainingRun(trial, float(y), float(y) - 1.0, None, None) for y in (3.0, 5.0, 4.0, 8.0)]
    scale, y = Scale.of(runs, Modelling()), np.array([3.0, 4.0, 8.0])
    np.testing.assert_allclose(scale.inverse(scale(y)), y)
