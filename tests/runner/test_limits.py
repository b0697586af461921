"""Hard budgets and limits of trials: whatever exceeds one is ended, and the ledger is right.

Objectives that hang do so for HANGS seconds, far longer than a busy machine may be LATE: so a limit that is not kept is
seen on any machine. How tightly budgets are kept is measured by `make bench-runner`.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidBudget
from farthing.policies.sampling import Random
from farthing.runner.limits import TrialLimits
from farthing.runner.meters import meters_for
from farthing.trial import EndedBy
from learners import LINE, Alternating, iterative, value_at

pytestmark = pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX")

LATE = 10.0  # seconds by which a busy machine may exceed a limit
HANGS = 60.0  # seconds of an objective that must be killed
SPENT = (EndedBy.BUDGET, "killed: the budget is spent")


def run(objective: Any, budget: str | ft.Budget, **options: Any) -> tuple[ft.Study, float]:
    """A study after its run, and how long that took."""
    study = ft.Study(LINE, budget, policy="random", seed=0)
    began = time.perf_counter()
    study.run(objective, progress=False, **options)
    return study, time.perf_counter() - began


def sleeps(seconds: float) -> Any:
    return lambda config: time.sleep(seconds) or 1.0


def trains(seconds: float, steps: int = 1000) -> Any:
    def objective(config: dict[str, Any]) -> Iterator[float]:
        for step in range(1, steps + 1):
            time.sleep(seconds)
            yield value_at(config, step)

    return objective


def spins(seconds: float) -> Any:
    def objective(config: dict[str, Any]) -> float:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
        return 1.0

    return objective


class TestSeconds:
    @pytest.mark.parametrize("objective", [sleeps(0.07), sleeps(HANGS), spins(HANGS)], ids=["short", "long", "busy"])
    def test_a_budget_is_kept_and_the_ledger_is_the_clock(self, objective):
        study, wall = run(objective, "1.5s")
        assert 1.5 <= study.ledger.total("seconds") <= 1.5 + LATE
        assert study.ledger.total("seconds") == pytest.approx(wall, abs=0.5 + 0.05 * wall)
        assert study.ledger.total("seconds") <= wall
        assert study.ledger.reached == "seconds"

    @pytest.mark.parametrize("ignores", [False, True])
    def test_a_black_box_is_killed_and_its_cost_only_a_bound(self, ignores):
        def objective(config: dict[str, Any]) -> float:
            while True:
                try:
                    time.sleep(HANGS)
                except BaseException:
                    if not ignores:
                        raise

        study, wall = run(objective, ft.Budget(compute_seconds=0.5))
        (trial,) = study.trials
        assert (trial.status, (trial.ended_by, trial.error)) == (ft.Status.KILLED, SPENT)
        assert trial.censored
        assert not trial.unsuccessful, "no fault of its own"
        assert study.ledger.account("killed") == trial.cost
        assert 0.4 <= trial.cost <= 0.5 + LATE
        assert wall < HANGS

    def test_it_may_clean_up_in_its_moment(self, tmp_path):
        def objective(config: dict[str, Any]) -> float:
            try:
                time.sleep(HANGS)
            finally:
                (tmp_path / "clean").touch()
            return 1.0

        run(objective, ft.Budget(compute_seconds=0.5))
        assert (tmp_path / "clean").exists()

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_training_keeps_its_curve_and_goes_on_when_the_budget_is_raised(self, tmp_path, workers):
        """Twelve steps of 0.25 s do not fit into the budget, even if one worker does them all."""
        path, policy = tmp_path / "study.db", Alternating(width=9, stride=99)
        budget = ft.Budget(compute_seconds=1.0 + 0.5 * workers)
        with ft.Study(LINE, budget, policy=policy, seed=0, max_steps=12, storage=path) as study:
            study.run(trains(0.25, 12), workers=workers, progress=False)
            assert study.ledger.total("compute_seconds") <= 2.0 + workers * LATE
            assert 0 < len(study.trials[0].curve) < 12
            assert study.trials[0].status is ft.Status.PAUSED
            before = study.trials[0].curve.values
        with ft.Study.resume(path, budget="60s, 4 evaluations", policy=Alternating(width=9, stride=99)) as study:
            study.run(trains(0.01, 12), workers=workers, progress=False)
            assert study.trials[0].status is ft.Status.COMPLETE
            assert study.trials[0].curve.values[: len(before)] == before
            assert len(study.trials[0].curve) == 12

    def test_a_step_in_the_making_is_cut(self):
        study = iterative(ft.Budget(compute_seconds=0.5))
        study.run(trains(HANGS), progress=False)
        assert 0.5 <= study.ledger.total("compute_seconds") <= 0.5 + LATE
        study = iterative(ft.Budget(compute_seconds=1.0), policy=Alternating(width=9, stride=99))

        def second_is_long(config: dict[str, Any]) -> Iterator[float]:
            yield 1.0
            time.sleep(HANGS)
            yield 0.5

        study.run(second_is_long, progress=False)
        assert 0.9 <= study.ledger.total("compute_seconds") <= 1.0 + LATE
        assert [trial.status.value for trial in study.trials] == ["paused"], "with more it could go on"

    def test_paused_learners_that_are_slow_to_close_do_not_hold_it_up(self):
        def objective(config: dict[str, Any]) -> Iterator[float]:
            try:
                for step in range(1, 7):
                    time.sleep(0.05)
                    yield value_at(config, step)
            finally:
                time.sleep(HANGS)

        study = iterative("2s", policy=Alternating(width=5))
        study.run(objective, progress=False)
        assert study.ledger.total("seconds") <= 2.0 + LATE

    def test_time_that_passes_in_a_callback_begins_nothing_more(self):
        """The callback takes as long as the whole budget."""

        def wait(study: ft.Study, trial: ft.Trial) -> None:
            time.sleep(3.0)

        study, _ = run(sleeps(0.01), "3s", callbacks=[wait])
        assert [trial.status.value for trial in study.trials] == ["complete"]


class TestOtherUnits:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("unit", ["compute_seconds", "usd"])
    def test_they_are_kept_over_all_workers(self, workers, unit):
        """At a dollar a second, the optimiser pays too, also while processes start."""
        budget = ft.Budget(compute_seconds=2.0) if unit == "compute_seconds" else ft.Budget(usd=3.0, usd_per_hour=3600)
        study, wall = run(sleeps(HANGS), budget, workers=workers)
        limit = budget.limits[unit]
        assert limit <= study.ledger.total(unit) <= limit + workers * LATE
        assert len(study.trials) >= workers
        assert {(trial.ended_by, trial.error) for trial in study.trials} == {SPENT}
        assert wall < HANGS
        assert study.ledger.account("killed", unit) == pytest.approx(sum(trial.cost for trial in study.trials))

    def test_cpu_time(self):
        study, _ = run(spins(HANGS), ft.Budget(compute_seconds=1.0), meter="cpu")
        assert 1.0 <= study.ledger.total("compute_seconds") <= 1.0 + LATE
        assert [(trial.ended_by, trial.error) for trial in study.trials] == [SPENT]

    def test_sleep_costs_no_cpu_time(self):
        study, _ = run(sleeps(0.3), ft.Budget(compute_seconds=5.0, evaluations=4), meter="cpu")
        assert study.ledger.total("compute_seconds") < 4 * 0.3
        assert study.ledger.reached == "evaluations"

    def test_a_meter_is_charged_once_for_a_training_that_is_interrupted(self):
        """It is charged with the last step, and not again when the training ends."""
        this = os.getpid()

        def objective(config: dict[str, Any]) -> Iterator[float]:
            end = time.process_time() + 0.4
            while time.process_time() < end:
                pass
            os.kill(this, signal.SIGINT)
            time.sleep(0.1)
            yield 1.0
            yield 1.0

        with pytest.raises(KeyboardInterrupt) as stopped:
            run(objective, ft.Budget(compute_seconds=50.0), meter="cpu")
        study = stopped.value.study
        assert [trial.status.value for trial in study.trials] == ["interrupted"]
        assert 0.39 <= study.ledger.total("compute_seconds") < 0.75

    def test_joules_that_nothing_measures_are_refused_with_what_is_missing(self):
        missing = meters_for(ft.Budget(joules=5.0)).missing
        if not missing:
            pytest.skip("this machine measures energy")
        with pytest.raises(InvalidBudget, match="joules, which nothing here measures") as refused:
            run(sleeps(0.0), ft.Budget(joules=5.0))
        assert missing in str(refused.value)
        assert "RAPL" in missing


class TestTrialLimits:
    def test_one_that_takes_too_long_is_killed_and_the_others_are_not(self):
        def objective(config: dict[str, Any]) -> float:
            time.sleep(HANGS * (ft.current_run().trial == 1))
            return 1.0

        study, wall = run(objective, "4 evaluations", trial_seconds=1.5)
        assert [trial.status.value for trial in study.trials] == ["complete", "killed", "complete", "complete"]
        killed = study.trials[1]
        assert killed.error == "killed: it took longer than 1.5s, the limit of a trial"
        assert killed.unsuccessful
        assert killed.censored
        assert 1.5 <= study.ledger.account("killed", "compute_seconds") <= 1.5 + LATE
        assert wall < HANGS

    def test_of_a_training_all_steps_count_also_across_pauses(self):
        study = iterative("60s, 3 evaluations", policy=Alternating(width=2))
        study.run(trains(0.3, 6), trial_seconds=1.0, progress=False)
        ended = [trial for trial in study.trials if trial.status is ft.Status.KILLED]
        assert ended
        assert all(0 < len(trial.curve) <= 3 for trial in ended)

    @pytest.mark.parametrize("where", ["itself", "a child"])
    def test_memory(self, where):
        bomb = "import time; x = bytearray(400_000_000); time.sleep(60)"

        def objective(config: dict[str, Any]) -> float:
            if ft.current_run().trial == 1 and where == "itself":
                exec(bomb)
            elif ft.current_run().trial == 1:
                import subprocess

                subprocess.run([sys.executable, "-c", bomb], check=True)
            return 1.0

        study, wall = run(objective, "3 evaluations", trial_memory="300MB")
        assert [trial.status.value for trial in study.trials] == ["complete", "killed", "complete"]
        assert study.trials[1].error == "killed: it held more than 0.3 GB of memory, the limit of a trial"
        assert wall < HANGS

    @pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/shm")
    @pytest.mark.parametrize("how", ["open", "closed", "mapped"])
    def test_a_file_in_memory_counts_once(self, how):
        """150 MB are less than 250 MB, however many ways there are to see them."""
        path = Path("/dev/shm") / f"farthing-{uuid.uuid4().hex}"

        def objective(config: dict[str, Any]) -> float:
            with path.open("w+b") as file:
                file.write(bytes(150_000_000))
                file.flush()
                held = mmap.mmap(file.fileno(), 0) if how == "mapped" else b""
                for page in range(0, len(held), mmap.PAGESIZE):
                    held[page] = 1
                time.sleep(0.5 * (how == "open"))
            time.sleep(0.5 * (how != "open"))
            return 1.0

        try:
            study, _ = run(objective, "1 evaluation", trial_memory="250MB")
            assert [(trial.status.value, trial.error) for trial in study.trials] == [("complete", None)]
        finally:
            path.unlink(missing_ok=True)

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({"trial_seconds": 0}, "trial_seconds"),
            ({"trial_seconds": math.nan}, "trial_seconds"),
            ({"trial_seconds": "5 evaluations"}, "trial_seconds"),
            ({"trial_seconds": "soon"}, "trial_seconds"),
            ({"trial_seconds": True}, "trial_seconds"),
            ({"trial_seconds": [1]}, "trial_seconds"),
            ({"trial_memory": 0}, "trial_memory"),
            ({"trial_memory": math.inf}, "trial_memory"),
            ({"trial_memory": "2 bananas"}, "trial_memory"),
            ({"trial_memory": True}, "trial_memory"),
            ({"workers": 0}, "workers"),
            ({"workers": 1.5}, "workers"),
            ({"paused_limit": -1}, "paused_limit"),
            ({"isolate": "yes"}, "isolate"),
            ({"isolate": False, "workers": 2}, "isolate=False"),
            ({"isolate": False, "trial_seconds": 2}, "isolate=False"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_is_evaluated(self, options, name):
        with pytest.raises(InvalidArgument, match=f"^{name}: "):
            run(sleeps(0.0), "3 evaluations", **options)

    @pytest.mark.parametrize(
        ("memory", "amount"),
        [("2GB", 2e9), ("1.5 kB", 1500), ("1 KiB", 1024), ("3 MiB", 3 * 2**20), ("7", 7), (5e6, 5e6), ("1tb", 1e12)],
    )
    def test_memory_as_people_write_it(self, memory, amount):
        assert TrialLimits.of(None, memory) == TrialLimits(bytes=amount)

    def test_time_as_people_write_it(self):
        assert TrialLimits.of("1m30s", None) == TrialLimits.of(90, None) == TrialLimits(seconds=90.0)
        assert not TrialLimits()


class Predicting(Random):
    """Predicts a twentieth of a second for each trial but the first."""

    def propose(self, space: Any, history: Any, ledger: Any, n: int, rng: Any) -> Any:
        proposals = super().propose(space, history, ledger, n, rng)
        return [replace(proposal, predicted_cost=0.05) if proposal.trial else proposal for proposal in proposals]


class TestRunaways:
    """A trial that takes ten times its predicted time, and a fifth of what is left of the budget, is killed.

    The budget counts the time of evaluations alone: how long processes take to start makes no difference.
    """

    @staticmethod
    def run(number: int, compute_seconds: float, **options: Any) -> ft.Study:
        """A study whose trial of that number hangs."""

        def objective(config: dict[str, Any]) -> float:
            time.sleep(HANGS if ft.current_run().trial == number else 0.01)
            return 1.0

        budget = ft.Budget(compute_seconds=compute_seconds, evaluations=4)
        return ft.Study(LINE, budget, policy=Predicting(), seed=0).run(objective, progress=False, **options)

    def test_it_is_killed_and_the_others_have_the_rest(self):
        study = self.run(2, compute_seconds=8.0)
        killed = study.trials[2]
        assert (killed.status.value, killed.unsuccessful, killed.censored) == ("killed", True, True)
        assert re.fullmatch(r"killed: it took longer than 1\.\d+s, and was predicted to take 0.05s", killed.error)
        assert 1.0 <= killed.cost <= 2.0 + LATE, "a fifth of what was left, which is more than ten times 0.05"
        assert [trial.status.value for trial in study.trials].count("complete") == 3

    def test_one_of_which_nothing_was_predicted_may_take_all(self):
        study = self.run(0, compute_seconds=1.0)
        assert study.trials[0].ended_by is EndedBy.BUDGET

    def test_a_limit_that_is_given_is_the_only_one(self):
        """Ten times 0.05 s is less than what is left."""
        study = self.run(2, compute_seconds=1.5, trial_seconds=HANGS)
        assert study.trials[2].ended_by is EndedBy.BUDGET

    def test_of_several_times_and_the_share_the_larger_counts(self):
        none = TrialLimits()
        assert none.with_runaway_limit(1.0, 2.0, 50.0).seconds == 21.0
        assert none.with_runaway_limit(1.0, 2.0, 500.0).seconds == 101.0
        assert none.with_runaway_limit(1.0, 2.0, math.inf) == none.with_runaway_limit(1.0, None, 50.0) == none


def test_a_checkpoint_survives_the_kill_at_the_end_of_the_budget(tmp_path: Path):
    def objective(config: dict[str, Any]) -> Iterator[float]:
        here = ft.current_run()
        for step in range(here.step + 1, 7):
            (here.checkpoint_dir / "state").write_text(str(step))
            yield value_at(config, step)
            time.sleep(0.0 if step < 3 or here.remaining > 10 else HANGS)

    options: dict[str, Any] = {"policy": Alternating(width=9, stride=99)}
    budget = ft.Budget(compute_seconds=1.0)
    with ft.Study(LINE, budget, seed=0, max_steps=6, storage=tmp_path / "study.db", **options) as study:
        study.run(objective, progress=False)
        (trial,) = study._history.trials
        assert (trial.status, trial.ended_by, len(trial.curve)) == (ft.Status.PAUSED, EndedBy.BUDGET, 3)
        assert trial.kept_step == trial.saved_step == 3
    more = ft.Budget(compute_seconds=100, evaluations=1)
    with ft.Study.resume(tmp_path / "study.db", budget=more, **options) as study:
        study.run(objective, progress=False)
        assert len(study.trials[0].curve) >= 3
        assert "retrained" not in study.ledger.accounts
