"""Iterative learners under `run`: what they may be, how long they are, and that pausing costs nothing."""

from __future__ import annotations

import functools
import gc
import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from learners import (
    LINE,
    STEPS,
    Alternating,
    Closing,
    bodies,
    cost_of,
    curve_of,
    iterative,
    learner,
    run_iterative,
    saving,
    steps_from,
    value_at,
)

WHOLE = sum(map(cost_of, range(1, STEPS + 1)))  # what a complete training costs

pytestmark = pytest.mark.usefixtures("logged")


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

        study = run_iterative(walk, ft.Budget(cost=7 * 16.5), max_steps=11, callbacks=[count])
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
        accounts = set(study.ledger.accounts)
        if isolate:  # what was trained for less than a process takes to start may be trained again
            accounts -= {"start-up", "retrained"}
        assert accounts == {"evaluation", "optimiser"}
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

    def test_a_paused_run_in_memory_goes_on_even_if_its_length_is_0(self):
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

        study = run_iterative(Empty)
        assert set(begun.values()) == {1}
        assert "retrained" not in study.ledger.accounts


class TestKeepPaused:
    """Beyond the limit of paused trainings, one starts again from its checkpoint, or from the beginning."""

    @pytest.mark.parametrize("maximize", [False, True])
    def test_the_worst_one_is_closed(self, tmp_path, maximize):
        closed = []

        def objective(config):
            try:
                for report in learner(config):
                    yield {**report, "value": -report["value"]} if maximize else report
            finally:
                closed.append((ft.current_run().trial, len(study.trial(ft.current_run().trial).curve)))

        def check(study, trial):
            if len(study.trials) == 2:
                study.stop()
                best = study.best.number
                assert closed == [(1 - best, 1)], "the worse of the two, in the middle of its training"
                assert [trial.kept_step for trial in study._history.trials] == [best == 0, best == 1]

        path = tmp_path / "study.db"
        with iterative(storage=path, maximize=maximize) as study:
            study.run(objective, progress=False, callbacks=[check], paused_limit=1)
            assert len(closed) == 2
            assert [trial.kept_step for trial in study._history.trials] == [0, 0]
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

        study = run_iterative(objective, ft.Budget(cost=60), paused_limit=keep)
        assert study.count(ft.Status.COMPLETE) > 0, "it does come to an end"
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        again = sum((times - 1) * cost_of(step) for (_, step), times in trained.items())
        once = sum(cost_of(step) for _, step in trained)
        assert again > 0
        assert study.ledger.account("retrained") == again
        assert study.ledger.account("evaluation") == once

    def test_with_checkpoints_nothing_is_trained_twice(self):
        study = run_iterative(saving, paused_limit=0)
        assert study.count(ft.Status.COMPLETE) >= 3
        assert "retrained" not in study.ledger.accounts
        assert all(trial.curve.values == curve_of(trial.config, len(trial.curve)) for trial in study.trials)

    def test_a_checkpoint_written_on_the_way_out_counts(self):
        """A learner that saves when it is closed, and only then."""

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

        study = run_iterative(objective, paused_limit=1)
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

        study = run_iterative(half, policy=Watching(), paused_limit=0)
        paused = [pair for state in seen for pair in state.values()]
        assert all(kept == steps - steps % 2 for kept, steps in paused)
        assert {(0, 1), (2, 2), (2, 3), (4, 5)} <= set(paused)
        assert study.ledger.account("retrained") > 0

    @pytest.mark.parametrize("keep", [-1, 1.5, True, "2"])
    def test_an_invalid_number_is_refused(self, keep):
        with pytest.raises(InvalidArgument, match="paused_limit"):
            run_iterative(learner, paused_limit=keep)


class TestLength:
    """How many steps a complete training has."""

    def test_one_that_ends_early_is_complete(self):
        study = run_iterative(lambda config: steps_from(config, 0, 3), "2 evaluations", policy="sobol")
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

        study = run_iterative(forever, "2 evaluations", policy="sobol")
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [("complete", STEPS)] * 2
        assert closed == [STEPS, STEPS], "not one step more"

    def test_without_max_steps_the_first_training_sets_it_and_cannot_be_paused(self, tmp_path):
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

    def test_without_max_steps_a_first_training_that_failed_does_not_set_it(self):
        made = iter([iter([3.0, math.nan]), iter([3.0, 2.0, 1.0]), iter([3.0, 2.0, 1.0, 0.0])])
        study = run_iterative(lambda config: next(made), "3 evaluations", policy="sobol", max_steps=None)
        assert [(trial.status.value, len(trial.curve)) for trial in study.trials] == [
            ("failed", 1), ("complete", 3), ("complete", 3),
        ]  # fmt: skip

    def test_without_max_steps_a_first_training_that_was_cut_short_goes_on_to_its_end(self, tmp_path):
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
        study = run_iterative(lambda config: config["x"], "4 evaluations", max_steps=None, policy="sobol")
        assert all(len(trial.curve) == 0 for trial in study.trials)
        assert study.best.value == min(trial.config["x"] for trial in study.trials)

    @pytest.mark.parametrize("steps", [0, -1, 1.5, True, "9"])
    def test_an_invalid_length_is_refused(self, steps):
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
    def test_anything_with_a_next_step_is_a_learner(self, objective):
        study = run_iterative(objective)
        assert study.trials == run_iterative(learner).trials
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
            trial = study._history.trials[0]
        assert (trial.curve.values, trial.curve.costs) == ((0.0, 1.0, 2.0), (1.0, 1.0, 1.0))
        assert trial.curve.train_values == (0.0, 1.0, 2.0)
        assert dict(trial.attributes) == {"norm": 0.5, "saved": True}
        assert trial.saved_step == 0
        with ft.Study.resume(tmp_path / "study.db") as again:
            assert again._history.trials[0] == trial

    def test_an_invalid_train_value_is_left_out(self):
        given = iter([math.nan, "low", None, 1.0])
        study = run_iterative(
            lambda config: ({"value": 1.0, "train_value": t} for t in given), "1 trial", policy="sobol"
        )
        assert study.trials[0].curve.train_values == (None, None, None, 1.0)


class TestPolicies:
    """What a policy may say, and what happens where it is wrong."""

    def test_the_study_knows_where_a_paused_trial_goes_on(self):
        """Not the policy that forgot to say, or has another config in mind."""

        class Forgetful(Alternating):
            def propose(self, *args):
                return [replace(p, start_step=0, config={"x": 0.5}) for p in super().propose(*args)]

        study = run_iterative(learner, policy=Forgetful())
        assert "retrained" not in study.ledger.accounts
        assert all(trial.curve.values == curve_of(trial.config, len(trial.curve)) for trial in study.trials)

    def test_a_trial_that_is_over_cannot_be_proposed(self):
        class Stubborn(Alternating):
            def propose(self, space, history, ledger, n, rng):
                return [ft.Proposal(0, {"x": 0.5})]

        with pytest.raises(InvalidArgument, match="trial 0, which is complete: only paused"):
            run_iterative(lambda config: steps_from(config, 0, 1), policy=Stubborn(), max_steps=1)

    def test_a_stopped_trial_is_closed_and_stays(self):
        closed = []

        class Stopping(Alternating):
            def decide(self, space, history, ledger, trial, rng):
                return "stop" if trial.kept_step == 2 else "continue"  # as text is fine too

        study = run_iterative(
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
        run_iterative(
            learner, policy=Rungs(), callbacks=[lambda study, trial: lengths.append((trial.number, len(trial.curve)))]
        )
        assert lengths[:6] == [(0, 2), (1, 2), (0, 4), (0, 6), (2, 2), (1, 4)]


class TestEvaluations:
    def test_a_trial_counts_once_however_often_it_is_paused(self):
        study = run_iterative(learner, ft.Budget(cost=40, evaluations=100))
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
