"""Iterative learners under `run`: pausing costs nothing, and resuming is replaying."""

from __future__ import annotations

import functools
import gc
import io
import logging
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidBudget
from farthing.runner import progress
from learners import (
    LINE,
    STEPS,
    Alternating,
    Halving,
    bodies,
    cost_of,
    curve_of,
    cut_copy,
    iterative,
    learner,
    saving,
    steps_from,
    value_at,
)

WHOLE = sum(map(cost_of, range(1, STEPS + 1)))  # what a complete training costs


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Failures are logged as warnings; they belong to these tests."""
    caplog.set_level(logging.INFO, logger="farthing")


def run(objective: Any, budget: str | ft.Budget | None = None, **options: Any) -> ft.Study:
    callbacks, keep = options.pop("callbacks", ()), options.pop("paused_limit", 32)
    return iterative(budget, **options).run(objective, progress=False, callbacks=callbacks, paused_limit=keep)


class TestFreezeAndThaw:
    """Pausing costs nothing."""

    def test_a_run_paused_ten_times_is_the_run_never_paused(self):
        """Every value depends on all draws before it; each step is trained and charged once."""
        calls, pauses = Counter(), Counter()

        def walk(config):
            calls[config["x"]] += 1
            rng, place = np.random.default_rng(int(1e9 * config["x"])), 5.0
            for step in range(1, 12):
                place += rng.normal()
                yield {"value": place, "cost": cost_of(step), "train_value": place - 1}

        def count(study, trial):
            pauses[trial.number] += trial.status is ft.Status.PAUSED

        study = run(walk, ft.Budget(cost=7 * 16.5), max_steps=11, callbacks=[count])
        complete = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
        assert len(complete) >= 5
        assert all(pauses[trial.number] == 10 for trial in complete)
        for trial in study.trials:
            straight = [step["value"] for step in walk(trial.config)][: len(trial.curve)]
            assert list(trial.curve.values) == straight
            assert trial.value == min(straight)
            assert trial.curve.train_values == tuple(value - 1 for value in straight)
            assert trial.curve.costs == tuple(cost_of(step) for step in range(1, len(straight) + 1))
            assert trial.cost == sum(trial.curve.costs)
        assert set(calls.values()) == {2}, "once by the study, once here"
        assert study.ledger.spent == study.ledger.account("evaluation") == sum(trial.cost for trial in study.trials)
        assert "retrained" not in study.ledger.accounts

    def slept(self, path: Path, evaluations: int, isolate: bool) -> tuple[ft.Study, int, float]:
        """Steps and beginnings of 4 ms, callbacks of 1 ms; also how many steps there were, and seconds by a clock."""

        def sleeper(config):
            time.sleep(0.004)
            for step in range(1, STEPS + 1):
                time.sleep(0.004)
                yield value_at(config, step)

        with iterative(ft.Budget(seconds=100, evaluations=evaluations), storage=path) as study:
            start = time.perf_counter()
            pause = [lambda study, trial: time.sleep(0.001)]
            study.run(sleeper, isolate=isolate, progress=False, callbacks=pause)
            wall = time.perf_counter() - start
        assert set(study.ledger.accounts) == {"evaluation", "optimiser"}
        return study, sum(len(trial.curve) for trial in study.trials), wall

    def test_metered_seconds_add_up_to_the_clock(self, tmp_path, fake_time):
        study, steps, wall = self.slept(tmp_path / "study.db", 10, isolate=False)
        evaluation, optimiser = (study.ledger.account(name, "seconds") for name in ("evaluation", "optimiser"))
        assert evaluation + optimiser == pytest.approx(wall, abs=1e-4)
        assert evaluation == pytest.approx(0.004 * (steps + len(study.trials)), abs=0.001)
        assert evaluation == pytest.approx(sum(trial.cost for trial in study.trials), abs=0.001)
        assert optimiser == pytest.approx(0.001 * steps, abs=0.01)

    def test_seconds_metered_in_worker_processes_stay_within_the_clock(self, tmp_path):
        study, steps, wall = self.slept(tmp_path / "study.db", 5, isolate=True)
        evaluation, optimiser = (study.ledger.account(name, "seconds") for name in ("evaluation", "optimiser"))
        assert evaluation + optimiser <= wall + 1e-6
        assert 0.004 * steps <= evaluation < wall - 0.001 * steps
        assert 0.004 * steps <= sum(trial.cost for trial in study.trials) < wall

    def test_an_interruption_charges_what_the_optimiser_spent_once(self, fake_time):
        """Slow decisions, then Ctrl-C in the middle of a step."""

        class Slow(Alternating):
            def decide(self, *args):
                time.sleep(0.05)
                return ft.Decision.CONTINUE

        def objective(config):
            for step in range(1, 5):
                yield value_at(config, step)
            raise KeyboardInterrupt

        study = iterative("1h", policy=Slow())
        start = time.perf_counter()
        study.run(objective, isolate=False, progress=False)
        wall = time.perf_counter() - start
        assert study.trials[0].status is ft.Status.INTERRUPTED
        assert study.ledger.total("seconds") == pytest.approx(wall, abs=1e-4)
        assert study.ledger.account("optimiser", "seconds") == pytest.approx(4 * 0.05, abs=1e-3)
        assert study.ledger.account("interrupted", "seconds") < 1e-3

    def test_a_live_run_is_pulled_again_even_if_it_looks_empty(self):
        """An iterator with a length of 0 is false, and yet alive."""
        begun = Counter()

        class Empty:
            def __init__(self, config):
                begun[config["x"]] += 1
                self._steps = learner(config)

            def __len__(self):
                return 0

            def __iter__(self):
                return self

            def __next__(self):
                return next(self._steps)

        study = run(Empty)
        assert set(begun.values()) == {1}
        assert "retrained" not in study.ledger.accounts


class TestKeepPaused:
    """What does not fit into memory starts again from its checkpoint, or from the beginning."""

    @pytest.mark.parametrize("maximize", [False, True])
    def test_the_worst_is_let_go_and_closed(self, tmp_path, maximize):
        closed = []

        def objective(config):
            try:
                for report in learner(config):
                    yield {**report, "value": -report["value"]} if maximize else report
            finally:
                closed.append((ft.current_run().trial, len(study.trial(ft.current_run().trial).curve)))

        def check(study, trial):
            study.stop_requested = len(study.trials) == 2
            if study.stop_requested:
                best = study.best.number
                assert closed == [(1 - best, 1)], "the worse of the two, in the middle of its training"
                assert [trial.kept_step for trial in study.trials] == [best == 0, best == 1]

        path = tmp_path / "study.db"
        with iterative(storage=path, maximize=maximize) as study:
            study.run(objective, progress=False, callbacks=[check], paused_limit=1)
            assert len(closed) == 2
            assert [trial.kept_step for trial in study.trials] == [0, 0]
        dropped = [body["trial"] for body in bodies(path, "dropped")]
        assert sorted(dropped) == [0, 1]
        assert dropped == [number for number, _ in closed]

    @pytest.mark.parametrize("keep", [0, 1])
    def test_without_checkpoints_it_is_trained_again_and_the_ledger_says_how_much(self, keep):
        trained = Counter()

        def objective(config):
            for step, report in enumerate(learner(config), start=1):
                trained[config["x"], step] += 1
                yield report

        study = run(objective, ft.Budget(cost=60), paused_limit=keep)
        assert study.count(ft.Status.COMPLETE) > 0, "it does come to an end"
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        again = sum((times - 1) * cost_of(step) for (_, step), times in trained.items())
        once = sum(cost_of(step) for _, step in trained)
        assert again > 0
        assert study.ledger.account("retrained") == again
        assert study.ledger.account("evaluation") == once

    def test_with_checkpoints_nothing_is_trained_twice(self):
        study = run(saving, paused_limit=0)
        assert study.count(ft.Status.COMPLETE) >= 3
        assert "retrained" not in study.ledger.accounts
        assert all(trial.curve.values == curve_of(trial.config, len(trial.curve)) for trial in study.trials)

    def test_a_checkpoint_written_on_the_way_out_counts(self):
        """A learner that saves when it is let go, and only then."""

        def objective(config):
            run = ft.current_run()
            file = run.checkpoint_dir / "state"
            step = int(file.read_text()) if file.exists() else 0
            assert step == run.step
            try:
                for report in steps_from(config, step):
                    step += 1
                    yield report
            finally:
                (ft.current_run().checkpoint_dir / "state").write_text(str(step))

        study = run(objective, paused_limit=1)
        assert study.count(ft.Status.COMPLETE) >= 3
        assert "retrained" not in study.ledger.accounts

    def test_a_policy_knows_from_where_a_run_would_go_on(self):
        seen = []

        class Watching(Alternating):
            def propose(self, space, history, ledger, n, rng):
                seen.append({trial.number: (trial.kept_step, len(trial.curve)) for trial in history.of("paused")})
                return super().propose(space, history, ledger, n, rng)

        def half(config):
            """Saves every second step."""
            run = ft.current_run()
            for step, report in enumerate(steps_from(config, run.step), start=run.step + 1):
                if step % 2 == 0:
                    (run.checkpoint_dir / "state").write_text(str(step))
                yield report

        study = run(half, policy=Watching(), paused_limit=0)
        paused = [pair for state in seen for pair in state.values()]
        assert all(kept == steps - steps % 2 for kept, steps in paused)
        assert {(0, 1), (2, 2), (2, 3), (4, 5)} <= set(paused)
        assert study.ledger.account("retrained") > 0

    @pytest.mark.parametrize("keep", [-1, 1.5, True, "2"])
    def test_a_number_that_is_none_is_refused(self, keep):
        with pytest.raises(InvalidArgument, match="paused_limit"):
            run(learner, paused_limit=keep)


class Closing:
    """A learner that is no generator and wants to be closed."""

    def __init__(self, closed: list[float], steps: Any) -> None:
        self._closed, self._steps = closed, steps

    def __next__(self) -> Any:
        step = next(self._steps)
        if isinstance(step, BaseException):
            raise step
        return step

    def close(self) -> None:
        self._closed.append(ft.current_run().trial)


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
        study = run(lambda config: iter(steps), ft.Budget(cost=4), policy="sobol")
        assert (study.trials[0].cost, study.trials[0].curve.costs) == (5.0, (2.0,))
        assert (study.ledger.account("evaluation"), study.ledger.account("failed")) == (2.0, 3.0)

    def test_the_error_is_the_users_own_traceback(self):
        def inner():
            return 1 / 0

        def objective(config):
            yield 1.0
            yield inner()

        error = run(objective, "1 evaluation", policy="sobol").trials[0].error
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

        study = run(objective, paused_limit=0)
        failed = [trial for trial in study.trials if trial.status is ft.Status.FAILED]
        assert failed
        assert all("no checkpoint" in trial.error and len(trial.curve) == 1 for trial in failed)

    @pytest.mark.parametrize("error", [ValueError("not now"), SystemExit(1), None], ids=repr)
    def test_what_a_learner_raises_while_it_is_closed_is_logged_and_no_more(self, caplog, error):
        def objective(config):
            try:
                yield from learner(config)
            finally:
                if error is None:
                    yield 0.0  # Python makes a RuntimeError of this
                raise error

        study = run(objective, ft.Budget(cost=10), max_steps=2, paused_limit=1)
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

    def test_a_budget_that_no_step_charges_is_refused_at_the_first(self):
        closed = []
        with pytest.raises(InvalidBudget, match="cost"):
            run(lambda config: Closing(closed, iter([3.0, 2.0])), ft.Budget(cost=5))
        assert closed == [0]


class TestLength:
    """How many steps a complete training has."""

    def test_one_that_ends_early_is_complete(self):
        study = run(lambda config: steps_from(config, 0, 3), "2 evaluations", policy="sobol")
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [("complete", 3)] * 2
        assert study.ledger.total("evaluations") == 2.0

    def test_one_that_goes_on_is_stopped_at_max_steps_and_closed(self):
        closed = []

        def forever(config):
            step = 0
            try:
                while True:
                    step += 1
                    yield value_at(config, step)
            finally:
                closed.append(step)

        study = run(forever, "2 evaluations", policy="sobol")
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [("complete", STEPS)] * 2
        assert closed == [STEPS, STEPS], "not one step more"

    def test_unset_the_first_training_says_it_and_nobody_may_pause_that(self, tmp_path):
        lengths = iter([4, 9, 2, 9, 9, 9, 9, 9, 9, 9])
        path = tmp_path / "study.db"
        with iterative("4 evaluations", max_steps=None, policy=Alternating(width=1), storage=path) as study:
            study.run(
                lambda config: steps_from(config, 0, next(lengths)),
                progress=False,
                callbacks=[lambda study, trial: study.stop() if trial.number == 1 else None],
            )
            assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [
                ("complete", 4),
                ("paused", 1),
            ]
        with ft.Study.resume(path, policy=Alternating(width=1)) as study:
            study.run(lambda config: steps_from(config, ft.current_run().step, 9), progress=False)
            assert {len(trial.curve) for trial in study.trials if trial.status is ft.Status.COMPLETE} == {4}

    def test_unset_a_first_training_that_failed_says_nothing(self):
        made = iter([iter([3.0, math.nan]), iter([3.0, 2.0, 1.0]), iter([3.0, 2.0, 1.0, 0.0])])
        study = run(lambda config: next(made), "3 evaluations", policy="sobol", max_steps=None)
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [
            ("failed", 1), ("complete", 3), ("complete", 3),
        ]  # fmt: skip

    def test_unset_and_cut_short_the_first_training_goes_on_to_its_end(self, tmp_path):
        """First by the budget, then by Ctrl-C; the whole of it counts."""
        path = tmp_path / "study.db"
        with iterative(ft.Budget(cost=1.5), max_steps=None, storage=path) as study:
            study.run(saving, progress=False)
            assert (study.trials[0].status, len(study.trials[0].curve)) == (ft.Status.PAUSED, 3)

        def interrupted(config):
            steps = saving(config)
            yield next(steps)
            raise KeyboardInterrupt

        with ft.Study.resume(path, policy=Alternating(), budget=ft.Budget(cost=50)) as study:
            study.run(interrupted, progress=False)
            assert (study.trials[0].status, len(study.trials[0].curve)) == (ft.Status.INTERRUPTED, 4)

        def unequal(config):
            run = ft.current_run()
            return steps_from(config, run.step, 8 if run.trial == 0 else 12)

        with ft.Study.resume(path, policy=Alternating()) as study:
            study.run(unequal, progress=False)
            complete = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
            assert complete[0].number == 0
            assert [len(trial.curve) for trial in complete] == [8] * len(complete)
            assert len(complete) > 1

    def test_a_plain_function_stays_a_black_box(self):
        study = run(lambda config: config["x"], "4 evaluations", max_steps=None, policy="sobol")
        assert all(len(trial.curve) == 0 for trial in study.trials)
        assert study.best.value == min(trial.config["x"] for trial in study.trials)

    @pytest.mark.parametrize("steps", [0, -1, 1.5, True, "9"])
    def test_a_length_that_is_none_is_refused(self, steps):
        with pytest.raises(InvalidArgument, match="max_steps"):
            iterative(max_steps=steps)


class Counting:
    """Counts down: an iterator without __iter__."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._steps = learner(config)

    def __next__(self) -> Any:
        return next(self._steps)


class CallableObject:
    def __call__(self, config: dict[str, Any]) -> Any:
        return learner(config)

    def method(self, config: dict[str, Any]) -> Any:
        yield from learner(config)


def with_options(scale: float, config: dict[str, Any]) -> Any:
    yield from learner(config)


class TestIterators:
    @pytest.mark.parametrize(
        "objective",
        [
            learner,
            Counting,
            CallableObject(),
            CallableObject().method,
            functools.partial(with_options, 2.0),
            lambda config: iter(list(learner(config))),
            lambda config: map(dict, learner(config)),
            lambda config: (report for report in learner(config)),
        ],
        ids=["generator", "__next__", "object", "method", "partial", "list", "map", "expression"],
    )
    def test_whatever_has_a_next_step_is_a_learner(self, objective):
        study = run(objective)
        assert study.trials == run(learner).trials
        assert study.count(ft.Status.COMPLETE) >= 3

    def test_numpy_numbers_are_values_costs_and_attributes(self, tmp_path):
        def objective(config):
            for step in range(3):
                yield {
                    "value": np.float32(step), "cost": np.float32(1), "train_value": np.int64(step),
                    "norm": np.float32(0.5), "saved": True,
                }  # fmt: skip

        with iterative(ft.Budget(cost=3), policy="sobol", storage=tmp_path / "study.db") as study:
            study.run(objective, progress=False)
            trial = study.trials[0]
        assert (trial.curve.values, trial.curve.costs) == ((0.0, 1.0, 2.0), (1.0, 1.0, 1.0))
        assert trial.curve.train_values == (0.0, 1.0, 2.0)
        assert dict(trial.attributes) == {"norm": 0.5, "saved": True}
        assert trial.saved_step == 0
        with ft.Study.resume(tmp_path / "study.db") as again:
            assert again.trials[0] == trial

    def test_a_train_value_that_is_none_is_left_out(self):
        given = iter([math.nan, "low", None, 1.0])
        study = run(lambda config: ({"value": 1.0, "train_value": t} for t in given), "1 trial", policy="sobol")
        assert study.trials[0].curve.train_values == (None, None, None, 1.0)


class TestTheEndOfABudget:
    """A training that the budget does not see to its end is paused, and goes on when there is more."""

    @pytest.mark.parametrize(
        "policy", ["sobol", Alternating(stride=4), Alternating(stride=3)], ids=["black box", "goes on", "would pause"]
    )
    @pytest.mark.parametrize("objective", [learner, saving])
    def test_it_goes_on_with_a_larger_budget(self, tmp_path, policy, objective):
        path = tmp_path / "study.db"
        with iterative(ft.Budget(cost=1.5), policy=policy, storage=path) as study:
            study.run(objective, progress=False)
            first = study.trials[0]
            assert (first.status, len(first.curve)) == (ft.Status.PAUSED, 3)
            assert "1.5 cost is spent" in first.error
            assert study.best.number == 0
        given = policy if isinstance(policy, Alternating) else None
        with ft.Study.resume(path, policy=given, budget=ft.Budget(cost=60)) as study:
            assert study.trials[0].kept_step == (3 if objective is saving else 0)
            study.run(objective, progress=False)
            assert study.trials[0].status is ft.Status.COMPLETE
            assert study.trials[0].curve.values == curve_of(study.trials[0].config)
            again = study.ledger.account("retrained")
        if objective is saving:
            assert again == 0.0
            straight = run(saving, ft.Budget(cost=60), policy=policy)
            assert [t.config for t in straight.trials] == [t.config for t in study.trials]
            assert [t.curve for t in straight.trials] == [t.curve for t in study.trials]
        else:
            assert again >= sum(map(cost_of, (1, 2, 3)))

    def test_a_study_in_memory_goes_on_from_its_checkpoints_too(self):
        """As in a notebook: interrupted, and run again."""
        study = iterative()

        def stopper(study, trial):
            if len(study.trials) == 3:
                raise KeyboardInterrupt

        study.run(saving, progress=False, callbacks=[stopper])
        assert [trial.kept_step for trial in study.trials] == [1, 1, 1]
        study.run(saving, progress=False)
        assert "retrained" not in study.ledger.accounts
        straight = run(saving)
        assert [trial.curve for trial in study.trials] == [trial.curve for trial in straight.trials]

    def test_a_target_ends_a_study_in_the_middle_of_a_training(self):
        study = run(learner, policy="sobol", stop_at=0.6)
        last = study.trials[-1]
        assert last.status is ft.Status.PAUSED
        assert last.value <= 0.6 < min([1.0, *last.curve.values[:-1]])
        assert study.best == last

    def test_black_box_policies_train_completely(self):
        for policy in ("ei", "carbo"):
            study = run(learner, ft.Budget(cost=9 * WHOLE), policy=policy)
            assert [trial.status.value for trial in study.trials] == ["complete"] * 9


class TestEvaluations:
    def test_a_trial_counts_once_however_often_it_is_paused(self):
        study = run(learner, ft.Budget(cost=40, evaluations=100))
        assert study.count(ft.Status.PAUSED) > 0
        assert study.ledger.total("evaluations") == len(study.trials)

    def test_an_interrupted_one_counts_when_it_is_over(self):
        def objective(config):
            yield 1.0
            if study.ledger.account("interrupted", "seconds") == 0.0:
                raise KeyboardInterrupt
            yield 0.5

        study = iterative("2 evaluations", policy="sobol")
        study.run(objective, progress=False)
        assert study.ledger.total("evaluations") == 0.0
        study.run(objective, progress=False)
        assert study.ledger.total("evaluations") == 2.0
        assert [trial.status.value for trial in study.trials] == ["complete"] * 2


class TestPolicies:
    """What a policy may say, and what happens where it is wrong."""

    def test_the_study_knows_where_a_paused_trial_goes_on(self):
        """Not the policy that forgot to say, or has another config in mind."""

        class Forgetful(Alternating):
            def propose(self, *args):
                return [replace(p, start_step=0, config={"x": 0.5}) for p in super().propose(*args)]

        study = run(learner, policy=Forgetful())
        assert "retrained" not in study.ledger.accounts
        assert all(trial.curve.values == curve_of(trial.config, len(trial.curve)) for trial in study.trials)

    def test_a_trial_that_is_over_cannot_be_proposed(self):
        class Stubborn(Alternating):
            def propose(self, space, history, ledger, n, rng):
                return [ft.Proposal(0, {"x": 0.5})]

        with pytest.raises(InvalidArgument, match="trial 0, which is complete: only paused"):
            run(lambda config: steps_from(config, 0, 1), policy=Stubborn(), max_steps=1)

    def test_a_stopped_trial_is_closed_and_stays(self):
        closed = []

        class Stopping(Alternating):
            def decide(self, space, history, ledger, trial, rng):
                return "stop" if trial.kept_step == 2 else "continue"  # as text is fine too

        study = run(
            lambda config: Closing(closed, learner(config)), ft.Budget(cost=9, evaluations=4), policy=Stopping()
        )
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [("stopped", 2)] * 4
        assert closed == [0, 1, 2, 3]
        assert study.best.value == min(value_at(trial.config, 2) for trial in study.trials)
        assert study.ledger.account("evaluation", "evaluations") == 4.0

    def test_until_step_pauses_where_it_says_also_without_decide(self):
        class Rungs:
            name = "rungs"

            def propose(self, space, history, ledger, n, rng):
                paused = history.of(ft.Status.PAUSED)
                if len(paused) == 2:
                    return [ft.Proposal(paused[0].number, paused[0].config, until_step=2 * len(paused[0].curve))]
                return [ft.Proposal(len(history.trials), {"x": float(rng.random())}, until_step=2)]

        lengths = []
        run(learner, policy=Rungs(), callbacks=[lambda study, trial: lengths.append((trial.number, len(trial.curve)))])
        assert lengths[:6] == [(0, 2), (1, 2), (0, 4), (0, 6), (2, 2), (1, 4)]


class TestCtrlC:
    SCRIPT = """
        import sys, time
        sys.path.insert(0, sys.argv[2])
        import farthing as ft
        from learners import iterative, saving, learner

        def objective(config):
            run = ft.current_run()
            for step, report in enumerate((saving if sys.argv[3] == "saving" else learner)(config), run.step + 1):
                if (run.trial, step) == (2, 2):
                    print("now", flush=True)
                    time.sleep(30)
                yield report

        with iterative(storage=sys.argv[1]) as study:
            study.run(objective, progress=False)
            print(*[trial.status.value for trial in study.trials], *[trial.kept_step for trial in study.trials])
        """

    @pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")
    @pytest.mark.parametrize("objective", [learner, saving])
    def test_in_the_middle_of_a_step_and_the_study_goes_on(self, tmp_path, objective):
        path, script = tmp_path / "study.db", textwrap.dedent(self.SCRIPT)
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(Path(__file__).parent.parent), objective.__name__],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout.readline() == "now\n"
        child.send_signal(signal.SIGINT)
        said, errors = child.communicate(timeout=30)
        assert child.returncode == 0, errors
        kept = "1" if objective is saving else "0"
        # trials 0 and 1 had two steps when trial 2 was in its second
        expected = ["2", "2", kept] if objective is saving else ["0", "0", "0"]
        assert said.split() == ["paused", "paused", "interrupted", *expected]
        with ft.Study.resume(path, policy=Alternating()) as study:
            assert study.ledger.account("interrupted", "evaluations") == 0.0
            study.run(objective, progress=False)
            straight = run(objective)
            if objective is saving:
                assert [trial.curve for trial in study.trials] == [trial.curve for trial in straight.trials]
                assert "retrained" not in study.ledger.accounts
            else:
                assert study.ledger.account("retrained") == sum(map(cost_of, (1, 2, 1, 2, 1)))
            assert study.trials[2].status is not ft.Status.INTERRUPTED


def asked(path: Path) -> list[Any]:
    """What was asked for; what was asked for again under the same ask is the same."""
    first: dict[tuple[int, int], Any] = {}
    for body in bodies(path, "asked"):
        first.setdefault((body["ask"], body["trial"]), (body["config"], body["start_step"], body["until_step"]))
    return list(first.items())


class TestReplay:
    """Cut after any event, a study goes on to the same end."""

    @pytest.mark.parametrize("policy", [Alternating(width=2, stride=2), Halving(), "sobol"], ids=lambda p: str(p)[:9])
    def test_a_file_cut_after_any_event_goes_on_as_if_nothing_had_happened(self, tmp_path, policy):
        whole, path = tmp_path / "whole.db", tmp_path / "cut.db"
        budget = ft.Budget(cost=5.5)
        with iterative(budget, max_steps=4, policy=policy, storage=whole) as study:
            study.run(saving, progress=False)
        kinds = [body["kind"] for body in bodies(whole)]
        assert {"asked", "reported", "told"} <= set(kinds)
        last = max(number for number, kind in enumerate(kinds, start=1) if kind == "told")
        for kept in range(2, last, 1 if isinstance(policy, Alternating) else 2):
            cut_copy(whole, path, kept)
            (tmp_path / "cut.db.checkpoints").unlink(missing_ok=True)
            (tmp_path / "cut.db.checkpoints").symlink_to(tmp_path / "whole.db.checkpoints")
            given = None if isinstance(policy, str) else policy
            with ft.Study.resume(path, policy=given) as again:
                again.run(saving, progress=False)
                where = f"cut after event {kept}, {kinds[kept - 1]}"
                assert asked(path) == asked(whole), where
                assert again.trials == study.trials, where
                for unit in ("cost", "evaluations"):
                    assert again.ledger.total(unit) == study.ledger.total(unit), where
                assert "retrained" not in again.ledger.accounts, where

    def test_what_was_decided_already_is_not_trained_again(self, tmp_path):
        """Killed between a step and what follows from it: nothing is trained to find out what was known."""
        whole, path = tmp_path / "whole.db", tmp_path / "cut.db"
        with iterative(policy=Alternating(width=1, stride=3), storage=whole) as study:
            study.run(learner, progress=False, callbacks=[lambda study, trial: trial.number == 1 and study.stop()])
        events = [(body["kind"], body.get("trial")) for body in bodies(whole)]
        ends = [number for number, (kind, _) in enumerate(events, start=1) if kind == "told"]
        assert len(ends) == 3  # paused, complete, paused
        for end, status in zip(ends, ("paused", "complete", "paused"), strict=True):
            cut_copy(whole, path, end - 1)
            with ft.Study.resume(path, policy=Alternating(width=1, stride=3)) as again:
                number = events[end - 1][1]
                assert again.trials[number].status is ft.Status.INTERRUPTED
                again.ask()
            told = bodies(path, "told")[-1]
            assert (told["trial"], told["status"]) == (number, status)
            assert len(bodies(path, "reported")) == len([kind for kind, _ in events[:end] if kind == "reported"])

    def test_reading_a_study_that_runs_changes_nothing(self, tmp_path):
        path = tmp_path / "study.db"

        def reader(study, trial):
            before = bodies(path)
            with ft.Study.resume(path, policy=Alternating()) as read:
                assert [t.curve for t in read.trials] == [t.curve for t in study.trials]
                assert read.ledger.spent == study.ledger.spent
            assert bodies(path) == before

        with iterative(ft.Budget(cost=10), storage=path) as study:
            study.run(learner, progress=False, callbacks=[reader])

    def test_memory_and_file_agree_however_many_are_kept(self, tmp_path):
        for seed in range(3):
            path = tmp_path / f"study-{seed}.db"
            with iterative(ft.Budget(cost=8), policy=Halving(), storage=path, seed=seed) as study:
                study.run(saving, progress=False, paused_limit=seed)
            with ft.Study.resume(path, policy=Halving()) as again:
                assert again.trials == study.trials
                assert again.ledger == study.ledger


class TestShown:
    """Callbacks and lines come for each trial that ends or rests."""

    def shown(self, objective: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[ft.Study, list[str]]:
        written = io.StringIO()
        monkeypatch.setattr(sys, "stderr", written)
        study = iterative(**options)
        study.run(objective, progress=True)
        return study, written.getvalue().splitlines()

    def test_a_line_for_each_rest_and_each_end(self, monkeypatch):
        _, lines = self.shown(learner, monkeypatch, budget=ft.Budget(cost=8), policy=Alternating(width=1, stride=3))
        assert lines[0].startswith("trial 0: paused after step 3, value ")
        assert ", cost 1.5 cost; best " in lines[0]
        assert "0 done, 1 paused, " in lines[0]
        assert lines[1].startswith("trial 0: value ")
        assert "1 done, " in lines[1]
        assert "paused" not in lines[1]
        assert lines[3].startswith("trial 1: paused after step 5, value "), "the budget was spent"
        assert len(lines) == 4

    def test_a_failure_after_some_steps_is_shown_as_one(self, monkeypatch):
        _, lines = self.shown(lambda config: iter([1.0, math.nan]), monkeypatch, budget="2 evaluations", policy="sobol")
        assert lines[0].startswith("trial 0: failed: the value must be finite, got nan, cost ")
        assert "best none yet, 0 done, 1 failed" in lines[0]

    def test_stopped_ones_are_counted(self, monkeypatch):
        _, lines = self.shown(learner, monkeypatch, policy=Halving(), budget=ft.Budget(cost=10))
        assert any("stopped after step" in line for line in lines)
        assert any(" stopped, " in line.partition(";")[2] for line in lines)

    def test_the_live_line_counts_no_step_twice(self, fake_time):
        """Its bar shows what the ledger says and the time since then, not the time since the training began."""
        study = iterative("10s", policy="sobol", max_steps=None)
        line = progress.Live(study, io.StringIO())

        def objective(config):
            for _ in range(4):
                time.sleep(0.05)
                yield 1.0
                line.stepped()
                assert line._fraction_now() < 0.03 * len(study.trials)
            study.stop()

        line.asked(ft.Proposal(0, {}))
        study.run(objective, isolate=False, progress=False)
        assert line._fraction_now() < 0.04
        assert "1 done" in progress.summary(study)

    def test_callbacks_may_look_at_everything(self):
        seen = []

        def look(study, trial):
            seen.append((trial.number, trial.status.value, len(trial.curve)))
            assert trial == study.trials[trial.number]
            repr(study), str(study.ledger), study.best, study.to_frame(), study.recommended

        study = run(learner, ft.Budget(cost=12), callbacks=[look])
        assert seen[:4] == [(0, "paused", 1), (1, "paused", 1), (2, "paused", 1), (0, "paused", 2)]
        assert len(seen) == sum(len(trial.curve) for trial in study.trials)

    def test_a_callback_can_stop_a_run_while_others_rest_and_it_goes_on(self):
        study = iterative()
        study.run(learner, progress=False, callbacks=[lambda study, trial: study.stop()])
        assert [trial.status.value for trial in study.trials] == ["paused"]
        study.run(learner, progress=False)
        assert study.ledger.account("retrained") == cost_of(1)


def test_a_long_training_takes_time_in_proportion():
    """Ten times the steps do not take a hundred times the processor time."""

    def seconds(steps):
        study = ft.Study(LINE, "1 evaluation", policy="random", seed=0)
        start = time.process_time()
        study.run(lambda config: iter([1.0] * steps), progress=False)
        assert len(study.trials[0].curve) == steps
        return time.process_time() - start

    seconds(10)
    gc.collect()
    assert seconds(2000) < 30 * seconds(200) + 0.1
