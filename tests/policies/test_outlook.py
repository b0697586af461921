"""What more budget is expected to bring."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial, SpaceExhausted
from farthing.policies.outlook import REALISED, _after, outlook_in_time

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def objective(config: ft.Config) -> dict[str, float]:
    value = (config["x"] - 0.3) ** 2 + 0.3 * math.sin(9 * config["y"]) * config["x"]
    return {"value": value, "cost": 1.0 + 3.0 * config["y"]}


def searched(budget: ft.Budget | str = "12 evaluations", sign: float = 1.0, **given) -> ft.Study:
    def turned(config: ft.Config) -> dict[str, float]:
        found = objective(config)
        return {**found, "value": sign * found["value"]}

    return ft.tune(turned, SPACE, budget, **{"seed": 0, "progress": False, **given})


def test_it_changes_nothing_and_says_the_same_twice():
    study = searched(ft.Budget(cost=30))
    before = study._session.record.state
    assert study.outlook() == study.outlook()
    assert study._session.record.state is before


def test_the_next_proposal_is_the_same_after_looking_ahead():
    one, other = searched(), searched()
    one.outlook()
    for study in (one, other):
        study._session.record.limit(ft.Budget(evaluations=20))
    assert one.ask().config == other.ask().config


@pytest.mark.parametrize("policy", ["auto", "cei", "ei", "pbgi", "random", "sobol"])
def test_it_is_an_estimate_within_its_own_interval(policy):
    found = searched(ft.Budget(cost=30), policy=policy).outlook(ft.Budget(cost=10))
    low, high = found.interval
    assert 0.0 <= low <= high
    assert found.gain >= 0.0
    assert 0.0 <= found.chance <= 1.0
    assert (found.gain > 0.0) == (found.chance > 0.0)
    assert found.expected_best == found.best - found.gain


def test_more_budget_brings_no_less():
    study = searched()
    gains = [study.outlook(f"{n} evaluations").gain for n in (1, 2, 4, 8, 16, 64)]
    assert gains == sorted(gains)


def test_maximising_is_the_mirror_of_minimising():
    least, most = searched().outlook(), searched(sign=-1.0, maximize=True).outlook()
    assert (most.gain, most.interval, most.chance) == (least.gain, least.interval, least.chance)
    assert (most.best, most.expected_best) == (-least.best, -least.expected_best)


def test_by_default_it_is_about_a_tenth_or_the_rest_of_the_budget():
    assert searched(ft.Budget(cost=30)).outlook().spend == 3.0
    study = ft.Study(SPACE, ft.Budget(cost=30), seed=0)
    for cost in (14.0, 14.5):
        study.tell(study.ask(), value=cost, cost=cost)
    assert study.outlook().spend == 1.5


def test_draws_agree_with_the_posterior_of_one_candidate():
    """With one evaluation left the gain is what comes true of expected improvement at the next proposal, in the user's
    units."""
    from farthing.history import units, values
    from farthing.policies.fits import scale_of, value_model

    study = searched(policy="ei")
    found = study.outlook("1 evaluation")
    study._session.record.limit(ft.Budget(evaluations=13))
    proposal = study.ask()
    history = study._session.history
    complete, space = history.complete, study.space
    model = value_model(space, units(complete, 2), values(complete), history)
    mean, variance = model.predict(space.features(space.encode(proposal.config)[None, :]))
    z = mean + np.sqrt(variance + model.noise) * np.random.default_rng(0).standard_normal(400_000)
    gains = np.maximum(study.best.value - scale_of(values(complete)).inverse(z), 0.0)
    assert found.gain / REALISED == pytest.approx(gains.mean(), abs=5 * gains.std() / math.sqrt(1_000) + 1e-9)


def test_gains_between_whole_evaluations_are_interpolated():
    gains = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 2.0]])
    assert _after(gains, 1.5).tolist() == [2.0, 2.0]
    assert _after(gains, 0.25).tolist() == [0.25, 0.5]


class TestText:
    def test_it_is_one_sentence(self):
        found = searched(ft.Budget(cost=30)).outlook()
        fields = {"spend": 600.0, "unit": "seconds", "evaluations": 12.2, "gain": 0.0004, "best": 0.1226}
        text = str(dataclasses.replace(found, **fields))
        assert text == ("the next 10m are expected to bring 0.0004 (0.12260 to 0.12220), in about 12 evaluations")

    @pytest.mark.parametrize("gain", [0.0, 5e-324, 1e-30, 1e30])
    def test_it_holds_for_any_gain(self, gain):
        assert "expected to bring" in str(dataclasses.replace(searched().outlook(), gain=gain))


class TestWithoutAnAnswer:
    def test_before_there_are_values(self):
        with pytest.raises(NoTrial, match="2 complete trials, got 0"):
            ft.Study(SPACE, "9 evaluations").outlook()

    def test_before_there_are_costs(self):
        study = ft.Study(SPACE, ft.Budget(cost=9, evaluations=9))
        for _ in range(3):
            study.tell(study.ask(), value=1.0)
        with pytest.raises(NoTrial, match="cost of at least 1 trial"):
            study.outlook()

    def test_for_training_step_by_step(self):
        with pytest.raises(InvalidArgument, match="step by step"):
            ft.Study(SPACE, "10m", policy="thaw").outlook()

    def test_in_another_unit(self):
        with pytest.raises(InvalidArgument, match="in evaluations or in cost"):
            searched(ft.Budget(cost=20)).outlook("10m")

    def test_of_a_space_that_is_exhausted(self):
        study = ft.tune(lambda c: c["n"], {"n": (1, 3)}, "3 evaluations", progress=False)
        with pytest.raises(SpaceExhausted):
            study.outlook()
        assert outlook_in_time(study._session.record, study.policy) is None


class TestWhereItIsShown:
    def test_of_a_file(self, tmp_path):
        study = searched(ft.Budget(cost=30), storage=tmp_path / "s.db")
        found = study.outlook()
        study.close()
        assert ft.Study.open(tmp_path / "s.db").outlook() == found

    def test_at_the_end_of_a_run_that_shows_progress(self, capfd):
        study = searched(progress=None)
        assert capfd.readouterr().err.splitlines()[-1].startswith("the next evaluation is expected to bring ")
        spent = study.ledger.total("seconds")
        study.outlook()
        assert study.ledger.total("seconds") == spent

    def test_not_after_a_run_in_which_everything_failed(self, capfd):
        with pytest.raises(ft.errors.EveryTrialFailed if hasattr(ft, "errors") else Exception):
            ft.tune(lambda config: 1 / 0, SPACE, "12 evaluations")
        assert "expected to bring" not in capfd.readouterr().err
