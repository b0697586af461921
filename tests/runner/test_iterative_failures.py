"""Trainings that fail: the reason and the curve are kept, the cost is charged, the learner is closed."""

from __future__ import annotations

import math
import os
import time
from collections import Counter

import pytest

import farthing as ft
from farthing.errors import InvalidBudget
from learners import (
    Alternating,
    Closing,
    curve_of,
    iterative,
    learner,
    run_iterative,
)

pytestmark = pytest.mark.usefixtures("logged")


class TestFailures:
    """In the middle of a training: failed with its reason, the curve kept, the cost charged, the learner closed."""

    BAD = (
        (ValueError("boom"), "ValueError: boom"),
        (SystemExit(3), "SystemExit: 3"),
        (MemoryError(), "MemoryError"),
        (math.nan, "finite, got nan"),
        (-math.inf, "finite, got -inf"),
        (None, "number, got NoneType"),
        ("0.5", "text '0.5'"),
        ([0.5], "number, got list"),
        ({}, "no 'value'"),
        ({"loss": 1.0}, "no 'value', only 'loss'"),
        ({"value": math.nan}, "finite"),
        ({"value": 1.0, "cost": -1.0}, "cost: expected a finite number of at least 0, got -1"),
        ({"value": 1.0, "cost": math.nan}, "cost: expected"),
        ({"value": 1.0, "cost": "much"}, "cost: expected"),
    )

    @pytest.mark.parametrize(("bad", "reason"), BAD)
    @pytest.mark.parametrize("generator", [True, False])
    def test_it_is_a_failed_trial_with_its_reason(self, tmp_path, bad, reason, generator):
        closed = []

        def steps(fails):
            try:
                for step in (3.0, 2.0, bad if fails else 1.0, 0.5):
                    time.sleep(0.001)
                    if isinstance(step, BaseException) and generator:
                        raise step
                    yield step
            finally:
                if generator:
                    closed.append(ft.current_run().trial)

        def objective(config):
            made = steps(fails=ft.current_run().trial == 1)
            return made if generator else Closing(closed, made)

        path = tmp_path / "study.db" if isinstance(bad, float | ValueError) else None  # files take their time
        with iterative("3 evaluations", policy="sobol", max_steps=4, storage=path) as study:
            study.run(objective, progress=False)
            failed = study.trials[1]
            assert [trial.status.value for trial in study.trials] == ["complete", "failed", "complete"]
            assert reason in failed.error
            assert failed.curve.values == (3.0, 2.0)
            assert failed.value == 2.0
            assert failed.cost > sum(failed.curve.costs) >= 0.002
            assert study.ledger.account("failed", "seconds") >= 0.001
            assert study.ledger.account("failed", "evaluations") == 1.0
            assert study.ledger.account("evaluation", "evaluations") == 2.0
            assert closed == [0, 1, 2]
        if path is not None:
            with ft.Study.resume(path) as again:
                assert again.trials == study.trials
                assert again.ledger == study.ledger

    def test_a_reported_cost_of_a_failing_step_is_charged(self):
        steps = [{"value": 1.0, "cost": 2.0}, {"value": math.nan, "cost": 3.0}]
        study = run_iterative(lambda config: iter(steps), ft.Budget(cost=4), policy="sobol")
        assert (study.trials[0].cost, study.trials[0].curve.costs) == (5.0, (2.0,))
        assert (study.ledger.account("evaluation"), study.ledger.account("failed")) == (2.0, 3.0)

    def test_the_error_is_the_users_own_traceback(self):
        def inner():
            return 1 / 0

        def objective(config):
            yield 1.0
            yield inner()

        error = run_iterative(objective, "1 evaluation", policy="sobol").trials[0].error
        assert error.splitlines()[-1] == "ZeroDivisionError: division by zero"
        assert "in inner" in error
        assert os.path.join("farthing", "runner") not in error

    def test_an_objective_that_fails_when_it_is_begun_again_keeps_its_curve(self):
        begun = Counter()

        def objective(config):
            begun[config["x"]] += 1
            if begun[config["x"]] > 1:
                raise OSError("no checkpoint")
            return learner(config)

        study = run_iterative(objective, paused_limit=0)
        failed = [trial for trial in study.trials if trial.status is ft.Status.FAILED]
        assert failed
        assert all("no checkpoint" in trial.error and len(trial.curve) == 1 for trial in failed)

    @pytest.mark.parametrize("error", [ValueError("not now"), SystemExit(1), None], ids=repr)
    def test_an_error_of_a_learner_that_is_being_closed_is_only_logged(self, caplog, error):
        def objective(config):
            try:
                yield from learner(config)
            finally:
                if error is None:
                    yield 0.0  # Python makes a RuntimeError of this
                raise error

        study = run_iterative(objective, ft.Budget(cost=10), max_steps=2, paused_limit=1)
        assert study.count(ft.Status.COMPLETE) >= 2
        assert study.count(ft.Status.FAILED) == 0
        assert "while it was closed" in caplog.text

    def test_a_learner_is_closed_when_something_else_breaks(self):
        closed = []

        class Broken(Alternating):
            def decide(self, *args):
                raise ZeroDivisionError("in the policy")

        study = iterative(policy=Broken())
        with pytest.raises(ZeroDivisionError, match="in the policy"):
            study.run(lambda config: Closing(closed, learner(config)), progress=False)
        assert closed == [0]
        assert study.trials[0].status is ft.Status.INTERRUPTED
        assert study.trials[0].curve.values == curve_of(study.trials[0].config, 1)

    def test_a_budget_that_no_step_charges_is_refused_after_the_first_step(self):
        closed = []
        with pytest.raises(InvalidBudget, match="cost"):
            run_iterative(lambda config: Closing(closed, iter([3.0, 2.0])), ft.Budget(cost=5))
        assert closed == [0]
