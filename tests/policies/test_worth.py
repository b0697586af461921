"""What the best evaluation is expected to bring in the user's units, and when that ends a study."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.acquisitions.improvement import MeanLogEI
from farthing.errors import InvalidArgument, NotWorthMore, StorageError, StudyMismatch
from farthing.policies.prospects import expected_gain
from farthing.policies.worth import HITS, WINDOW, is_over
from farthing.record.state import Prospect
from farthing.record.study_events import Judged
from farthing.surrogates import gp
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.outputs import Scale, Warp

RNG = np.random.default_rng(0)
X, QUERY, PENDING = RNG.random((15, 2)), RNG.random((5, 2)), RNG.random((2, 2))
Y = np.exp(2.0 * X[:, 0]) + X[:, 1]
SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
BUDGET = ft.Budget(cost=120.0)


def modelled(scale, pending) -> Fantasies:
    process = gp.from_hyperparameters(X, scale(Y), gp.Hyperparameters((0.0, 0.5), -4.0))
    return Fantasies.of(process, float(np.quantile(scale(Y), 0.6)), pending, np.random.default_rng(1))


class TestGain:
    def test_of_scaled_values_it_is_ei_times_the_scale(self):
        scale = Scale.of(Y)
        fantasies = modelled(scale, PENDING)
        expected = scale.spread * np.exp(MeanLogEI(fantasies)(QUERY))
        assert (expected > 1e-3).sum() > 2
        np.testing.assert_allclose(expected_gain(fantasies, scale, QUERY), expected, rtol=1e-6, atol=1e-12)

    @pytest.mark.parametrize("power", [-0.5, 1.0, 1.9])
    def test_of_warped_values_it_is_the_mean_of_drawn_improvements(self, power):
        scale = Warp(float(np.median(Y)), 1.5, power)
        fantasies = modelled(scale, np.empty((0, 2)))
        means, variance = fantasies.predict(QUERY)
        z = means[:, 0] + np.sqrt(variance) * np.random.default_rng(2).standard_normal((400_000, len(QUERY)))
        gains = np.maximum(scale.inverse(fantasies.targets) - scale.inverse(z), 0.0)
        error = 5.0 * gains.std(axis=0) / np.sqrt(len(gains)) + 1e-6
        assert (np.abs(expected_gain(fantasies, scale, QUERY) - gains.mean(axis=0)) < error).all()


class TestRule:
    def test_one_hit_is_not_enough(self):
        assert not is_over([Prospect(0.0, 1.0)], 1.0)
        assert is_over([Prospect(0.0, 1.0)] * HITS, 1.0)

    def test_one_ask_that_finds_nothing_does_not_end_a_study_that_is_worth_it(self):
        good, nothing = Prospect(10.0, 1.0), Prospect(0.0, 1.0)
        assert not is_over([*[good] * WINDOW, nothing, good], 1.0)
        assert not is_over([*[good] * WINDOW, nothing, nothing], 1.0)
        assert is_over([*[good] * WINDOW, *[nothing] * WINDOW], 1.0)

    @pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
    def test_only_the_ratio_of_gain_times_worth_to_cost_counts(self, scale):
        recent = [Prospect(scale, 2.0 * scale)] * HITS
        assert is_over(recent, 1.999)
        assert not is_over(recent, 2.001)


def objective(config: ft.Config) -> tuple[float, float]:
    return (config["x"] - 0.3) ** 2 + 0.1 * abs(config["y"] - 0.2), 1.0 + 5.0 * config["y"]


def step(study: ft.Study, sign: float = 1.0) -> None:
    proposal = study.ask()
    value, cost = objective(proposal.config)
    study.tell(proposal, value=sign * value, cost=cost)


def searched(study: ft.Study, sign: float = 1.0) -> ft.Study:
    """To the end, which must be that it is not worth more."""
    while not isinstance(study.ended, NotWorthMore):
        try:
            step(study, sign)
        except NotWorthMore:
            break
    return study


class TestStudy:
    @pytest.mark.parametrize("policy", ["auto", "cei", "ei", "eipu", "ei_cool", "pbgi"])
    def test_it_ends_early_and_proposes_the_same_until_then(self, policy):
        stopped = searched(ft.Study(SPACE, BUDGET, policy=policy, seed=0, stop_when_not_worth=1_000.0))
        free = ft.Study(SPACE, BUDGET, policy=policy, seed=0)
        for _ in stopped.trials:
            step(free)
        assert [trial.config for trial in free.trials] == [trial.config for trial in stopped.trials]
        assert stopped.ledger.spent < 0.9 * BUDGET.cost

    def test_a_higher_price_searches_longer(self):
        spent = [
            searched(ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=worth)).ledger.spent
            for worth in (30.0, 300.0, 3_000.0)
        ]
        assert spent[0] < spent[1] < spent[2]

    def test_it_says_why_in_the_units_of_the_user(self):
        study = searched(ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth="1 cost per 0.001"))
        judged = next(event for event in study._session.record.past() if isinstance(event, Judged))
        said = f"bring {judged.gain:.2g}, worth {judged.gain * 1000:.4g} cost, and to cost {judged.cost:.4g} cost"
        assert study.why_ended == f"not worth more: the next evaluation is expected to {said}"
        assert judged.gain * 1000 < judged.cost

    def test_a_file_says_so_too_and_goes_on_at_a_higher_price_only(self, tmp_path):
        path = tmp_path / "s.db"
        with ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=300.0, storage=path) as study:
            count, why = len(searched(study).trials), study.why_ended
        assert ft.Study.open(path).why_ended == why
        with ft.Study.resume(path) as study:
            assert study.why_ended == why
            with pytest.raises(NotWorthMore):
                study.ask()
        with ft.Study.resume(path, stop_when_not_worth=3_000.0) as study:
            assert study.ended is None
            assert len(searched(study).trials) > count

    def test_a_resumed_study_ends_where_an_uninterrupted_one_does(self, tmp_path):
        whole = searched(ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=300.0))
        path = tmp_path / "s.db"
        with ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=300.0, storage=path) as study:
            for _ in range(len(whole.trials) - 3):
                step(study)
        with ft.Study.resume(path) as study:
            assert len(searched(study).trials) == len(whole.trials)
            assert study.why_ended == whole.why_ended

    def test_what_is_told_afterwards_is_judged_anew(self):
        study = ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=300.0)
        for _ in range(6):
            step(study)
        pending = study.ask()
        searched(study)
        assert isinstance(study.ended, NotWorthMore)
        study.tell(pending, value=-5.0, cost=1.0)  # nobody expected that
        assert study.ended is None
        step(study)

    def test_maximising_is_the_mirror_of_minimising(self):
        least, most = (
            searched(ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=300.0, maximize=sign < 0), sign)
            for sign in (1.0, -1.0)
        )
        assert most.why_ended == least.why_ended
        assert len(most.trials) == len(least.trials)

    def test_where_only_evaluations_are_limited_one_costs_one(self):
        study = searched(ft.Study(SPACE, "60 evaluations", seed=0, stop_when_not_worth=1_000.0))
        assert study.why_ended.endswith("and to cost 1 evaluation")
        assert len(study.trials) < 60

    def test_a_run_ends_and_lets_running_evaluations_come_to_their_end(self):
        study = ft.tune(lambda c: dict(zip(("value", "cost"), objective(c), strict=True)), SPACE, BUDGET, seed=0,
                        stop_when_not_worth=300.0, workers=2, isolate=True, progress=False)  # fmt: skip
        assert study.why_ended.startswith("not worth more")
        assert {trial.status.value for trial in study.trials} == {"complete"}

    def test_several_at_once_are_given_before_the_end_is_judged(self):
        study = ft.Study(SPACE, BUDGET, policy="ei", seed=0, stop_when_not_worth=1e-9)
        for _ in range(4):
            step(study)
        for proposal in study.ask(3):
            study.tell(proposal, value=objective(proposal.config)[0], cost=1.0)
        with pytest.raises(NotWorthMore):  # the second hit in a row
            study.ask(3)
        assert len(study.trials) == 4 + 3 * (HITS - 1)


class TestRefusals:
    @pytest.mark.parametrize("policy", ["thaw", "bapi", "bopt", "sobol", "random"])
    def test_a_policy_without_models_of_whole_evaluations_is_refused(self, policy):
        with pytest.raises(InvalidArgument, match=f"stop_when_not_worth.*{policy}"):
            ft.Study(SPACE, BUDGET, policy=policy, stop_when_not_worth=1.0)

    def test_auto_says_so_once_it_would_train_step_by_step(self):
        study = ft.Study(SPACE, BUDGET, seed=0, max_steps=9, stop_when_not_worth=1.0)
        with pytest.raises(InvalidArgument, match="stop_when_not_worth"):
            study.ask()
        assert not study.trials

    def test_an_amount_of_another_unit_is_refused(self):
        with pytest.raises(InvalidArgument, match=r"such as \"1s per 0.001\""):
            ft.Study(SPACE, "10m", stop_when_not_worth="$1 per 0.001")

    @pytest.mark.parametrize("body", [{"gain": -1.0}, {"cost": "x"}, {"gain": float("nan")}])
    def test_a_judgement_that_makes_no_sense_is_not_believed(self, body):
        study = ft.Study(SPACE, BUDGET, seed=0, stop_when_not_worth=1.0)
        judged = Judged.read({"gain": 0.1, "cost": 1.0, "charges": {}, **body}, None)
        with pytest.raises((ValueError, StorageError, StudyMismatch)):
            judged.check(study._session.record.state)

    def test_nobody_judges_without_a_price(self):
        with pytest.raises(ValueError, match="worth"):
            Judged(0.1, 1.0, {}).check(ft.Study(SPACE, BUDGET)._session.record.state)
