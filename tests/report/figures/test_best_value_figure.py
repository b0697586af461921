"""The staircase is what the events say: after which spending there was which best value."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NoTrial
from farthing.record.glance import glance
from farthing.report.figures import best_value
from learners import Alternating, iterative, learner, run_iterative
from studies import line_study


def told(budget, *results, **options):
    """A study of these values and costs; a text is an error."""
    study = line_study(budget, **options)
    for value, cost in results:
        proposal = study.ask()
        said = {"failed": value} if isinstance(value, str) else {"value": value}
        study.tell(proposal, **said, cost=cost)
    return study


def steps(study):
    found = best_value.numbers(study._session).steps
    return list(zip(found.spent.tolist(), found.value.tolist(), found.trial.tolist(), strict=True))


def test_there_is_a_step_for_each_improvement_and_a_point_where_the_study_is_now():
    study = told(ft.Budget(cost=100), (5.0, 1.0), ("out of memory", 2.0), (7.0, 4.0), (3.0, 8.0), (4.0, 16.0))
    assert steps(study) == [(1.0, 5.0, 0), (15.0, 3.0, 3), (31.0, 3.0, 3)]


def test_values_that_are_maximised_rise():
    study = told(ft.Budget(cost=100), (5.0, 1.0), (7.0, 2.0), (6.0, 4.0), maximize=True)
    assert steps(study) == [(1.0, 5.0, 0), (3.0, 7.0, 1), (7.0, 7.0, 1)]


def test_known_results_are_there_for_nothing():
    study = line_study(ft.Budget(cost=100))
    study.add({"x": 0.5}, value=2.0, cost=50.0)
    study.tell(study.ask(), value=1.0, cost=3.0)
    assert steps(study) == [(0.0, 2.0, 0), (3.0, 1.0, 1), (3.0, 1.0, 1)]


def test_where_only_evaluations_are_limited_they_are_counted_and_costs_need_not_be_known():
    study = line_study("5 evaluations")
    for value in (3.0, 4.0, 2.0):
        study.tell(study.ask(), value=value)
    found = best_value.numbers(study._session)
    assert (found.unit, found.limit) == ("evaluations", 5.0)
    assert steps(study) == [(1.0, 3.0, 0), (3.0, 2.0, 2), (3.0, 2.0, 2)]


@pytest.mark.parametrize("results", [[], [("out of memory", 1.0), ("again", 1.0)]])
def test_without_a_value_there_is_nothing_to_draw(results):
    with pytest.raises(NoTrial, match="no trial has a value yet"):
        best_value.numbers(told(ft.Budget(cost=9), *results)._session)


def test_an_iterative_learner_improves_at_its_reports_and_not_at_its_end(tmp_path):
    """Of a training that was paused, the first value was there long before its last."""
    study = run_iterative(learner, storage=tmp_path / "s.db")
    drawn = best_value.numbers(study._session).steps
    spent, best, expected = 0.0, np.inf, []
    for event in study._session.record.past():
        for amounts in getattr(event, "charges", {}).values():
            spent += amounts.get("cost", 0.0)
        if hasattr(event, "report") and event.report.value < best:
            best = event.report.value
            expected.append((spent, best, event.trial))
    assert list(zip(drawn.spent[:-1], drawn.value[:-1], drawn.trial[:-1], strict=True)) == expected
    with ft.Study.open(tmp_path / "s.db") as opened:
        assert steps(opened) == steps(study)


def test_a_trial_that_failed_after_its_reports_counts_for_nothing():
    study = iterative(policy=Alternating(stride=3))
    first, second = study.ask(), study.ask()
    study.report(first, 5.0, cost=1.0)
    study.report(second, 1.0, cost=1.0)
    assert steps(study)[-1] == (2.0, 1.0, 1)
    study.tell(second, failed="diverged")
    study.report(first, 4.0, cost=2.0)
    assert steps(study) == [(1.0, 5.0, 0), (4.0, 4.0, 0), (4.0, 4.0, 0)]


def test_fifty_thousand_improvements_are_thinned_to_a_staircase_of_the_same_ends():
    count = 50_000
    found = best_value.BestValue(
        best_value.Steps(np.arange(count, dtype=float), np.linspace(9.0, 1.0, count), np.arange(count)),
        "cost",
        6e4,
        False,
    )
    drawing = best_value.draw(found)
    x, y = np.array(drawing.traces[0]["x"]), np.array(drawing.traces[0]["y"])
    assert len(x) <= 2_000
    assert (x[0], x[-1], y[0], y[-1]) == (0.0, count - 1, 9.0, 1.0)
    assert drawing.layout["shapes"][0]["x0"] == 6e4


def test_a_glance_at_a_file_draws_the_same_staircase_where_all_costs_are_those_of_trials(tmp_path):
    told(ft.Budget(cost=100), (5.0, 1.0), (7.0, 4.0), (3.0, 8.0), storage=tmp_path / "s.db").close()
    glanced = best_value.at_a_glance(glance(tmp_path / "s.db"))
    with ft.Study.open(tmp_path / "s.db") as study:
        whole = best_value.numbers(study._session)
    assert (glanced.unit, glanced.limit, glanced.maximize) == (whole.unit, whole.limit, whole.maximize)
    assert list(zip(glanced.steps.spent, glanced.steps.value, strict=True)) == [(1.0, 5.0), (5.0, 5.0), (13.0, 3.0)]
    drawn = best_value.draw(glanced).traces[0]
    assert set(drawn["text"]) == {""}
