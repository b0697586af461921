"""The run: whatever an objective does becomes an outcome, and all time goes to the ledger."""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.errors import BudgetSpent, InvalidArgument, InvalidBudget
from farthing.policies import BY_NAME
from studies import Awkward

LINE = ft.Space(x=ft.Real(-1, 1))


pytestmark = pytest.mark.usefixtures("logged")


def line_study(budget: str | ft.Budget = "5 evaluations", **options: Any) -> ft.Study:
    return ft.Study(LINE, budget, **{"policy": "sobol", "seed": 0, **options})


def run(objective: Any, budget: str | ft.Budget = "5 evaluations", **options: Any) -> ft.Study:
    """A silent run of a study on a line."""
    running = {name: options.pop(name) for name in ("callbacks", "isolate", "max_failures") if name in options}
    return line_study(budget, **options).run(objective, progress=False, **running)


def seconds_of(study: ft.Study) -> float:
    """Seconds in all accounts of the ledger."""
    return study.ledger.total("seconds")


def raises(error: BaseException) -> Any:
    def objective(config: dict[str, Any]) -> float:
        raise copy(error)

    return objective


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("even its text fails")


class TestFailures:
    """Every way to fail is a failed trial with its reason and its cost, and the study goes on."""

    @pytest.mark.parametrize(
        ("objective", "reason"),
        [
            (raises(ValueError("boom")), "ValueError: boom"),
            (raises(SystemExit(3)), "SystemExit: 3"),
            (raises(SystemExit()), "SystemExit"),
            (raises(MemoryError()), "MemoryError"),
            (raises(StopIteration()), "StopIteration"),
            (raises(RecursionError("deep")), "RecursionError: deep"),
            (raises(BudgetSpent("of another study")), "BudgetSpent: of another study"),
            (raises(Unprintable()), "Unprintable"),
            (raises(ExceptionGroup("several", [ValueError("a"), TypeError("b")])), "several"),
            (lambda config: math.nan, "finite, got nan"),
            (lambda config: -math.inf, "finite, got -inf"),
            (lambda config: None, "number, got NoneType"),
            (lambda config: "0.5", "text '0.5'"),
            (lambda config: (0.5, 1.0), "number, got tuple"),
            (lambda config: np.array([0.5, 1.0]), "number, got ndarray"),
            (lambda config: 1j, "number, got complex"),
            (lambda config: Awkward(), "number"),
            (lambda config: 10**400, "int|finite|number"),
            (lambda config: {}, "no 'value'"),
            (lambda config: {"loss": 0.5, "cost": 1.0}, "no 'value', only 'loss'"),
            (lambda config: {"value": None}, "number, got NoneType"),
            (lambda config: {"value": math.nan, "cost": 1e-9}, "finite"),
            (lambda config: {"value": Awkward()}, "number"),
            (lambda config: {"value": 1.0, "cost": -1.0}, "cost: expected a finite number of at least 0, got -1"),
            (lambda config: {"value": 1.0, "cost": math.nan}, "cost: expected"),
            (lambda config: {"value": 1.0, "cost": "much"}, "cost: expected"),
            (lambda config: {"value": 1.0, "cost": Awkward()}, "cost: expected"),
            (lambda config: {"value": 1.0, "cost": 10**400}, "cost: expected"),
        ],
    )
    def test_it_is_a_failed_trial_with_its_reason_and_cost(self, objective, reason, tmp_path):
        def fails_second(config: dict[str, Any]) -> Any:
            if len(study.trials) == 2:
                time.sleep(0.002)
                return objective(config)
            return 1.0

        study = line_study("4 evaluations", storage=tmp_path / "study.db")
        study.run(fails_second, progress=False)
        assert [trial.status.value for trial in study.trials] == ["complete", "failed", "complete", "complete"]
        failed = study.trials[1]
        assert failed.value is None
        assert re.search(reason, failed.error), failed.error
        assert study.ledger.account("failed", "evaluations") == 1.0
        assert study.ledger.account("failed", "seconds") == failed.cost > 0.0
        assert study.ledger.account("evaluation", "evaluations") == 3.0
        study.close()
        with ft.Study.resume(tmp_path / "study.db") as again:
            assert again.trials == study.trials

    def test_the_error_is_the_users_own_traceback_with_the_error_in_its_last_line(self):
        def inner() -> float:
            return 1 / 0

        def objective(config: dict[str, Any]) -> float:
            return inner()

        error = run(objective, "1 evaluation").trials[0].error
        assert error.splitlines()[-1] == "ZeroDivisionError: division by zero"
        assert "in inner" in error
        assert "in objective" in error
        assert os.path.join("farthing", "runner") not in error, "our own frames tell the user nothing"

    def test_the_cause_of_an_error_is_kept(self):
        def objective(config: dict[str, Any]) -> float:
            try:
                raise OSError("disk on fire")
            except OSError as error:
                raise RuntimeError("training failed") from error

        error = run(objective, "1 evaluation").trials[0].error
        assert "disk on fire" in error
        assert error.splitlines()[-1] == "RuntimeError: training failed"

    def test_a_failure_is_logged_in_one_line(self, caplog):
        run(raises(ValueError("boom")), "1 evaluation")
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert warnings == ["trial 0 failed: ValueError: boom"]

    def test_a_study_of_failures_only_ends_at_its_limit(self):
        study = run(raises(ValueError("boom")), "7 evaluations", policy="ei", max_failures=None)
        assert [trial.status.value for trial in study.trials] == ["failed"] * 7

    def test_a_budget_that_failures_never_charge_does_not_run_for_ever(self):
        """Nothing says what a failure cost in dollars or in a unit of one's own: some error must say so."""
        for budget in (ft.Budget(usd=1), ft.Budget(cost=1), ft.Budget(joules=1)):
            study = line_study(budget)

            def guard(study: ft.Study, trial: ft.Trial) -> None:
                assert trial.number < 100, "it would go on for ever"

            with pytest.raises(InvalidBudget, match=budget.unit):
                study.run(raises(ValueError("boom")), progress=False, callbacks=[guard], max_failures=None)


class TestReturns:
    def test_a_number_is_the_value(self):
        study = run(lambda config: np.float32(config["x"]), "3 evaluations")
        assert [trial.value for trial in study.trials] == [float(np.float32(t.config["x"])) for t in study.trials]

    def test_a_dict_has_value_cost_and_attributes(self):
        study = run(lambda config: {"value": 2, "cost": 0.25, "epochs": 3, 5: "five"}, ft.Budget(cost=0.5))
        assert len(study.trials) == 2
        trial = study.trials[0]
        assert (trial.value, trial.cost) == (2.0, 0.25)
        assert dict(trial.attributes) == {"epochs": 3, "5": "five"}

    def test_attributes_of_a_failure_are_kept(self):
        trial = run(lambda config: {"loss": 1.0}, "1 evaluation").trials[0]
        assert trial.status is ft.Status.FAILED
        assert dict(trial.attributes) == {"loss": 1.0}

    def test_a_cost_of_none_is_measured(self):
        trial = run(lambda config: {"value": 1.0, "cost": None}, "1 evaluation").trials[0]
        assert 0.0 < trial.cost < 60.0

    def test_the_objective_gets_a_copy_of_the_config(self, tmp_path):
        seen = []

        def objective(config: dict[str, Any]) -> float:
            seen.append(dict(config))
            config["x"] = 99.0
            config["extra"] = "mine"
            return 1.0

        with run(objective, "3 evaluations", storage=tmp_path / "study.db") as study:
            assert [trial.config for trial in study.trials] == seen
        with ft.Study.resume(tmp_path / "study.db") as study:
            assert [trial.config for trial in study.trials] == seen

    @pytest.mark.parametrize("made", [lambda: iter([3.0, 1.0]), lambda: (x for x in [3.0, 1.0])], ids=["iter", "gen"])
    def test_an_iterator_is_an_iterative_learner(self, made):
        study = run(lambda config: made(), "2 evaluations")
        assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE] * 2
        assert study.trials[0].curve.values == (3.0, 1.0)
        assert study.best.value == 1.0

    def test_an_iterator_that_yields_nothing_has_failed(self):
        study = run(lambda config: iter([]), "2 evaluations")
        assert all("yielded nothing" in (trial.error or "") for trial in study.trials)


class TestInterruption:
    """Ctrl-C ends a run cleanly: everything is on disk, and the trial runs again."""

    def interrupted(self, path: Path | None) -> ft.Study:
        """Three trials, of which the third is interrupted after 50 ms."""

        def objective(config: dict[str, Any]) -> float:
            if len(study.trials) == 3:
                time.sleep(0.05)
                signal.raise_signal(signal.SIGINT)
            return config["x"]

        study = line_study("6 evaluations", storage=path)
        with pytest.raises(KeyboardInterrupt) as stopped:
            study.run(objective, progress=False)
        assert stopped.value.study is study
        return study

    def test_at_a_prompt_the_run_returns(self, monkeypatch):
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        study = run(raises(KeyboardInterrupt()), "3 evaluations")
        assert study.interrupted
        assert study.why_ended == "interrupted after 1 trial"

    @pytest.mark.parametrize("stored", [False, True])
    def test_the_trial_is_interrupted_and_its_time_shown_apart(self, tmp_path, stored):
        study = self.interrupted(tmp_path / "study.db" if stored else None)
        assert study.interrupted
        assert [trial.status.value for trial in study.trials] == ["complete", "complete", "interrupted"]
        ledger = study.ledger
        assert 0.05 <= ledger.account("interrupted", "seconds") < seconds_of(study)
        assert ledger.account("interrupted", "evaluations") == 0.0
        assert ledger.total("evaluations") == 2.0
        assert (ledger.running, ledger.committed) == (0, 0.0)
        assert "interrupted" in str(ledger)
        study.close()

    def test_everything_is_on_disk_and_resuming_runs_it_again(self, tmp_path):
        path = tmp_path / "study.db"
        study = self.interrupted(path)
        study.close()
        with ft.Study.resume(path) as again:
            assert again.trials == study.trials
            assert again.ledger == study.ledger
            lost = again.ledger.account("interrupted", "seconds")
            again.run(lambda config: config["x"], progress=False)
            assert [trial.status.value for trial in again.trials] == ["complete"] * 6
            assert again.trials[2].config == study.trials[2].config
            assert again.ledger.account("interrupted", "seconds") == lost, "the lost time stays lost"
        straight = run(lambda config: config["x"], "6 evaluations")
        assert [trial.config for trial in again.trials] == [trial.config for trial in straight.trials]

    def test_the_same_study_can_run_on(self, tmp_path):
        with self.interrupted(tmp_path / "study.db") as study:
            study.run(lambda config: config["x"], progress=False)
            assert not study.interrupted
            assert [trial.status.value for trial in study.trials] == ["complete"] * 6

    def test_it_is_logged_with_how_to_go_on(self, tmp_path, caplog):
        self.interrupted(tmp_path / "study.db").close()
        assert "interrupted after 3 trials" in caplog.text
        assert "Study.resume(" in caplog.text

    def test_ctrl_c_in_a_callback_keeps_the_trial(self):
        def callback(study: ft.Study, trial: ft.Trial) -> None:
            raise KeyboardInterrupt

        study = line_study("5 evaluations")
        with pytest.raises(KeyboardInterrupt):
            study.run(lambda config: 1.0, progress=False, callbacks=[callback])
        assert [trial.status.value for trial in study.trials] == ["complete"]

    def test_an_error_of_a_callback_is_the_users_and_the_trial_is_kept(self):
        def callback(study: ft.Study, trial: ft.Trial) -> None:
            raise ZeroDivisionError

        study = line_study()
        with pytest.raises(ZeroDivisionError):
            study.run(lambda config: 1.0, progress=False, callbacks=[callback])
        assert [trial.status.value for trial in study.trials] == ["complete"]

    STORM = """
        import os, random, signal, sys, threading, time
        import farthing as ft

        path, times = sys.argv[1], int(sys.argv[2])
        moments = random.Random(4)
        space = ft.Space(x=ft.Real(-1, 1))
        study = ft.Study(space, "100000 evaluations", policy="random", seed=0, storage=path)
        ft.tune(lambda config: 0.0, space, "1 trial", policy="random", progress=False)  # imports are made

        def press(delay):
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)

        for _ in range(times):
            try:
                presser = threading.Thread(target=press, args=(moments.uniform(0.002, 0.02),))
                presser.start()
                study.run(lambda config: config["x"], progress=False)
            except KeyboardInterrupt:
                pass
            presser.join()
        study.run(lambda config: config["x"], progress=False, callbacks=[lambda study, trial: study.stop()])
        study.close()
        with ft.Study.resume(path) as read:
            assert read.trials == study.trials, "memory and file agree"
            assert read.ledger == study.ledger
            assert all(trial.status == "complete" for trial in read.trials), "what was interrupted ran again"
        print(len(read.trials))
        """

    @pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")
    def test_ctrl_c_at_any_moment_leaves_a_study_that_goes_on(self, disk_path):
        """Also in the middle of a write: most of a short trial's time is spent there."""
        child = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(self.STORM), str(disk_path / "study.db"), "40"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert child.returncode == 0, child.stderr[-2000:]
        assert int(child.stdout) > 0


class TestTime:
    """All wall-clock time of a run is in the ledger. In all but the first two tests, time is simulated."""

    @pytest.mark.parametrize("isolate", [False, True])
    def test_the_ledger_holds_no_more_than_a_clock_around_the_run_shows(self, tmp_path, isolate):
        """And no less than the evaluations took; how exactly they agree is tested with simulated time below."""
        with line_study("5 evaluations", storage=tmp_path / "study.db") as study:
            start = time.perf_counter()
            study.run(lambda config: time.sleep(0.02) or config["x"] ** 2, isolate=isolate, progress=False)
            wall = time.perf_counter() - start
            ledger = study.ledger
            assert set(ledger.accounts) == {"evaluation", "optimiser"}
            # A worker begins before the run waits for it: what it took itself is in its compute seconds.
            took = ledger.account("evaluation", "compute_seconds" if isolate else "seconds")
            assert took >= 5 * 0.02
            assert ledger.account("evaluation", "seconds") < seconds_of(study) <= wall + 1e-6
            assert ledger.account("optimiser", "seconds") > 0.0

    def check(self, study: ft.Study, objective: Any, callbacks: Any = ()) -> float:
        """Runs, and compares the ledger with a clock around the run; returns the clock's seconds."""
        before, start = seconds_of(study), time.perf_counter()
        study.run(objective, isolate=False, progress=False, callbacks=callbacks)
        wall = time.perf_counter() - start
        assert seconds_of(study) - before == pytest.approx(wall, abs=1e-4)
        return wall

    @pytest.mark.parametrize("policy", ["sobol", "ei"])
    def test_the_seconds_of_all_accounts_are_the_seconds_of_the_run(self, tmp_path, fake_time, policy):
        with line_study("25 evaluations", policy=Slow(policy, 0.5), storage=tmp_path / "study.db") as study:
            wall = self.check(study, lambda config: time.sleep(0.04) or config["x"] ** 2)
            ledger = study.ledger
            assert wall == pytest.approx(25 * 0.54, abs=0.01)
            assert ledger.account("evaluation", "seconds") == pytest.approx(25 * 0.04, abs=0.01)
            assert ledger.account("evaluation", "seconds") == pytest.approx(sum(t.cost for t in study.trials), abs=1e-4)
            assert ledger.account("optimiser", "seconds") == pytest.approx(25 * 0.5, abs=0.01)

    def test_a_second_run_adds_its_own_seconds_and_not_those_between(self, fake_time):
        study = line_study("8 evaluations")
        self.check(study, lambda config: time.sleep(0.02) or 1.0, [lambda study, trial: study.stop()])
        time.sleep(100.0)
        self.check(study, lambda config: time.sleep(0.02) or 1.0)
        assert seconds_of(study) == pytest.approx(8 * 0.02, abs=1e-3)

    def test_failures_and_interruptions_are_in_their_own_accounts(self, fake_time):
        def objective(config: dict[str, Any]) -> float:
            number = len(study.trials) - 1
            time.sleep((0.1, 0.2, 0.3, 0.5)[number])
            if number == 1:
                raise ValueError("boom")
            if number == 3:
                raise KeyboardInterrupt
            return 1.0

        study = line_study("10 evaluations")
        with pytest.raises(KeyboardInterrupt):
            self.check(study, objective)
        expected = {"evaluation": 0.1 + 0.3, "failed": 0.2, "interrupted": 0.5, "optimiser": 0.0}
        found = {name: study.ledger.account(name, "seconds") for name in study.ledger.accounts}
        assert found == pytest.approx(expected, abs=1e-3)

    def test_the_time_of_callbacks_is_in_the_ledger_including_the_last(self, fake_time):
        study = line_study("4 evaluations")
        wall = self.check(study, lambda config: 1.0, [lambda study, trial: time.sleep(0.15)])
        assert wall >= 0.6
        assert study.ledger.account("optimiser", "seconds") == pytest.approx(wall, abs=1e-3)

    def test_a_budget_of_seconds_ends_the_run(self, fake_time):
        start = time.perf_counter()
        study = run(lambda config: time.sleep(0.03) or 1.0, "0.4s", isolate=False)
        wall = time.perf_counter() - start
        assert study.ledger.reached == "seconds"
        assert wall >= 0.4
        assert wall - study.trials[-1].cost < 0.4, "the last trial began before the end"
        assert len(study.trials) == 14

    def test_the_optimisers_time_counts_towards_a_budget_of_seconds_but_not_of_compute(self, fake_time):
        """Evaluations take no time here: what ends one study never ends the other."""
        slow = Slow("sobol", 0.05)
        study = run(lambda config: 1.0, ft.Budget(seconds=0.1), policy=slow, isolate=False)
        assert study.ledger.account("optimiser") > study.ledger.account("evaluation")
        assert study.ledger.reached == "seconds"
        study = run(lambda config: 1.0, ft.Budget(compute_seconds=1.0, evaluations=30), policy=slow, isolate=False)
        assert study.ledger.account("optimiser", "compute_seconds") == 0.0
        assert study.ledger.reached == "evaluations"
        assert study.ledger.spent == pytest.approx(sum(trial.cost for trial in study.trials))

    def test_a_users_own_loop_is_charged_only_for_what_it_tells(self, fake_time):
        study = line_study("10 evaluations", policy="ei")
        for _ in range(10):
            proposal = study.ask()
            time.sleep(1.0)
            study.tell(proposal, value=proposal.config["x"])
        assert study.ledger.accounts == {"evaluation": {"evaluations": 10.0}}


@dataclass(frozen=True)
class Slow:
    """Takes its time, and then proposes what another policy does."""

    name: ClassVar[str] = "slow"
    policy: str
    seconds: float

    def propose(self, space, history, ledger, n, rng):
        time.sleep(self.seconds)
        return BY_NAME[self.policy]().propose(space, history, ledger, n, rng)


class TestPrices:
    @pytest.mark.parametrize("isolate", [False, True])
    def test_dollars_are_priced_by_time_the_optimisers_included(self, isolate):
        budget = ft.Budget(usd=100, usd_per_hour=3600, evaluations=5)
        study = run(lambda config: time.sleep(0.02) or 1.0, budget, isolate=isolate)
        ledger = study.ledger
        for account in ("evaluation", "optimiser"):
            priced, seconds = ledger.account(account, "usd"), ledger.account(account, "seconds")
            by_worker = isolate and account == "evaluation"  # which has a clock of its own
            assert priced == (pytest.approx(seconds, abs=2.0) if by_worker else pytest.approx(seconds, rel=1e-6))
            assert priced > 0.0
        assert ledger.account("evaluation", "usd") >= 5 * 0.02
        assert all(trial.cost >= 0.02 for trial in study.trials)
        assert ledger.spent == ledger.total("usd")

    def test_a_budget_of_dollars_ends_a_priced_run(self, fake_time):
        study = run(lambda config: time.sleep(0.02) or 1.0, ft.Budget(usd=0.1, usd_per_hour=3600), isolate=False)
        assert study.ledger.reached == "usd"
        assert len(study.trials) == 5

    def test_a_returned_cost_replaces_the_meter(self):
        study = run(lambda config: {"value": 1.0, "cost": 30.0}, "100s", isolate=False)
        assert len(study.trials) == 4
        assert [trial.cost for trial in study.trials] == [30.0] * 4
        assert study.ledger.account("evaluation", "seconds") == 120.0
        assert study.ledger.account("evaluation", "compute_seconds") < 60.0, "this was measured"

    def test_a_returned_cost_is_in_the_unit_of_the_budget(self):
        budget = ft.Budget(usd=1, usd_per_hour=1.0, seconds=50)
        study = run(lambda config: {"value": 1.0, "cost": 0.25}, budget, isolate=False)
        assert len(study.trials) == 4
        assert study.ledger.account("evaluation", "usd") == 1.0
        assert study.ledger.account("evaluation", "seconds") < 50.0

    @pytest.mark.parametrize("unit", ["usd", "joules", "cost"])
    def test_a_budget_that_nothing_measures_is_refused_and_the_error_says_what_to_do(self, unit):
        calls = []
        with pytest.raises(InvalidBudget, match=f"in {unit}, which nothing here measures") as refused:
            run(lambda config: calls.append(config) or 1.0, ft.Budget(**{unit: 5.0}))
        assert "'cost'" in str(refused.value)
        assert ("usd_per_hour" in str(refused.value)) == (unit == "usd")
        assert len(calls) == 1


class TestCallbacks:
    def test_they_are_called_in_order_with_the_study_and_the_trial_that_ended(self):
        calls = []

        def first(study: ft.Study, trial: ft.Trial) -> None:
            assert study.trials[-1] == trial
            calls.append(("first", study, trial.number, trial.status.value))

        def second(study: ft.Study, trial: ft.Trial) -> None:
            calls.append(("second", study, trial.number, trial.status.value))

        def objective(config: dict[str, Any]) -> float:
            if len(study.trials) == 2:
                raise ValueError("boom")
            return 1.0

        study = line_study("3 evaluations")
        study.run(objective, progress=False, callbacks=iter([first, second]))
        expected = [
            (name, study, number, status)
            for number, status in enumerate(["complete", "failed", "complete"])
            for name in ("first", "second")
        ]
        assert calls == expected

    def test_the_trial_is_on_disk_when_they_are_called(self, tmp_path):
        path = tmp_path / "study.db"

        def callback(study: ft.Study, trial: ft.Trial) -> None:
            with ft.Study.resume(path) as read:
                assert read.trials == study.trials

        run(lambda config: config["x"], "4 evaluations", storage=path, callbacks=[callback]).close()

    def test_values_are_in_the_users_sign(self):
        values = []
        study = run(
            lambda config: 7.0,
            "1 evaluation",
            maximize=True,
            callbacks=[lambda study, trial: values.append((trial.value, study.best.value))],
        )
        assert values == [(7.0, 7.0)]
        assert study.best.value == 7.0

    def test_stop_ends_the_run_there_and_the_next_run_goes_on(self):
        study = line_study("10 evaluations")

        def stop_at_third(study: ft.Study, trial: ft.Trial) -> None:
            if trial.number == 2:
                study.stop()

        study.run(lambda config: 1.0, progress=False, callbacks=[stop_at_third])
        assert len(study.trials) == 3
        assert study.ended is None
        study.run(lambda config: 1.0, progress=False)
        assert len(study.trials) == 10

    def test_stop_from_inside_the_objective_keeps_its_trial(self):
        def objective(config: dict[str, Any]) -> float:
            study.stop()
            return 1.0

        study = line_study("10 evaluations")
        study.run(objective, progress=False)
        assert [trial.status.value for trial in study.trials] == ["complete"]


class TestEnds:
    def test_a_run_ends_at_its_target(self):
        study = run(lambda config: config["x"], "200 evaluations", stop_at=-0.8)
        assert study.best.value <= -0.8
        assert all(trial.value > -0.8 for trial in study.trials[:-1])

    def test_a_run_ends_when_the_space_is_exhausted(self):
        space = ft.Space(a=ft.Integer(1, 4))
        study = ft.tune(lambda config: config["a"], space, "100 evaluations", seed=0, progress=False)
        assert sorted(trial.config["a"] for trial in study.trials) == [1, 2, 3, 4]

    def test_running_an_ended_study_calls_nothing(self):
        study = run(lambda config: 1.0, "2 evaluations")
        study.run(raises(AssertionError("called")), progress=False)
        assert len(study.trials) == 2

    def test_tune_is_a_study_that_was_run(self, tmp_path):
        def objective(config: dict[str, Any]) -> float:
            return config["x"] ** 2

        tuned = ft.tune(
            objective, LINE, "6 evaluations", policy="sobol", maximize=True, seed=3, storage=tmp_path / "study.db",
            start=[{"x": 0.5}], stop_at=2.0, progress=False, callbacks=[lambda study, trial: None],
        )  # fmt: skip
        study = line_study("6 evaluations", seed=3, maximize=True, start=[{"x": 0.5}], stop_at=2.0)
        study.run(objective, progress=False)
        assert [(t.config, t.value) for t in tuned.trials] == [(t.config, t.value) for t in study.trials]
        assert tuned.storage == str(tmp_path / "study.db")
        tuned.close()

    def test_run_resumes_what_was_asked_for_and_not_told(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study("3 evaluations", storage=path) as study:
            waiting = study.ask()
        with ft.Study.resume(path) as study:
            study.run(lambda config: config["x"], progress=False)
            assert len(study.trials) == 3
            assert study.trials[0].config == waiting.config

    def test_a_child_process_of_the_objective_changes_nothing(self, tmp_path):
        """A fork that exits on its own leaves the file to its parent."""

        def objective(config: dict[str, Any]) -> float:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            return config["x"]

        with run(objective, "3 evaluations", storage=tmp_path / "study.db") as study:
            assert len(study.trials) == 3
        with ft.Study.resume(tmp_path / "study.db") as again:
            assert again.trials == study.trials


def test_an_objective_that_cannot_be_called_is_refused_before_anything_is_spent():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "3 evaluations", seed=0)
    with pytest.raises(InvalidArgument, match="objective: expected a function"):
        study.run({"lr": 0.1}, progress=False)
    assert study.trials == []
