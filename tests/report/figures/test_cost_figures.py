"""What figures of cost draw is what the trials and the ledger say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NoTrial
from farthing.policies.cost_models import chosen_cost_model
from farthing.report.figures import budget_use, cost_per_trial, predicted_cost
from farthing.report.phases import Phase, phase_of
from farthing.trial import Status
from learners import learner, run_iterative
from studies import BOOSTER, LINE, line_study, tell_truth


@pytest.fixture(scope="module")
def carbo():
    """A study of 20 trials that was begun with one configuration, and of which some failed."""
    start = [{"eta": 0.01, "depth": 3, "booster": "dart", "drop": 0.1}]
    study = ft.Study(BOOSTER, ft.Budget(cost=5), policy="carbo", seed=0, start=start)
    for _ in range(20):
        tell_truth(study, study.ask())
    return study


class TestCostPerTrial:
    def test_every_paid_trial_is_drawn_with_its_cost(self, carbo):
        found = cost_per_trial.numbers(carbo._session)
        assert found.number.tolist() == list(range(20))
        assert found.cost.tolist() == [trial.cost for trial in carbo.trials]
        assert found.unit == "cost"

    def test_phases_follow_each_other_as_the_policy_says(self, carbo):
        phases = cost_per_trial.numbers(carbo._session).phase
        assert phases[0] is Phase.GIVEN
        expected = [Phase.DESIGN if "initial design" in trial.reason else Phase.MODEL for trial in carbo.trials[1:]]
        assert phases[1:] == expected
        assert {Phase.DESIGN, Phase.MODEL} <= set(phases)

    def test_failed_trials_are_marked_at_their_own_places(self, carbo):
        drawing = cost_per_trial.draw(cost_per_trial.numbers(carbo._session))
        marks = next(trace for trace in drawing.traces if trace["name"] == "failed")
        failed = [trial.number for trial in carbo.trials if trial.status is Status.FAILED]
        assert failed
        assert list(marks["x"]) == failed

    def test_the_points_of_all_phases_together_are_the_trials(self, carbo):
        drawing = cost_per_trial.draw(cost_per_trial.numbers(carbo._session))
        of_phases = [trace for trace in drawing.traces if trace["name"] in list(Phase)]
        assert sorted(np.concatenate([trace["x"] for trace in of_phases]).tolist()) == list(range(20))

    def test_the_median_is_that_of_the_neighbours(self, carbo):
        found = cost_per_trial.numbers(carbo._session)
        assert found.median[10] == np.median(found.cost[8:13])

    def test_trials_of_other_studies_were_not_paid_for(self):
        study = line_study()
        study.add({"x": 0.5}, value=1.0, cost=7.0)
        with pytest.raises(NoTrial, match="cost of no trial"):
            cost_per_trial.numbers(study._session)
        study.tell(study.ask(), value=1.0, cost=2.0)
        assert cost_per_trial.numbers(study._session).cost.tolist() == [2.0]

    def test_one_trial_is_a_point(self):
        study = line_study()
        study.tell(study.ask(), failed="no", cost=0.0)
        drawing = cost_per_trial.draw(cost_per_trial.numbers(study._session))
        assert [trace["name"] for trace in drawing.traces] == ["chosen without a model", "failed"]
        assert "type" not in drawing.layout["yaxis"]  # a cost of 0 is on no log axis

    def test_fifty_thousand_trials_are_thinned_and_the_most_expensive_stays(self):
        rng = np.random.default_rng(0)
        count, cost = 50_000, rng.lognormal(size=50_000)
        cost[31_003] = 1e6
        status = [Status.FAILED if i % 3 == 0 else Status.COMPLETE for i in range(count)]
        none = np.empty(0)
        found = cost_per_trial.CostPerTrial(np.arange(count), cost, [Phase.MODEL] * count, status, "cost", none, none)
        traces = {trace["name"]: trace for trace in cost_per_trial.draw(found).traces}
        assert len(traces[Phase.MODEL]["x"]) <= 2_000
        assert 31_003 in traces[Phase.MODEL]["x"]
        assert len(traces["failed"]["x"]) <= 500


@pytest.mark.parametrize(
    ("reason", "policy", "phase"),
    [
        ("given by start", "carbo", Phase.GIVEN),
        ("asked for by request", "carbo", Phase.GIVEN),
        ("carbo: initial design: cheap and far from earlier trials", "auto", Phase.DESIGN),
        ("warm start: good and cheap in earlier studies", "carbo", Phase.TAKEN_OVER),
        ("thaw: drawn without a model: there was no time to think", "auto", Phase.NO_MODEL),
        ("finishing the best: too little is left for another run", "auto", Phase.FINISHING),
        ("resumed at step 3: largest expected improvement, by step 9", "thaw", Phase.MODEL),
        ("drawn at random", "random", Phase.NO_MODEL),
        ("my own idea", "mine", Phase.OTHER),
        ("", "carbo", Phase.OTHER),
    ],
)
def test_a_reason_tells_the_phase(reason, policy, phase):
    study = line_study()
    study.ask()
    trial = replace(study._session.history.trials[0], reason=reason)
    assert phase_of(trial, policy) is phase


class TestBudgetUse:
    def test_the_parts_are_the_accounts_and_add_up_to_the_limit(self, carbo):
        (use,) = budget_use.numbers(carbo._session).units
        amounts = dict(zip(use.parts, use.amount.tolist(), strict=True))
        by_status = {
            status: math.fsum(trial.cost for trial in carbo.trials if trial.status is status)
            for status in (Status.COMPLETE, Status.FAILED)
        }
        assert amounts["evaluation"] == pytest.approx(by_status[Status.COMPLETE])
        assert amounts["failed trials"] == pytest.approx(by_status[Status.FAILED])
        assert use.amount.sum() == pytest.approx(5.0)
        assert use.share.sum() == pytest.approx(1.0)
        assert use.parts[-1] == "remaining"

    def test_what_running_trials_were_promised_is_not_called_remaining(self):
        study = ft.Study(LINE, ft.Budget(cost=10), policy="carbo", seed=0, known_cost=lambda config: 4.0)
        study.ask()
        study.tell(study.ask(), value=1.0, cost=4.0)
        (use,) = budget_use.numbers(study._session).units
        amounts = dict(zip(use.parts, use.amount.tolist(), strict=True))
        assert amounts == pytest.approx({"evaluation": 4.0, "promised to running trials": 4.0, "remaining": 2.0})

    def test_each_limited_unit_has_bars_and_a_button(self):
        study = line_study(ft.Budget(cost=10, evaluations=4))
        study.tell(study.ask(), value=1.0, cost=2.5)
        found = budget_use.numbers(study._session)
        assert [(use.unit, use.share.tolist()) for use in found.units] == [
            ("cost", [0.25, 0.75]),
            ("evaluations", [0.25, 0.75]),
        ]
        drawing = budget_use.draw(found)
        assert [trace["visible"] for trace in drawing.traces] == [True, False]
        buttons = drawing.layout["updatemenus"][0]["buttons"]
        assert [button["args"][0]["visible"] for button in buttons] == [[True, False], [False, True]]
        assert drawing.traces[0]["text"] == ["2.5 cost (25.0%)", "7.5 cost (75.0%)"]

    def test_what_exceeds_the_budget_is_more_than_all_of_it(self):
        study = line_study(ft.Budget(cost=2))
        study.tell(study.ask(), value=1.0, cost=3.0)
        (use,) = budget_use.numbers(study._session).units
        assert (use.share.tolist(), use.amount.tolist()) == ([1.5, 0.0], [3.0, 0.0])

    def test_before_anything_is_spent_there_is_nothing_to_draw(self):
        with pytest.raises(NoTrial, match="nothing was spent"):
            budget_use.numbers(line_study()._session)


class TestPredictedCost:
    def test_pairs_are_those_of_the_trials(self, carbo):
        found = predicted_cost.numbers(carbo._session, 0.0)
        pairs = {t.number: (t.predicted_cost, t.cost) for t in carbo.trials if t.predicted_cost is not None}
        drawn = zip(found.trial.tolist(), found.predicted.tolist(), found.actual.tolist(), strict=True)
        assert {trial: (predicted, actual) for trial, predicted, actual in drawn} == pairs
        failed = {trial.number for trial in carbo.trials if trial.status is Status.FAILED}
        assert set(found.trial[~found.whole].tolist()) == failed & set(pairs)
        assert np.isnan(found.low).all()  # there was no time

    def test_the_band_holds_nine_of_ten_ratios_and_the_factor_half(self, carbo):
        found = predicted_cost.numbers(carbo._session, 0.0)
        ratio = (found.actual / found.predicted)[found.whole]
        low, high = found.band
        assert np.mean((ratio >= low) & (ratio <= high)) == pytest.approx(0.9, abs=1 / len(ratio))
        error = np.maximum(ratio, 1.0 / ratio)
        assert np.mean(error <= found.factor * (1 + 1e-9)) == pytest.approx(0.5, abs=1 / len(ratio))

    def test_an_interval_is_what_the_cost_model_believed_when_it_was_asked(self, carbo):
        """By fitting the model from scratch, as the asks of some trials did."""
        found = predicted_cost.numbers(carbo._session)
        for row in np.flatnonzero(found.whole)[::4]:
            number = int(found.trial[row])
            seen = carbo._session.record.before(number).history
            model, _ = chosen_cost_model(BOOSTER, seen)
            mean, variance = model.predict(BOOSTER.features(BOOSTER.encode(carbo.trial(number).config)[None, :]))
            half = 1.6449 * math.sqrt(variance[0])
            assert math.log(found.predicted[row]) == pytest.approx(mean[0])
            assert math.log(found.high[row] / found.predicted[row]) == pytest.approx(half, rel=1e-3)
            assert found.low[row] * found.high[row] == pytest.approx(found.predicted[row] ** 2)

    def test_most_costs_are_inside_their_intervals(self, carbo):
        inside, known = predicted_cost.numbers(carbo._session).covered
        assert known >= 15
        assert inside / known > 0.7

    def test_a_training_is_compared_over_the_stretch_that_was_predicted(self):
        study = run_iterative(learner, policy="thaw")
        found = predicted_cost.numbers(study._session)
        for number, actual in zip(found.trial.tolist(), found.actual.tolist(), strict=True):
            trial = study._history.trials[number]
            assert actual == math.fsum(trial.curve.costs[trial.from_step : len(trial.curve)])
            assert len(trial.curve) == (trial.until_step or 6) or trial.status is Status.COMPLETE

    def test_a_policy_that_predicts_nothing_has_no_such_figure(self):
        study = line_study()
        study.tell(study.ask(), value=1.0, cost=2.0)
        with pytest.raises(NoTrial, match="had been predicted"):
            predicted_cost.numbers(study._session)

    def test_fifty_thousand_trials_are_thinned(self):
        count = 50_000
        cost, unknown = np.linspace(1.0, 9.0, count), np.full(count, np.nan)
        whole = np.arange(count) % 2 == 0
        found = predicted_cost.PredictedCost(
            np.arange(count), cost, 2 * cost, whole, unknown, unknown, (1.5, 2.5), "usd"
        )
        drawing = predicted_cost.draw(found)
        assert all(len(trace["x"]) <= 2_000 for trace in drawing.traces)
        drawn = drawing.traces[0]
        assert np.allclose(np.array(drawn["y"]) / np.array(drawn["x"]), [1.5, 1.5, 2.5, 2.5])
