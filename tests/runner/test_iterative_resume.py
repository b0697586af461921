"""Trainings that are cut short, by the budget, by Ctrl-C or by a kill, go on to the same end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from learners import (
    STEPS,
    Alternating,
    Halving,
    bodies,
    cost_of,
    curve_of,
    cut_copy,
    iterative,
    learner,
    run_iterative,
    saving,
)

WHOLE = sum(map(cost_of, range(1, STEPS + 1)))  # what a complete training costs

pytestmark = pytest.mark.usefixtures("logged")


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
            assert study._history.trials[0].kept_step == (3 if objective is saving else 0)
            study.run(objective, progress=False)
            assert study.trials[0].status is ft.Status.COMPLETE
            assert study.trials[0].curve.values == curve_of(study.trials[0].config)
            again = study.ledger.account("retrained")
        if objective is saving:
            assert again == 0.0
            straight = run_iterative(saving, ft.Budget(cost=60), policy=policy)
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

        with pytest.raises(KeyboardInterrupt):
            study.run(saving, progress=False, callbacks=[stopper])
        assert [trial.kept_step for trial in study._history.trials] == [1, 1, 1]
        study.run(saving, progress=False)
        assert "retrained" not in study.ledger.accounts
        straight = run_iterative(saving)
        assert [trial.curve for trial in study.trials] == [trial.curve for trial in straight.trials]

    def test_a_target_ends_a_study_in_the_middle_of_a_training(self):
        study = run_iterative(learner, policy="sobol", stop_at=0.6)
        last = study.trials[-1]
        assert last.status is ft.Status.PAUSED
        assert last.value <= 0.6 < min([1.0, *last.curve.values[:-1]])
        assert study.best == last

    def test_black_box_policies_train_completely(self):
        for policy in ("ei", "carbo"):
            study = run_iterative(learner, ft.Budget(cost=9 * WHOLE), policy=policy)
            assert [trial.status.value for trial in study.trials] == ["complete"] * 9


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
            try:
                study.run(objective, progress=False)
            except KeyboardInterrupt:
                assert study.interrupted
            trials = study._history.trials
            print(*[trial.status.value for trial in trials], *[trial.kept_step for trial in trials])
        """

    @pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")
    @pytest.mark.parametrize("objective", [learner, saving])
    def test_ctrl_c_in_the_middle_of_a_step_and_the_study_goes_on(self, tmp_path, objective):
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
            straight = run_iterative(objective)
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
            study.run(saving, keep_checkpoints="all", progress=False)  # those of every moment
        kinds = [body["kind"] for body in bodies(whole)]
        assert {"asked", "reported", "told"} <= set(kinds)
        last = max(number for number, kind in enumerate(kinds, start=1) if kind == "told")
        for kept in range(2, last, 1 if isinstance(policy, Alternating) else 2):
            cut_copy(whole, path, kept)
            shutil.rmtree(tmp_path / "cut.db.checkpoints", ignore_errors=True)
            shutil.copytree(tmp_path / "whole.db.checkpoints", tmp_path / "cut.db.checkpoints")
            given = None if isinstance(policy, str) else policy
            with ft.Study.resume(path, policy=given) as again:
                again.run(saving, progress=False)
                where = f"cut after event {kept}, {kinds[kept - 1]}"
                assert asked(path) == asked(whole), where
                assert again.trials == study.trials, where
                for unit in ("cost", "evaluations"):
                    assert again.ledger.total(unit) == study.ledger.total(unit), where
                assert "retrained" not in again.ledger.accounts, where

    def test_a_decision_that_was_already_due_needs_no_training(self, tmp_path):
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
