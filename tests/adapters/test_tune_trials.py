"""Ray Tune with `FarthingSearch` and `FarthingScheduler`, on a local cluster of Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import tune_training
from ray import cloudpickle, tune

import farthing as ft
from farthing.adapters.ray import FarthingScheduler, FarthingSearch
from farthing.errors import EveryTrialFailed, InvalidArgument
from farthing.record.events import Asked

SPACE = {"optimizer": {"rate": tune.loguniform(1e-3, 1.0)}, "seconds": 0.0}


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(tune_training)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AIR_NEW_OUTPUT", "0")
        patch.setenv("TUNE_PRINT_ALL_TRIAL_ERRORS", "0")
        patch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
        ray.init(
            "local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False,
            logging_level="ERROR",
        )  # fmt: skip
        yield
        ray.shutdown()
    cloudpickle.unregister_pickle_by_value(tune_training)


def fitted(
    trainable: Any, search: FarthingSearch, folder: Path, space: Any, scheduler: Any = None, failures: int = 0
) -> tune.ResultGrid:
    """The results of an experiment of two trials at once."""
    config = tune.TuneConfig(
        metric="loss", mode="min", num_samples=-1, max_concurrent_trials=2, reuse_actors=True, search_alg=search,
        scheduler=scheduler,
    )  # fmt: skip
    run = tune.RunConfig(
        name="tuned", storage_path=str(folder), verbose=0, failure_config=tune.FailureConfig(max_failures=failures)
    )
    return tune.Tuner(trainable, param_space=space, tune_config=config, run_config=run).fit()


def stretches(study: ft.Study) -> dict[int, int]:
    """How often each trial was begun or resumed."""
    asked = [event.about for event in study._session.record.past() if isinstance(event, Asked)]
    return {number: asked.count(number) for number in asked}


def test_trials_are_paused_and_go_on_where_they_stopped_until_the_budget_is_spent(tmp_path):
    """Each step costs 2. One trial fails once and goes on from its checkpoint; the broken rate for good."""
    search = FarthingSearch(
        budget=ft.Budget(cost=24), cost="energy", policy="thaw", max_steps=6, seed=0,
        points_to_evaluate=[{"optimizer": {"rate": rate}} for rate in (0.8, 0.5)],
    )  # fmt: skip
    space = {**SPACE, "once": str(tmp_path / "once")}
    results = fitted(tune_training.train, search, tmp_path, space, FarthingScheduler(search), failures=1)
    study = search.study
    resumed = [number for number, times in stretches(study).items() if times > 1]
    assert resumed
    assert len(results) == len(study.trials)
    reported = {result.config["optimizer"]["rate"]: result.metrics for result in results if result.metrics}
    for trial in study.trials:
        steps = len(trial.curve)
        if steps:
            metrics = reported[trial.config["optimizer/rate"]]
            assert metrics["seen"] == steps * (steps + 1) / 2  # each step once, in order
            assert trial.curve.costs == (2.0,) * steps
            assert trial.value == pytest.approx(abs(trial.config["optimizer/rate"] - 0.1) + 1 / steps)
        assert (trial.status is ft.Status.FAILED) == (trial.config["optimizer/rate"] == 0.5)
    assert study.trials[1].error.endswith("ValueError: a broken rate")
    assert 24 <= study.ledger.spent <= 26
    assert study.why_ended == "the budget of 24 cost is spent"
    assert (tmp_path / "once").exists()
    assert results.get_best_result().metrics["loss"] == study.best.value


def test_a_class_that_writes_checkpoints_is_paused_and_its_seconds_are_charged(tmp_path):
    """The budget is for 60 steps, and for a dozen on a machine with other things to do."""
    search = FarthingSearch(budget=ft.Budget(compute_seconds=2.4), policy="thaw", max_steps=5, seed=0)
    fitted(tune_training.Steps, search, tmp_path, {**SPACE, "seconds": 0.04}, FarthingScheduler(search))
    trials, ledger = search.study.trials, search.study.ledger
    assert max(stretches(search.study).values()) > 1
    assert all(0.04 <= cost < 2.4 for trial in trials for cost in trial.curve.costs)
    assert 2.4 <= ledger.total("compute_seconds") < 3.6
    assert ledger.account("retrained", "compute_seconds") == 0.0


def test_a_class_that_cannot_is_never_paused(tmp_path):
    search = FarthingSearch(budget=ft.Budget(cost=9), cost="seen", policy="thaw", max_steps=4, seed=0)
    fitted(tune_training.Forgetful, search, tmp_path, SPACE, FarthingScheduler(search))
    assert set(stretches(search.study).values()) == {1}
    assert len(search.study.trials[0].curve) == 4


def test_a_trial_that_hangs_ends_with_the_budget(tmp_path):
    """Its first step would take an hour. Tune itself waits some ten seconds before it kills a process."""
    search = FarthingSearch(budget=ft.Budget(compute_seconds=1), seed=0)
    fitted(tune_training.Steps, search, tmp_path, {**SPACE, "seconds": 3600.0}, FarthingScheduler(search))
    status = {trial.status.value for trial in search.study.trials}
    assert "killed" in status
    assert status <= {"killed", "interrupted"}  # interrupted: still waiting for a process
    assert 1.0 <= search.study.ledger.total("compute_seconds") < 10
    assert search.study.why_ended == "the budget of 1s of compute is spent"


def test_an_experiment_whose_first_trials_all_fail_alike_ends_with_their_error(tmp_path):
    search = FarthingSearch(budget="100 evaluations", seed=0, max_failures=2)
    with pytest.raises(EveryTrialFailed, match="the first 2 trials all failed with KeyError: 'optimizer'") as raised:
        fitted(tune_training.train, search, tmp_path, {"x": tune.uniform(0, 1)}, FarthingScheduler(search))
    assert len(raised.value.study.trials) <= 4


def test_without_the_scheduler_each_trial_is_one_evaluation(tmp_path):
    search = FarthingSearch(budget="3 evaluations", seed=0)
    results = fitted(lambda config: {"loss": config["optimizer"]["rate"]}, search, tmp_path, SPACE)
    trials = search.study.trials
    assert sorted(trial.value for trial in trials) == sorted(result.metrics["loss"] for result in results)
    assert [trial.status.value for trial in trials] == ["complete"] * 3


def test_a_scheduler_without_its_search_is_refused(tmp_path):
    scheduler = FarthingScheduler(FarthingSearch(LINE, budget="1h"))
    other = FarthingSearch(budget="3 evaluations", seed=0)
    with pytest.raises(InvalidArgument, match="give TuneConfig both of them"):
        fitted(tune_training.Steps, other, tmp_path, SPACE, scheduler)
    with pytest.raises(InvalidArgument, match="expected a FarthingSearch"):
        FarthingScheduler("farthing")


LINE = {"x": (0.0, 1.0)}
