"""The slider of fronts and the implied alphas, against what the study itself says of them."""

from __future__ import annotations

import numpy as np
import pytest
from model_studies import SPACE, cost_of, tuned, value_of

import farthing as ft
from farthing.acquisitions.pareto import alpha_interval
from farthing.errors import NoTrial
from farthing.policies.named import UnknownPolicy
from farthing.policies.pareto import landscape_of
from farthing.policies.quick_fronts import quick_models
from farthing.report.figures import implied_alpha, pareto
from farthing.report.fronts import Fronts, coarse_to_fine, fronts_of
from farthing.study_view import OpenedStudy


@pytest.fixture(scope="module")
def study():
    return tuned()


@pytest.fixture(scope="module")
def found(study):
    return pareto.numbers(study._session)


def test_there_is_a_front_for_each_trial_that_a_model_chose_and_one_for_now(study, found):
    asked = [implied for implied in range(len(study.trials)) if study.trials[implied].reason.startswith("cheapest")]
    assert [step.trial for step in found.steps] == [*asked, None]


def test_each_front_rises_and_has_the_picks_of_the_four(found):
    for step in found.steps:
        assert np.all(np.diff(step.cost) > 0.0)
        assert np.all(np.diff(step.improvement) > 0.0)
        assert set(step.picks) == set(pareto.MARKS)
        assert step.picks["EI"][1] == pytest.approx(step.improvement.max())
        assert step.picks["CEI"][0] <= step.picks["EI"][0] * (1 + 1e-9)
        assert len(step.texts) == len(step.cost)


def test_the_points_of_the_front_before_are_where_the_models_of_then_have_them(study, found):
    fronts = fronts_of(study._session).at_most(study._session, pareto.MOST, np.inf)
    moments = {moment.trial: moment for moment in study._session.record.moments.kept}
    for step, last, then in zip(found.steps[1:], fronts[:-1], fronts[1:], strict=True):
        moment = moments.get(then.trial)
        state = study._session.record.state if moment is None else moment.state
        fits = {} if moment is None else moment.asked.proposal.fits
        log_cost, log_ei = landscape_of(quick_models(state, study.policy, fits, {})).at(last.front.U)
        np.testing.assert_allclose(step.moved, [np.exp(log_cost), np.exp(np.maximum(log_ei, -600.0))])
        np.testing.assert_allclose(step.before[0], np.exp(last.front.log_cost))
    assert found.steps[0].before is found.steps[0].moved is None


def test_one_position_of_the_slider_shows_one_front(found):
    shown = pareto.draw(found).as_json()
    (slider,) = shown["layout"]["sliders"]
    assert [step["label"] for step in slider["steps"]] == [*(str(step.trial) for step in found.steps[:-1]), "next"]
    assert slider["active"] == len(found.steps) - 1
    for step, position in zip(found.steps, slider["steps"], strict=True):
        visible = position["args"][0]["visible"]
        traces = [trace for trace, is_shown in zip(shown["data"], visible, strict=True) if is_shown]
        front = next(trace for trace in traces if trace["name"] == "front")
        np.testing.assert_allclose(front["x"], step.cost)
        assert [trace["name"] for trace in traces] == [
            "the front before", "its points, moved", "front", "EI", "EIpu", "EI-cool", "CEI",
        ]  # fmt: skip
    assert [trace["visible"] for trace in shown["data"]] == slider["steps"][-1]["args"][0]["visible"]


def test_without_time_the_front_of_now_is_still_there_and_a_later_look_has_more(study):
    session = tuned("cei", 9)._session
    assert [step.trial for step in pareto.numbers(session, seconds=0.0).steps] == [None]
    some = fronts_of(session)
    assert len(some.at_most(session, 25, np.inf)) > 2
    assert len(some.at_most(session, 25, 0.0)) == len(some.at_most(session, 25, np.inf))  # each is computed once


def test_at_most_25_fronts_are_shown_and_the_last_is_of_now():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=1e6), policy="random", seed=0)
    for _ in range(70):
        proposal = study.ask()
        study.tell(proposal, value=(proposal.config["x"] - 0.3) ** 2, cost=1.0 + proposal.config["x"])
    fronts = Fronts().at_most(study._session, 25, np.inf)
    trials = [then.trial for then in fronts]
    assert 12 < len(trials) <= 25
    assert trials[-1] is None
    assert len(set(np.diff(trials[:-1]))) == 1


def test_the_front_of_one_trial_is_the_exact_one(study):
    exact, last = study.pareto(12), study.persistence(11, 12)
    (step,) = pareto.numbers_at(study._session, 12).steps
    np.testing.assert_allclose(step.cost, np.exp(exact.log_cost))
    np.testing.assert_allclose(step.moved[0], np.exp(last.log_cost))
    assert "sliders" not in pareto.draw(pareto.numbers_at(study._session, 12)).layout


def test_a_study_without_costs_or_values_says_what_is_missing():
    with pytest.raises(NoTrial, match="cost of at least 1 trial"):
        pareto.numbers(tuned("ei", 8, cost=False)._session)
    with pytest.raises(NoTrial, match="2 complete trials, got 1"):
        pareto.numbers(tuned(trials=1)._session)


@pytest.mark.parametrize("policy", ["random", "bopt"])
def test_any_policy_has_fronts(policy):
    study = tuned("random", 10, maximize=True, fail=(2,))
    if policy == "bopt":
        study = ft.tune(_train, SPACE, "14 evaluations", policy="bopt", seed=0, max_steps=5, progress=False)
    assert len(pareto.numbers(study._session).steps) >= 1


def _train(config):
    for step in range(1, 6):
        yield {"value": value_of(config) + 1.0 / step, "cost": cost_of(config) / 5}


def test_the_study_of_a_policy_that_is_not_known_here_has_fronts(tmp_path):
    class Own:
        name = "own"

        def propose(self, space, history, ledger, n, rng):
            return [ft.Proposal(len(history.trials) + i, space.decode(rng.random(len(space)))) for i in range(n)]

    path = str(tmp_path / "own.db")
    study = tuned(Own(), 9, storage=path)
    study.close()
    opened = OpenedStudy(path)
    assert isinstance(opened.policy, UnknownPolicy)
    mine, theirs = pareto.numbers(study._session), pareto.numbers(opened._session)
    for a, b in zip(mine.steps, theirs.steps, strict=True):
        np.testing.assert_array_equal(a.cost, b.cost)


def test_the_intervals_of_alpha_are_those_of_the_fronts(study):
    found = implied_alpha.numbers(study._session)
    fronts = fronts_of(study._session).at_most(study._session, 64, np.inf)
    assert found.trial.tolist() == [*(then.trial for then in fronts[:-1]), len(study.trials)]
    for then, low, high in zip(fronts, found.low, found.high, strict=True):
        pick = then.front.picks["CEI"]
        c, e = np.append(then.front.log_cost, pick.log_cost), np.append(then.front.log_ei, pick.log_ei)
        interval = alpha_interval(c, e, len(c) - 1, 1e-3) or (np.nan, np.nan)
        np.testing.assert_allclose(np.minimum([low, high], 1e6), np.minimum(interval, 1e6), atol=0.02)
    assert np.all(found.alpha >= 0.0)


def test_an_interval_without_end_and_a_missing_one_are_drawn_in_their_own_ways():
    given = implied_alpha.ImpliedAlphas(
        np.array([5, 6, 7]), np.array([0.5, np.nan, 1.0]), np.array([1.5, np.nan, np.inf]), np.array([1.0, 0.7, 1.0])
    )
    bars, rings = implied_alpha.draw(given).as_json()["data"]
    assert (bars["x"], bars["base"]) == ([5, 7], [0.5, 1.0])
    assert bars["y"][0] == pytest.approx(1.0)
    assert bars["text"] == ["alpha from 0.5 to 1.5", "alpha from 1 to any larger one"]
    assert (rings["x"], rings["y"]) == ([6], [0.7])


def test_from_coarse_to_fine_nothing_is_left_out():
    for count in range(40):
        assert sorted(coarse_to_fine(range(count))) == list(range(count))
