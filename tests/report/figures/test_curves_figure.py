"""Curves, marks and predictions are those of the events and of the policy's model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NoTrial
from farthing.policies.thaw.runs import KnownCurves
from farthing.report.figures import curves
from farthing.report.figures.continuation import continuations
from farthing.surrogates.curves.network import weights
from farthing.trial import Status
from learners import STEPS, Alternating, Halving, iterative, learner, run_iterative, value_at
from studies import line_study


@pytest.fixture(scope="module")
def taking_turns():
    """Trainings that were paused after every second step."""
    return run_iterative(learner, ft.Budget(cost=12), policy=Alternating(stride=2))


def points(marks):
    return sorted(zip(marks.trial.tolist(), marks.step.tolist(), marks.value.tolist(), strict=True))


def test_every_curve_is_what_the_trial_reported(taking_turns):
    found = curves.numbers(taking_turns._session, 0.0)
    trials = [trial for trial in taking_turns.trials if len(trial.curve)]
    assert [(one.trial, tuple(one.value), one.step.tolist()) for one in found.curves] == [
        (trial.number, trial.curve.values, list(range(1, len(trial.curve) + 1))) for trial in trials
    ]
    assert (found.best, found.count) == (taking_turns.best.number, len(trials))


def test_marks_are_at_the_steps_where_runs_were_paused_and_resumed(taking_turns):
    """Every second step, but for the last: there a training is complete."""
    found = curves.numbers(taking_turns._session, 0.0)
    went_on = {trial.number: len(trial.curve) for trial in taking_turns.trials}
    config = {trial.number: trial.config for trial in taking_turns.trials}
    expected = [(n, s, value_at(config[n], s)) for n, steps in went_on.items() for s in (2, 4) if s < steps]
    assert points(found.marks["resumed"]) == sorted(expected)
    assert set(points(found.marks["paused"])) >= set(expected)
    assert {step for _, step, _ in points(found.marks["paused"])} <= set(range(1, STEPS))


def test_without_reading_events_the_last_marks_are_known(taking_turns, monkeypatch):
    monkeypatch.setattr(curves, "MOST_EVENTS", 0)
    found = curves.numbers(taking_turns._session, 0.0)
    at_rest = {trial.number: len(trial.curve) for trial in taking_turns.trials if trial.status is Status.PAUSED}
    assert {trial: step for trial, step, _ in points(found.marks["paused"])} == at_rest


def test_stops_are_marked_where_the_policy_stopped():
    study = run_iterative(learner, ft.Budget(cost=20), policy=Halving())
    found = curves.numbers(study._session, 0.0)
    stopped = [(t.number, len(t.curve), t.curve.values[-1]) for t in study.trials if t.status is Status.STOPPED]
    assert stopped
    assert points(found.marks["stopped"]) == sorted(stopped)


def test_failures_are_marked_and_values_keep_the_sign_of_the_user():
    study = iterative(policy=Alternating(stride=4), maximize=True)
    good, failed = study.ask(), study.ask()
    for value in (0.5, 0.7):
        study.report(good, value, cost=1.0)
    study.report(failed, 0.9, cost=1.0)
    study.tell(failed, failed="diverged")
    found = curves.numbers(study._session, 0.0)
    assert [one.value.tolist() for one in found.curves] == [[0.5, 0.7], [0.9]]
    assert points(found.marks["failed or killed"]) == [(1, 1, 0.9)]
    assert (found.best, found.maximize) == (0, True)


def test_a_paused_training_is_continued_as_the_network_predicts(taking_turns):
    found = continuations(taking_turns._session, 3, 60.0)
    history = taking_turns._session.history
    resting = sorted((t for t in history.trials if t.status is Status.PAUSED), key=lambda trial: trial.value)
    assert [one.trial for one in found] == [trial.number for trial in resting][:3]
    known = KnownCurves.of(taking_turns.space, history, weights(), 3)
    for one, trial in zip(found, resting, strict=False):
        assert (one.step[0], one.median[0], one.step[-1]) == (len(trial.curve), trial.value, STEPS)
        p = known.now.begun(np.array([known.row_of[trial.number]]), np.array([[float(STEPS)]]))
        assert one.median[-1] == pytest.approx(float(known.now.quantile(p, 0.5)[0, 0]))
        assert np.all((one.low <= one.median) & (one.median <= one.high))
        assert np.all(one.median <= trial.value + 1e-9)  # the best so far only gets better


def test_bapi_is_continued_by_its_own_process_and_upwards_where_values_are_maximised():
    def rising(config):
        return ({"value": -value_at(config, step), "cost": 1.0} for step in range(1, STEPS + 1))

    study = run_iterative(rising, ft.Budget(cost=20), policy="bapi", maximize=True)
    found = continuations(study._session, 3, 60.0)
    assert found
    for one in found:
        assert one.median[0] == study.trial(one.trial).value
        assert np.all(one.low <= one.median)
        assert np.all(one.median <= one.high)
        assert np.all(np.diff(one.median) >= -1e-6)


def test_without_time_there_are_no_predictions_and_the_curves_are_drawn(taking_turns):
    assert curves.numbers(taking_turns._session, 0.0).continued == []


def test_plain_objectives_have_no_curves():
    study = line_study()
    study.tell(study.ask(), value=1.0)
    with pytest.raises(NoTrial, match="yield"):
        curves.numbers(study._session)


def test_of_very_many_trainings_sixty_are_drawn_and_the_best_is_among_them():
    study = iterative(ft.Budget(cost=1e9), policy="random")
    rng = np.random.default_rng(0)
    for number in range(150):
        study.add({"x": number / 150}, curve=[(v := float(rng.random())) + 1.0, *[v] * 5])
    found = curves.numbers(study._session, 0.0)
    assert (len(found.curves), found.count) == (60, 150)
    ends = sorted(trial.value for trial in study.trials)
    assert sorted(one.value[-1] for one in found.curves)[:30] == ends[:30]
    assert "60 of 150" in curves.draw(found).caption


def test_a_long_curve_keeps_its_peaks_and_its_ends():
    y = np.random.default_rng(0).normal(size=100_000)
    y[70_001] = 99.0
    drawn = curves._drawn(0, y)
    assert len(drawn.step) <= 203
    assert {1, 70_002, 100_000} <= set(drawn.step.tolist())


def test_curves_are_separate_lines_of_one_trace(taking_turns):
    found = curves.numbers(taking_turns._session, 0.0)
    drawing = curves.draw(replace(found, best=None))
    x = np.array(drawing.traces[0]["x"])
    assert int(np.isnan(x).sum()) == len(found.curves) - 1
    best = curves.draw(found).traces
    assert f"best: trial {found.best}" in [trace["name"] for trace in best]
