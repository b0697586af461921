"""Policy `bapi`: what it plans, where runs stop, and which are paused and resumed."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.budget import Ledger
from farthing.errors import InvalidArgument
from farthing.policies import BAPI, policy_as_json, policy_from_json
from farthing.policies.bapi.curves import TrainingCurves, chosen_steps
from farthing.policies.bapi.planner import Planner, log_improvement
from farthing.policies.candidates import FreshSpace
from farthing.policies.step_costs import StepCosts
from farthing.surrogates.cost.linear_in_steps import LinearInSteps
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.paths import Mixture
from farthing.trial import ContinueTo
from learners import proposals_of, train_steps

SPACE = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), width=ft.Integer(8, 256, log=True), drop=ft.Real(0.0, 0.5))
STEPS = 30


def value_at(config: dict[str, Any], step: int) -> float:
    """Decays to an end that depends on the configuration, slower far from the best rate."""
    off = math.log10(config["rate"]) + 2.0
    end = 0.1 + 0.05 * off**2 + 0.1 * abs(config["drop"] - 0.2) + 0.02 * abs(math.log2(config["width"] / 64))
    return end + 0.8 * math.exp(-step / (3.0 + off**2))


def step_cost(config: dict[str, Any]) -> float:
    return config["width"] / 64.0


def train(study: ft.Study, proposal: ft.Proposal) -> None:
    train_steps(study, proposal, value_at, step_cost)


def searched(policy: Any = "bapi", cost: float = 240.0, seed: int = 0, asks: int | None = None) -> ft.Study:
    """A study in an own loop."""
    study = ft.Study(SPACE, ft.Budget(cost=cost), policy=policy, seed=seed, max_steps=STEPS)
    for proposal in islice(proposals_of(study), asks):
        train(study, proposal)
    return study


@pytest.fixture(scope="module")
def begun() -> ft.Study:
    """A study some way into its budget."""
    return searched(cost=1000.0, asks=14)


def planner_for(study: ft.Study, cost: float | None = None, policy: BAPI | None = None) -> Planner:
    policy, rng = policy or BAPI(), np.random.default_rng(0)
    known = TrainingCurves.of(policy, study.space, study._history, rng)
    assert known is not None
    ledger = study.ledger if cost is None else Ledger(ft.Budget(cost=cost))
    return Planner.of(policy, study.space, study._history, ledger, FreshSpace(study.space, study._history), known, rng)


def test_draws_are_given_the_ends_of_those_that_were_begun_last(monkeypatch):
    """Each takes milliseconds, and hundreds may be running."""
    study = searched(cost=1000.0, asks=14)
    nobody, asked = planner_for(study), [study.ask() for _ in range(5)]
    assert len({proposal.trial for proposal in asked}) == 5
    carried = [len(planner.paths.carried) for planner in (nobody, planner_for(study))]
    monkeypatch.setattr("farthing.policies.bapi.planner.MOST_RUNNING", 2)
    assert carried[0] < len(planner_for(study).paths.carried) < carried[1]


class TestHorizon:
    def test_it_ends_where_the_budget_does_or_at_its_length(self, begun):
        long = planner_for(begun, 1e6).horizon()
        assert len(long) == 4
        assert len(planner_for(begun, 1e6, BAPI(horizon=2)).horizon()) == 2
        cheapest = step_cost({"width": 8})
        assert len(planner_for(begun, 1.6 * cheapest).horizon()) == 1

    @pytest.mark.parametrize("left", [3.0, 10.0, 40.0, 1e4])
    def test_what_is_planned_can_be_paid(self, begun, left):
        horizon = planner_for(begun, left).horizon()
        assert sum(planned.cost for planned in horizon) <= left * (1.0 + 1e-9)
        assert all(planned.stop > planned.run.step[0] for planned in horizon)

    def test_the_next_run_gains_most_per_cost(self, begun):
        planner = planner_for(begun)
        proposal, horizon = planner_for(begun).next_proposal(99), planner.horizon()
        best = max(horizon, key=lambda planned: planned.log_gain)
        assert proposal is not None
        assert proposal.predicted_cost == best.cost
        assert proposal.until_step == best.stop

    def test_a_paused_run_is_priced_by_the_steps_it_still_needs(self, begun):
        """At its own measured cost per step."""
        planner = planner_for(begun)
        candidates = planner._candidates(planner._points()[:5])
        resting = [(i, trial) for i, trial in enumerate(candidates.trials) if trial is not None]
        assert resting
        for i, trial in resting:
            planned = planner._planned(candidates[[i]], 1e6)
            if planned is not None:
                assert planned.cost == pytest.approx((planned.stop - trial.kept_step) * step_cost(trial.config))

    def test_several_at_once_are_different(self, begun):
        policy, rng = BAPI(), np.random.default_rng(1)
        proposals = policy.propose(begun.space, begun._history, Ledger(ft.Budget(cost=1e4)), 5, rng)
        assert len({tuple(proposal.config.items()) for proposal in proposals}) == 5
        assert len({proposal.trial for proposal in proposals}) == 5

    def test_planning_with_two_hundred_runs_takes_less_than_a_second(self):
        study = ft.Study(SPACE, ft.Budget(cost=1e9), policy=BAPI(initial=200), seed=0, max_steps=STEPS)
        for _ in range(200):
            proposal = study.ask()
            for step in range(1, 7):
                study.report(proposal, value_at(proposal.config, step), cost=step_cost(proposal.config))
        assert study.count(ft.Status.PAUSED) == 200
        policy = BAPI(initial=200)
        seconds = []
        for seed in range(3):
            began = time.process_time()
            (proposal,) = policy.propose(SPACE, study._history, study.ledger, 1, np.random.default_rng(seed))
            seconds.append(time.process_time() - began)
        assert proposal.until_step is not None
        assert min(seconds) < 1.0


class TestStops:
    def test_the_stop_is_the_first_step_close_enough_to_the_end(self, begun):
        """Bisection against a walk over all steps."""
        curves = planner_for(begun).curves
        X = SPACE.features(SPACE.encode_many([trial.config for trial in begun.trials]))
        stops = curves.stops(X)
        for x, stop in zip(X, stops, strict=True):
            t = np.arange(1.0, STEPS + 1)
            values = curves._values(np.repeat(x[None, :], STEPS, axis=0), t)
            close = np.flatnonzero(values - values[-1] <= curves.eps)
            assert stop in close + 1, "close enough"
            assert stop == 1 or values[int(stop) - 2] - values[-1] > curves.eps, "and not one step before"

    def test_a_wider_tolerance_stops_sooner(self, begun):
        X = SPACE.features(SPACE.encode_many([trial.config for trial in begun.trials]))
        narrow, wide = (planner_for(begun, policy=BAPI(eps=eps)).curves.stops(X) for eps in (1e-4, 0.1))
        assert np.all(wide <= narrow)
        assert wide.sum() < narrow.sum()

    def test_runs_rest_at_their_planned_stop_or_before(self):
        study = searched(cost=400.0)
        for trial in study._history.trials:
            assert trial.until_step is not None
            assert len(trial.curve) <= trial.until_step

    def test_a_run_that_costs_more_than_was_planned_is_weighed_again(self):
        study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=BAPI(initial=3), seed=0, max_steps=30)
        for _ in range(3):
            proposal = study.ask()
            while study.trial(proposal.trial).status is ft.Status.RUNNING:
                step = len(study.trial(proposal.trial).curve) + 1
                study.report(proposal, value_at(proposal.config, step), cost=1.0)
        proposal = study.ask()
        assert proposal.predicted_cost is not None
        steps, decision = 0, ft.Decision.CONTINUE
        while decision is ft.Decision.CONTINUE:
            steps += 1
            decision = study.report(proposal, value_at(proposal.config, steps), cost=50.0)
        assert decision is ft.Decision.PAUSE
        assert steps <= math.ceil(1.25 * proposal.predicted_cost / 50.0) + 1


@pytest.fixture(scope="module")
def seen(begun) -> ft.Study:
    """A run of 1 per step, seen after 6 steps, that would win if it were trained on."""
    study = searched(cost=1000.0, asks=14)
    proposal = study.ask()
    assert proposal.start_step == 0
    for step in range(1, 7):
        study.report(proposal, begun.best.value * (0.6 + 2 * math.exp(-step / 5)), cost=1.0)
    return study


class TestMovedStops:
    """Of a run that was planned to 9 steps, seen after 6."""

    def stop(self, seen: ft.Study, ledger: Ledger, until: int | None = 9) -> int:
        trial = replace(seen._history.trials[-1], until_step=until, predicted_cost=9.0)
        assert (trial.kept_step, trial.status) == (6, ft.Status.RUNNING)
        history = seen._history.with_trial(trial)
        decision = BAPI(overrun=None).decide(SPACE, history, ledger, trial, np.random.default_rng(0))
        if isinstance(decision, ContinueTo):
            return decision.step
        return 6 if decision is ft.Decision.PAUSE else until or STEPS

    def ledger(self, unit: str, left: float, others: float = 0.0) -> Ledger:
        """What is left, with 9 promised to the run itself."""
        spent = {"evaluation": {unit: 1e4 - left}}
        return Ledger(ft.Budget(**{unit: 1e4})).charged(spent).promised(9.0 + others, 2)

    @pytest.mark.parametrize(
        ("unit", "left", "others", "last"),
        [
            ("cost", 5.5, 0.0, 11), ("cost", 8.0, 0.0, 14), ("cost", 12.0, 5.0, 13), ("cost", 12.0, 30.0, 9),
            ("cost", 1.0, 0.0, 9), ("seconds", 5.5, 0.0, 11), ("seconds", 8.0, 30.0, 14), ("seconds", 1.0, 0.0, 9),
        ],
    )  # fmt: skip
    def test_a_stop_is_moved_as_far_as_the_budget_can_pay(self, seen, unit, left, others, last):
        """But for what others were promised, which in seconds is nothing: time passes for all alike. Never to before
        the step that was planned."""
        assert self.stop(seen, self.ledger(unit, 5e3)) > 14
        assert self.stop(seen, self.ledger(unit, left, others)) == last

    @pytest.mark.parametrize(("left", "last"), [(5.5, 11), (8.0, 14), (0.5, 6)])
    def test_a_run_without_a_planned_stop_goes_no_further_either(self, seen, left, last):
        assert self.stop(seen, self.ledger("cost", left), until=None) == last

    def test_where_the_end_is_not_planned_the_budget_is_no_limit(self, seen):
        trial = replace(seen._history.trials[-1], until_step=9)
        ledger = self.ledger("cost", 1.0)
        history = seen._history.with_trial(trial)
        decision = BAPI(overrun=None, end="ignored").decide(SPACE, history, ledger, trial, np.random.default_rng(0))
        assert isinstance(decision, ContinueTo)
        assert decision.step > 14


class TestEarlyTermination:
    @pytest.mark.parametrize(
        ("curve", "expected"),
        [
            (lambda t: 8.0 + math.exp(-t), ft.Decision.PAUSE),
            (lambda t: 0.6 + 2 * math.exp(-t / 5), ft.Decision.CONTINUE),
        ],
    )
    def test_what_will_not_win_is_paused_and_what_will_is_not(self, begun, curve, expected):
        """In units of the best: one that is flat and far above after three periods, one that falls below."""
        study = searched(cost=1000.0, asks=14)
        proposal = study.ask()
        assert proposal.start_step == 0
        assert proposal.until_step > 18
        best, decision, step = begun.best.value, ft.Decision.CONTINUE, 0
        while decision is ft.Decision.CONTINUE and step < 18:
            step += 1
            decision = study.report(proposal, best * curve(step), cost=1e-3)
        assert decision is expected

    def test_a_paused_run_can_be_resumed(self):
        """From the last step it reported, in at least one of three seeds."""

        def resumes(seed: int) -> bool:
            study = ft.Study(SPACE, ft.Budget(cost=400), policy="bapi", seed=seed, max_steps=STEPS)
            for proposal in proposals_of(study):
                if proposal.start_step > 0:
                    assert proposal.start_step == len(study.trial(proposal.trial).curve)
                    return True
                train(study, proposal)
            return False

        assert any(resumes(seed) for seed in range(3))


class TestData:
    @pytest.mark.parametrize("length", [1, 2, 3, 10, 30])
    def test_at_most_three_points_of_a_curve_and_always_its_last(self, length):
        steps = chosen_steps(length, 30, "variance", "decay", None)
        assert len(steps) == min(3, length)
        assert steps[-1] == length
        assert np.all(np.diff(steps) > 0)
        assert chosen_steps(length, 30, "last", "decay", None).tolist() == [length]

    def test_the_points_are_those_of_largest_variance(self):
        """Against brute force: given the last, no other second point leaves more variance."""
        t = np.arange(1, 31) / 30
        value = np.zeros(30, dtype=np.intp)
        phi = np.array(time_kernels.PRIOR_MEAN["decay"])
        K = time_kernels.covariance("decay", phi, t, value, t, value)
        left = [K[i, i] - K[i, -1] ** 2 / K[-1, -1] for i in range(29)]
        assert int(np.argmax(left)) + 1 in chosen_steps(30, 30, "variance", "decay", None)

    def test_curves_enter_as_their_running_best(self):
        study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=BAPI(initial=2), seed=0, max_steps=4)
        for values in ([3.0, 1.0, 2.0, 5.0], [4.0, 3.0, 3.5, 2.0]):
            proposal = study.ask()
            for value in values:
                if study.trial(proposal.trial).status is ft.Status.RUNNING:
                    study.report(proposal, value, cost=1.0)
        known = TrainingCurves.of(BAPI(), SPACE, study._history, np.random.default_rng(0))
        assert known is not None
        per_run = np.split(known.model.plain.y, [len(known.model.plain.y) // 2])
        assert all(np.all(np.diff(y) <= 1e-12) for y in per_run)

    def test_the_expected_improvement_of_a_mixture(self):
        """Against the closed form of one normal, and the average of two."""
        mixture = Mixture(np.array([[0.25], [0.75]]), np.array([[0.0], [1.0]]), np.array([4.0]))
        found = float(np.exp(log_improvement(mixture, np.array([0.5, -0.5]))[0]))

        def closed(best: float, mean: float, sd: float) -> float:
            z = (best - mean) / sd
            return float(sd * (z * norm.cdf(z) + norm.pdf(z)))

        assert found == pytest.approx(0.25 * closed(0.5, 0.0, 2.0) + 0.75 * closed(-0.5, 1.0, 2.0))


def test_what_is_not_worth_training_on_for_is_measured_near_the_best():
    """A twentieth of the way from the median to the best; how bad the worst are is nothing to it."""

    def eps(ends: list[float]) -> float:
        study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=BAPI(initial=len(ends)), seed=0, max_steps=1)
        for end in ends:
            study.report(study.ask(), end, cost=1.0)
        known = TrainingCurves.of(BAPI(), SPACE, study._history, np.random.default_rng(0))
        assert known is not None
        return known.eps

    assert eps([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(0.05 * 0.2)
    assert eps([0.1, 0.2, 0.3, 40.0, 500.0]) == pytest.approx(0.05 * 0.2)


class TestCosts:
    @pytest.mark.parametrize("kind", ["lines", "process"])
    def test_a_step_is_priced_by_its_configuration(self, begun, kind):
        costs = StepCosts.of(kind, "auto", SPACE, begun._history)
        configs = [{"rate": 0.01, "width": width, "drop": 0.2} for width in (16, 64, 200)]
        found = np.exp(costs.log_per_step(SPACE.features(SPACE.encode_many(configs))))
        true = np.array([step_cost(config) for config in configs])
        assert np.all(np.abs(np.log(found / true)) < np.log(3.0))

    def test_a_process_times_steps_is_a_process_on_the_cost_of_a_step(self):
        X = np.linspace(0.0, 1.0, 12)[:, None]
        model = LinearInSteps.of(X, np.full(12, 5.0), 5.0 * (1.0 + X[:, 0]))
        mean, variance = model.predict(np.array([[0.5]]))
        assert mean[0] == pytest.approx(np.log(1.5), abs=0.01)
        assert variance[0] >= 0.0


@pytest.mark.parametrize("seeds", [range(5), range(5, 10), range(10, 16)], ids=["0 to 4", "5 to 9", "10 to 15"])
def test_it_finds_better_than_complete_trainings_alone(seeds):
    """The same budget, worth eight complete trainings of the median width. In each third of sixteen seeds, and so in
    all of them together; in thirds, so that workers can share them."""
    own = [searched("bapi", 240.0, seed).best.value for seed in seeds]
    blind = [searched("ei", 240.0, seed).best.value for seed in seeds]
    assert np.mean(own) < np.mean(blind)


@pytest.mark.parametrize(
    "options",
    [
        {"points": "last"},
        {"monotone": False},
        {"kernel": "rbf"},
        {"kernel": "auto"},
        {"monotone": "auto"},
        {"kernel": "rbf-plain"},
        {"points": "posterior"},
        {"points": "halves"},
        {"horizon": 8},
        {"cost": "process"},
    ],
)
def test_options_run_to_the_end_of_the_budget(options):
    study = searched(BAPI(**options), cost=120.0)
    assert study.ledger.fraction >= 0.95
    assert study.best.value < 0.5
    assert policy_from_json(policy_as_json(BAPI(**options))) == BAPI(**options)


@pytest.mark.parametrize(
    "options",
    [{"horizon": 0}, {"points": "first"}, {"kernel": "linear"}, {"tau": 0.5}, {"period": 0.0}, {"initial": 0},
     {"eps": -1.0}, {"cost": "free"}, {"monotone": "yes"}],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        BAPI(**options)


def test_failures_are_survived():
    study = ft.Study(SPACE, ft.Budget(cost=200), policy="bapi", seed=0, max_steps=STEPS)
    failed = 0
    for proposal in proposals_of(study):
        step, decision = proposal.start_step, ft.Decision.CONTINUE
        while decision is ft.Decision.CONTINUE:
            step += 1
            if proposal.config["drop"] > 0.3 and step == 3:
                study.tell(proposal, failed="diverged", cost=1.0)
                failed += 1
                break
            decision = study.report(proposal, value_at(proposal.config, step), cost=step_cost(proposal.config))
    assert failed > 0
    assert study.best.value < 0.4


def test_the_first_run_goes_to_its_end_where_nobody_knows_how_long():
    def learner(config):
        for step in range(1, 13):
            yield {"value": value_at(config, step), "cost": 1.0}

    study = ft.tune(learner, SPACE, ft.Budget(cost=80), policy="bapi", seed=0, progress=False)
    assert study.trials[0].status is ft.Status.COMPLETE
    assert len(study.trials[0].curve) == 12
    assert study.count(ft.Status.PAUSED) > 0
