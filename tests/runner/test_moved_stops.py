"""A policy moves the step at which a run is to be paused, earlier or later, while the run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, StorageError
from farthing.policies import BAPI
from farthing.trial import ContinueTo
from learners import STEPS, bodies, cost_of, cut_copy, iterative, saving
from stored_events import change

CONTINUE, PAUSE = ft.Decision.CONTINUE, ft.Decision.PAUSE


@dataclass(frozen=True)
class Moving:
    """Runs of 4 steps, by plan. Of every three, one is paused after 2, one goes on to 5, one is as planned."""

    name: ClassVar[str] = "moving"

    def propose(self, space, history, ledger, n, rng):
        number, x = len(history.trials), float(rng.random())
        return [ft.Proposal(number, {"x": x}, predicted_cost=2.0, until_step=4)]

    def decide(self, space, history, ledger, trial, rng):
        match trial.number % 3, trial.kept_step:
            case 0, 1:
                return ContinueTo(2)
            case 1, 4:
                return ContinueTo(5)
        return CONTINUE


def lengths(study: ft.Study) -> list[int]:
    return [len(trial.curve) for trial in study.trials]


class TestOwnLoop:
    @pytest.mark.parametrize(("number", "expected"), [(0, 2), (1, 5), (2, 4)], ids=["earlier", "later", "as planned"])
    def test_a_run_is_paused_at_its_new_stop(self, number, expected):
        study = iterative(ft.Budget(cost=1e3), policy=Moving())
        for _ in range(number + 1):
            proposal, decisions = study.ask(), []
            while not decisions or decisions[-1] is CONTINUE:
                decisions.append(study.report(proposal, 1.0, cost=0.5))
        assert decisions == [CONTINUE] * (expected - 1) + [PAUSE]
        assert study._history.trials[number].until_step == expected

    def test_what_it_is_expected_to_cost_moves_in_proportion(self):
        study = iterative(ft.Budget(cost=1e3), policy=Moving())
        proposal = study.ask()
        assert study.ledger.committed == 2.0
        study.report(proposal, 1.0, cost=0.5)
        assert (study.ledger.committed, study.trials[0].predicted_cost) == (1.0, 1.0)
        study.report(proposal, 1.0, cost=0.5)
        assert study.ledger.committed == 0.0

    @pytest.mark.parametrize("step", [0, 1, 2.5, "3"])
    def test_a_stop_that_has_passed_is_refused(self, step):
        class Backwards(Moving):
            name = "backwards"

            def decide(self, *args):
                return ContinueTo(step)

        study = iterative(policy=Backwards())
        with pytest.raises(InvalidArgument, match="backwards: ContinueTo: expected a whole number of at least 2, got"):
            study.report(study.ask(), 1.0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_follows_it_in_this_process_and_in_workers(workers):
    study = iterative(ft.Budget(cost=1e3, evaluations=6), policy=Moving())
    study.run(saving, workers=workers, progress=False)
    assert lengths(study) == [2, 5, 4, 2, 5, 4]


def test_where_a_run_is_to_be_completed_it_is():
    """The end of a training is no stop that could be moved beyond."""

    class Onwards(Moving):
        def decide(self, space, history, ledger, trial, rng):
            return ContinueTo(trial.kept_step + 1)

    study = iterative(ft.Budget(cost=1e3, evaluations=2), policy=Onwards())
    study.run(saving, progress=False)
    assert lengths(study) == [STEPS, STEPS]
    assert study.count(ft.Status.COMPLETE) == 2


def _steep(config: dict[str, Any]) -> Any:
    """Curves of two shapes, so that a model of curves changes its mind; a checkpoint before every yield."""
    run = ft.current_run()
    for step in range(run.step + 1, 11):
        (run.checkpoint_dir / "state").write_text(str(step))
        slow = config["x"] > 0.5
        yield {"value": abs(config["x"] - 0.7) + (1.0 - step / 10 if slow else 1.0 / step**2), "cost": cost_of(step)}


class TestFiles:
    @pytest.mark.parametrize(
        ("policy", "objective", "steps", "cost"),
        [(Moving(), saving, STEPS, 12.0), (BAPI(initial=2, eps=0.01), _steep, 10, 40.0)],
        ids=["moving", "bapi"],
    )
    def test_a_file_cut_around_a_move_goes_on_as_if_nothing_had_happened(
        self, tmp_path, policy: Any, objective: Callable[..., Any], steps: int, cost: float
    ):
        """Before the move was written it is decided again; after it, it holds."""
        whole, path = tmp_path / "whole.db", tmp_path / "cut.db"
        with iterative(ft.Budget(cost=cost), policy=policy, max_steps=steps, storage=whole) as study:
            study.run(objective, keep_checkpoints="all", progress=False)
        moves = [number for number, body in enumerate(bodies(whole), start=1) if body["kind"] == "moved"]
        assert len(moves) >= 2
        for kept in [cut for move in moves[:3] for cut in (move - 1, move)]:
            cut_copy(whole, path, kept)
            shutil.rmtree(tmp_path / "cut.db.checkpoints", ignore_errors=True)
            shutil.copytree(tmp_path / "whole.db.checkpoints", tmp_path / "cut.db.checkpoints")
            with ft.Study.resume(path, policy=policy) as again:
                again.run(objective, progress=False)
                assert again.trials == study.trials, f"cut after event {kept}"
                assert again.ledger.total("cost") == study.ledger.total("cost"), f"cut after event {kept}"

    @pytest.mark.parametrize(
        "body",
        ['{"trial":0,"until_step":1}', '{"trial":0,"until_step":NaN}', '{"trial":7,"until_step":5}', '{"trial":0}'],
    )
    def test_a_move_that_cannot_be_is_damage(self, tmp_path, body):
        path = tmp_path / "study.db"
        with iterative(policy=Moving(), storage=path) as study:
            study.report(study.ask(), 1.0)
        number = next(n for n, event in enumerate(bodies(path), start=1) if event["kind"] == "moved")
        assert change(path, f"UPDATE events SET body = '{body}' WHERE number = {number}") == 1
        with pytest.raises(StorageError, match=f"event {number}"):
            ft.Study.resume(path, policy=Moving())
