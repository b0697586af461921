"""Policy `thaw`: what it proposes next, how far it trains, and what it makes of runs that are not over."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.budget import Ledger
from farthing.errors import InvalidArgument, StudyMismatch
from farthing.history import History, Way
from farthing.policies import Thaw
from farthing.policies.candidates import FreshSpace
from farthing.policies.sampling import NO_TIME, SPREAD
from farthing.policies.thaw.policy import ANCHORS, CLEAR, MOST_PERIODS, TOO_LITTLE_LEFT, _Chooser
from farthing.policies.thaw.runs import APART, HORIZONS, MOST_CURVES, Expected, KnownCurves, stops_of
from farthing.record.events import Dropped
from farthing.surrogates.curves.network import EDGES, weights
from histories import after
from learners import proposals_of, train_steps
from stored_events import change

SPACE = ft.Space(
    rate=ft.Real(1e-4, 1.0, log=True), width=ft.Integer(8, 256, log=True), drop=ft.Real(0.0, 0.5), mix=ft.Real(0, 1)
)
STEPS = 20
PERIOD = 1  # steps, a twentieth


def value_at(config: dict[str, Any], step: int) -> float:
    """Decays to an end that depends on all of the configuration, slower far from the best rate."""
    u = SPACE.encode(config)
    end = 0.05 + 0.9 * float(np.sum((u - np.array([0.7, 0.4, 0.3, 0.6])) ** 2 * [1.0, 0.6, 0.6, 0.6]))
    return end + 0.8 * math.exp(-step / (2.0 + 6.0 * abs(u[0] - 0.7)))


def step_cost(config: dict[str, Any]) -> float:
    return math.sqrt(config["width"] / 64.0)


def train(study: ft.Study, proposal: ft.Proposal) -> None:
    train_steps(study, proposal, value_at, step_cost)


def new_study(policy: Any = "thaw", cost: float = 1e4, seed: int = 0, **options: Any) -> ft.Study:
    return ft.Study(SPACE, ft.Budget(cost=cost), policy=policy, seed=seed, max_steps=STEPS, **options)


def searched(policy: Any = "thaw", cost: float = 1e4, seed: int = 0, asks: int | None = None) -> ft.Study:
    study = new_study(policy, cost, seed)
    for proposal in islice(proposals_of(study), asks):
        train(study, proposal)
    return study


@pytest.fixture(scope="module")
def begun() -> ft.Study:
    """A study some way into its budget."""
    return searched(asks=24)


def ledger_of(cost: float) -> Ledger:
    return Ledger(ft.Budget(cost=cost))


def chooser_for(history: History, ledger: Ledger, policy: Thaw | None = None, seed: int = 0) -> _Chooser:
    found = _Chooser.of(
        policy or Thaw(), SPACE, history, ledger, FreshSpace(SPACE, history), np.random.default_rng(seed)
    )
    assert found is not None
    return found


def proposed(history: History, ledger: Ledger, n: int = 1, policy: Thaw | None = None) -> list[ft.Proposal]:
    return (policy or Thaw()).propose(SPACE, history, ledger, n, np.random.default_rng(0))


def gain_of(p: np.ndarray) -> float:
    """E max(-u, 0) for probabilities p (buckets,), by a fine sum over each bucket."""
    inside = (np.arange(500) + 0.5) / 500
    u = EDGES[:-1, None] + np.diff(EDGES)[:, None] * inside  # (buckets, 500)
    return float(p @ np.maximum(-u, 0.0).mean(axis=1))


def by_the_rule(chooser: _Chooser, left: float, alpha: float) -> tuple[float, int | None, np.ndarray, int]:
    """Utility, trial (None for a new one), place and horizon of the best pair of a candidate and a horizon."""
    found, known = chooser._candidates(), chooser.known
    best: tuple[float, int | None, np.ndarray, int] = (-math.inf, None, np.empty(0), 0)
    for i, trial in enumerate(found.trials):
        step, per_step, start = found.step[i], math.exp(found.log_cost[i]), found.start[i]
        payable = math.floor((left - start) / per_step)
        for share in HORIZONS:
            stop = int(min(step + max(round(share * STEPS), 1), STEPS, step + payable))
            if stop <= step:
                continue
            at = np.array([[float(stop)]])
            row = None if trial is None else np.array([known.row_of[trial.number]])
            p = known.outlook.new(found.X[[i]], at) if row is None else known.outlook.begun(row, at)
            cost = per_step * (stop - step) + start
            utility = math.log(gain_of(p[0, 0])) - alpha * math.log(cost)
            if utility > best[0]:
                best = (utility, None if trial is None else trial.number, found.U[i], stop)
    return best


class TestRule:
    @pytest.mark.parametrize(("alpha", "left"), [(0.5, 1e3), (0.5, 4.0), (0.0, 1e3), (1.0, 1e3)])
    def test_the_next_run_is_the_one_of_largest_utility(self, begun, alpha, left):
        """log EI - alpha log(cost), over new configurations and paused runs at every horizon that can be paid for."""
        history = begun._history
        ledger, policy = ledger_of(left), Thaw(alpha=alpha)
        proposal = chooser_for(history, ledger, policy).next_proposal(99)
        _, number, place, horizon = by_the_rule(chooser_for(history, ledger, policy), left, alpha)
        assert proposal is not None
        assert proposal.trial == (99 if number is None else number)
        np.testing.assert_allclose(SPACE.encode(proposal.config), place, atol=1e-9)
        assert proposal.until_step == min(horizon, proposal.start_step + PERIOD)
        assert proposal.reason.endswith(f"by step {horizon}")

    def test_a_paused_run_is_priced_at_its_own_cost(self, begun):
        found = chooser_for(begun._history, ledger_of(1e3))._candidates()
        resting = [(i, trial) for i, trial in enumerate(found.trials) if trial is not None]
        assert len(resting) == begun.count(ft.Status.PAUSED) > 0
        for i, trial in resting:
            assert math.exp(found.log_cost[i]) == pytest.approx(step_cost(trial.config))

    @pytest.mark.parametrize("per_ask", [0.0, 0.1, 2.0, 1e9])
    def test_where_asks_cost_runs_are_trained_longer(self, begun, per_ask):
        """Four times as much training as thinking; never beyond the horizon."""
        history = begun._history
        ledger = ledger_of(1e12).charged({"optimiser": {"cost": per_ask * history.asks}})
        proposal = chooser_for(history, ledger).next_proposal(99)
        horizon = int(re.search(r"by step (\d+)", proposal.reason)[1])
        steps = proposal.until_step - proposal.start_step
        cost = proposal.predicted_cost / steps
        wanted = max(PERIOD, math.ceil(min(4.0 * per_ask / cost, STEPS)))
        assert steps == min(wanted, horizon - proposal.start_step)

    @pytest.mark.parametrize("cheap", ["small", "large"])
    def test_of_two_that_promise_the_same_the_cheaper_comes_first(self, cheap):
        """An option that changes nothing but the cost, twentyfold."""
        space = ft.Space(rate=ft.Real(0, 1), size=ft.Choice(["small", "large"]))
        study = ft.Study(space, ft.Budget(cost=1e6), policy=Thaw(initial=6, alpha=1.0), seed=0, max_steps=STEPS)
        sizes = []
        for proposal in islice(proposals_of(study), 26):
            size, off = proposal.config["size"], (proposal.config["rate"] - 0.3) ** 2
            sizes += [] if proposal.reason == SPREAD else [size]
            for step in range(proposal.start_step + 1, proposal.until_step + 1):
                study.report(proposal, 0.1 + off + math.exp(-step / 5.0), cost=1.0 if size == cheap else 20.0)
        assert len(sizes) == 20
        assert sizes.count(cheap) >= 16

    def test_what_is_nearly_begun_is_not_begun_again(self, begun):
        """Nor what is nearly planned by the same ask; unless there is nothing else."""
        chooser = chooser_for(begun._history, ledger_of(1e3))
        begun_at = np.array([trial.unit for trial in begun._history.trials])
        for _ in range(4):
            found = chooser._candidates()
            new = np.array([u for u, trial in zip(found.U, found.trials, strict=True) if trial is None])
            apart = np.sqrt(np.square(new[:, None] - begun_at[None]).mean(axis=-1))
            assert apart.min() >= APART
            proposal = chooser.next_proposal(99)
            begun_at = np.append(begun_at, SPACE.encode(proposal.config)[None], axis=0)
            chooser = chooser.with_running(proposal)
        near = begun_at[:3] + 0.01
        assert np.array_equal(chooser.known.apart(near), near)

    def test_the_reason_is_in_words(self, begun):
        reasons = {trial.reason for trial in begun._history.trials}
        pattern = (
            rf"{SPREAD}|(a new configuration|resumed at step \d+): "
            r"largest expected improvement per cost(\^0(\.\d+)?)?, by step "
        )
        assert all(re.match(pattern, reason) for reason in reasons)
        hurried = replace(begun._history, way=Way.NONE)
        assert [proposal.reason for proposal in proposed(hurried, ledger_of(1e3))] == [NO_TIME]


class TestRuns:
    def test_a_design_comes_first(self):
        study = new_study()
        first = study.ask(3)
        assert {(p.reason, p.start_step, p.until_step) for p in first} == {(SPREAD, 0, PERIOD)}

    def test_paused_runs_are_resumed_for_a_few_periods_at_most(self):
        study, resumed = new_study(cost=60.0), 0
        for proposal in proposals_of(study):
            assert 0 < proposal.until_step - proposal.start_step <= MOST_PERIODS * PERIOD
            if proposal.start_step:
                assert proposal.start_step == len(study.trial(proposal.trial).curve)
                resumed += 1
            train(study, proposal)
        assert resumed >= 5
        assert study.count(ft.Status.COMPLETE) >= 1
        assert study.count(ft.Status.PAUSED) >= 1

    def test_where_short_trainings_tell_little_they_are_longer(self):
        """Curves that stay at chance for a third of a training, some of which fall then, beside curves that fall from
        the first step on by what they will end with."""
        rng = np.random.default_rng(0)

        def late(config: dict[str, Any], step: int) -> float:
            return 1.0 + 0.03 * rng.standard_normal() - 0.9 * (config["mix"] > 0.7) * (step > 13)

        asked = {}
        for name, curve in (("late", late), ("clear", lambda config, step: value_at(config, 6 * step))):
            study = ft.Study(SPACE, ft.Budget(cost=1e4), policy="thaw", seed=0, max_steps=40)
            for proposal in islice(proposals_of(study), 12):
                train_steps(study, proposal, curve, step_cost)
            chooser = chooser_for(study._history, ledger_of(1e4))
            asked[name] = chooser._period(0.0)
            assert asked[name] == round(min(max(CLEAR / chooser.known.clarity, 1.0), MOST_PERIODS) * 0.05 * 40)
        assert asked["clear"] == 2
        assert asked["late"] >= 5

    @pytest.mark.parametrize("period", [0.05, 0.3, 1.0])
    def test_the_period_is_an_option(self, begun, period):
        (proposal,) = proposed(begun._history, ledger_of(1e3), policy=Thaw(period=period))
        assert proposal.until_step - proposal.start_step <= max(round(period * STEPS), 1)

    @pytest.mark.parametrize("left", [0.7, 1.0, 2.5, 10.0])
    def test_what_the_rest_of_the_budget_cannot_pay_for_is_not_proposed(self, begun, left):
        for proposal in proposed(begun._history, ledger_of(left)):
            assert proposal.predicted_cost is not None
            assert proposal.predicted_cost <= left

    def test_several_at_once_share_what_is_left(self, begun):
        """Each is promised its cost before the next is chosen."""
        together = [p.predicted_cost for p in proposed(begun._history, ledger_of(6.0), 4) if p.predicted_cost]
        assert sum(together) <= 6.0

    def test_where_nothing_can_be_paid_for_there_is_still_a_proposal(self, begun):
        """The end of a budget is the study's to see, not the policy's."""
        (proposal,) = proposed(begun._history, ledger_of(1e-6))
        assert (proposal.trial, proposal.reason) == (len(begun.trials), TOO_LITTLE_LEFT)

    def test_a_run_that_has_to_be_trained_again_goes_beyond_what_is_known(self, begun):
        """By a period, and what is trained again is paid for; where that is too much, it is not resumed."""
        paused = begun._history.of(ft.Status.PAUSED)
        history = after(begun._history, SPACE, *(Dropped(trial.number, 0) for trial in paused))
        for left in (1e3, 0.3):
            chooser = chooser_for(history, ledger_of(left))
            found = chooser._candidates()
            stops = stops_of(found, STEPS, left)
            utility = chooser._utility(found, stops)
            for i, trial in enumerate(found.trials):
                if trial is not None:
                    assert np.isfinite(utility[i]).tolist() == (stops[i] > len(trial.curve)).tolist()
                    proposal = chooser._proposal(found, i, STEPS, 99)
                    assert (proposal.start_step, proposal.until_step) == (0, len(trial.curve) + PERIOD)
                    assert proposal.predicted_cost == pytest.approx(proposal.until_step * step_cost(trial.config))
            assert np.isfinite(utility[-len(paused) :]).any() == (left > 10.0)

    def test_without_costs_the_best_gain_counts(self):
        """A budget of evaluations: nothing is known of costs, and nothing has to be."""
        study = ft.Study(SPACE, "12 evaluations", policy="thaw", seed=0, max_steps=STEPS)
        for proposal in islice(proposals_of(study), 30):
            decision, step = ft.Decision.CONTINUE, proposal.start_step
            while decision is ft.Decision.CONTINUE:
                step += 1
                decision = study.report(proposal, value_at(proposal.config, step))
        assert any(len(trial.curve) > PERIOD for trial in study.trials)

    def test_failures_are_survived(self):
        """And avoided: fewer fail than would at random."""
        study, failed = new_study(cost=45.0), 0
        for proposal in proposals_of(study):
            if proposal.config["mix"] > 0.5 and proposal.start_step == 0:
                study.tell(proposal, failed="diverged", cost=0.2)
                failed += 1
            else:
                train(study, proposal)
        assert 0 < failed < 0.4 * len(study.trials)
        assert study.best.value < 0.4

    def test_a_function_that_returns_one_value_is_refused(self):
        """There would be no curves, and all of the search would be its design."""
        with pytest.raises(InvalidArgument, match="'thaw' is for learners that train step by step"):
            ft.tune(lambda config: 1.0, SPACE, "9 evaluations", policy="thaw", progress=False, isolate=False)

    def test_a_learner_whose_length_nobody_knows(self):
        def learner(config):
            for step in range(1, 11):
                yield {"value": value_at(config, 2 * step), "cost": 1.0}

        study = ft.tune(learner, SPACE, ft.Budget(cost=40), policy="thaw", seed=0, progress=False)
        assert study.trials[0].status is ft.Status.COMPLETE
        assert len(study.trials[0].curve) == 10
        assert study.count(ft.Status.PAUSED) > 0


class TestSideBySide:
    def test_what_is_asked_for_at_once_is_different(self, begun):
        proposals = proposed(begun._history, ledger_of(1e3), 4)
        assert len({proposal.trial for proposal in proposals}) == 4
        assert len({SPACE.key(proposal.config) for proposal in proposals}) == 4

    def test_a_run_is_taken_as_it_is_expected_to_be(self):
        """At its planned stop, with the median that the network predicts for it; one that is new, and one resumed."""
        study = searched(asks=12)
        plain = KnownCurves.of(SPACE, study._history, weights(), ANCHORS)
        assert plain is not None
        running = [study.ask() for _ in range(4)]
        seen = KnownCurves.of(SPACE, study._history, weights(), ANCHORS)
        assert seen is not None
        begun_now = [p for p in running if p.start_step == 0]
        assert len(seen.outlook.share) == len(plain.outlook.share) + len(begun_now)
        for proposal in running:
            stop = np.array([[float(proposal.until_step)]])
            x = SPACE.features(SPACE.encode(proposal.config)[None, :])
            row = plain.row_of.get(proposal.trial)
            p = plain.outlook.new(x, stop) if row is None else plain.outlook.begun(np.array([row]), stop)
            median = float(plain.outlook.quantile(p, 0.5)[0, 0])
            expected = seen.outlook.scale.u(np.array([median]))[0]
            same = np.isclose(seen.outlook.share, proposal.until_step / STEPS)
            assert np.any(np.abs(seen.outlook.reached[same] - expected) < 1e-6)

    def test_several_at_once_are_expected_as_one_by_one(self):
        study = searched(asks=12)
        plain = KnownCurves.of(SPACE, study._history, weights(), ANCHORS)
        assert plain is not None
        more = [Expected(p.trial, SPACE.encode(p.config), p.until_step) for p in (study.ask() for _ in range(4))]
        together, in_turn = plain.expecting(more), plain
        for one in more:
            in_turn = in_turn.expecting([one])
        np.testing.assert_allclose(together.outlook.reached, in_turn.outlook.reached, rtol=1e-5)
        np.testing.assert_array_equal(together.places, in_turn.places)

    def test_of_hundreds_of_running_trainings_the_last_are_expected(self, begun, monkeypatch):
        """And none of them is proposed again, nor what is nearly the same."""
        monkeypatch.setattr("farthing.policies.thaw.runs.MOST_EXPECTED", 10)
        plain = KnownCurves.of(SPACE, begun._history, weights(), ANCHORS)
        assert plain is not None
        U = np.random.default_rng(0).random((30, len(SPACE)))
        seen = plain.expecting([Expected(1_000 + i, u, 5) for i, u in enumerate(U)])
        assert len(seen.outlook.share) == len(plain.outlook.share) + 10
        assert len(seen.places) == len(plain.places) + 30

    def test_what_runs_is_not_proposed_again(self):
        study = searched(asks=12)
        running = [study.ask() for _ in range(6)]
        assert len({proposal.trial for proposal in running}) == 6


@pytest.fixture(scope="module")
def many() -> ft.Study:
    """More trainings than the network looks at, the best of them somewhere in between."""
    study = new_study(Thaw(initial=MOST_CURVES + 20))
    for _ in range(MOST_CURVES + 20):
        train(study, study.ask())
    return study


class TestManyCurves:
    def test_the_network_looks_at_the_best_and_at_some_of_the_others(self, many):
        history = many._history
        known = KnownCurves.of(SPACE, history, weights(), ANCHORS)
        assert known is not None
        assert len(known.row_of) == len(known.outlook.share) == Thaw().rows(history) == MOST_CURVES
        by_value = sorted(history.trials, key=lambda trial: trial.value)
        assert {trial.number for trial in by_value[: MOST_CURVES // 2]} <= known.row_of.keys()
        assert known.outlook.scale.best == by_value[0].value
        np.testing.assert_allclose(known.anchors, [trial.unit for trial in by_value[:ANCHORS]])

    def test_a_study_of_that_many_goes_on(self, many):
        """With one of the known runs, or a new one."""
        for proposal in proposed(many._history, ledger_of(1e3), 2):
            assert proposal.predicted_cost > 0.0
            assert proposal.start_step in (0, PERIOD)


class TestAnotherNetwork:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        """A study that was begun with weights that are not those of this version."""
        path = tmp_path / "study.db"
        with new_study(storage=path) as study:
            for proposal in islice(proposals_of(study), 9):
                train(study, proposal)
        here = Thaw().network
        assert change(path, "UPDATE events SET body = replace(body, ?, ?)", (here, "0123456789abcdef")) > 0
        return path

    def test_it_is_said_and_the_study_goes_on(self, file):
        with pytest.warns(RuntimeWarning, match="its network of training curves is another one") as said:
            study = ft.Study.resume(file)
        assert len(said) == 1
        with study:
            assert study.policy.network == "0123456789abcdef", "the file says what the study was begun with"
            for proposal in islice(proposals_of(study), 3):
                train(study, proposal)
            assert study.count(ft.Status.PAUSED) > 0

    @pytest.mark.parametrize("policy", ["thaw", Thaw()])
    def test_a_script_that_names_the_policy_goes_on_too(self, file, policy):
        with pytest.warns(RuntimeWarning, match="another one"), new_study(policy, storage=file) as study:
            assert study.ask().trial >= 0

    def test_other_options_are_still_another_policy(self, file):
        with pytest.raises(StudyMismatch, match="alpha"):
            new_study(Thaw(alpha=0.5), storage=file)

    def test_with_the_same_network_nothing_is_said(self, tmp_path):
        path = tmp_path / "study.db"
        with new_study(storage=path) as study:
            train(study, study.ask())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with ft.Study.resume(path) as study:
                assert study.policy == Thaw()
        assert json.loads(json.dumps(study.policy.network)) == Thaw().network


@pytest.mark.parametrize(
    "options", [{"initial": 0}, {"period": 0.0}, {"period": 1.1}, {"alpha": -1.0}, {"cost_model": "x"}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgument, match=f"thaw: {next(iter(options))}"):
        Thaw(**options)


def test_it_finds_clearly_better_than_its_design_and_than_random_search():
    """With the cost of three trainings of the median width; its design of six is trained completely, for free."""
    seeds = range(4)
    found = [searched("thaw", 60.0, seed).best.value for seed in seeds]
    blind = [searched("random", 60.0, seed).best.value for seed in seeds]
    design = [min(value_at(p.config, STEPS) for p in new_study(seed=seed).ask(6)) for seed in seeds]
    assert np.mean(found) < 0.7 * np.mean(blind)
    assert np.mean(found) < 0.8 * np.mean(design)
