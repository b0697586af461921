"""The winner, whole: a study of a classifier of scikit-learn that trains pass by pass ends with a model one can use."""

from __future__ import annotations

from inspect import signature

import farthing as ft
from tests.real_life.winner_learners import PASSES, SPACE, error_of, learner, saved_model

COMPLETE, PAUSED = ft.Status.COMPLETE, ft.Status.PAUSED


def study_of(cost: float, **options) -> ft.Study:
    return ft.Study(SPACE, ft.Budget(cost=cost), max_steps=PASSES, **{"seed": 0, **options})


def the_checkpoint_is_that_of_the_value(best: ft.Trial) -> bool:
    assert hasattr(best, "checkpoint_dir"), "a trial does not say where its checkpoint is"
    assert best.checkpoint_dir is not None
    return error_of(saved_model(best.checkpoint_dir)) == best.value


def test_a_study_ends_with_its_best_trial_trained_to_the_end():
    """A budget of two and a third trainings, four seeds; before, the best was paused in half of them."""
    studies = [study_of(28, seed=seed).run(learner, progress=False) for seed in range(4)]
    assert sum(study.best.status is COMPLETE for study in studies) >= 3
    assert all(study.ledger.spent <= 28 for study in studies)
    assert all(the_checkpoint_is_that_of_the_value(study.best) for study in studies)
    later = [study for study in studies if study.best.curve.values[-1] > study.best.value]
    assert later, "else the last checkpoint is the best one, and this test shows less"


def test_the_checkpoint_of_the_best_step_is_found_again_in_the_file(tmp_path):
    with study_of(3 * PASSES, policy="random", storage=tmp_path / "study.db") as study:
        found = study.run(learner, isolate=True, progress=False).best
    with ft.Study.resume(tmp_path / "study.db") as again:
        assert the_checkpoint_is_that_of_the_value(again.best)
        assert again.best.checkpoint_dir == found.checkpoint_dir
        assert again.best.value < again.best.curve.values[-1], "a later pass was worse, and wrote over the checkpoint"


def test_a_paused_winner_is_completed_afterwards(tmp_path):
    """`bapi` by its name ends as in its paper: after five short runs nothing is left."""
    assert hasattr(ft.Study, "finish"), "nothing completes the best trial"
    with study_of(10, policy="bapi", storage=tmp_path / "study.db") as study:
        assert study.run(learner, progress=False).best.status is PAUSED
    with ft.Study.resume(tmp_path / "study.db") as study:
        before = study.best
        assert isinstance(study.ended, ft.errors.BudgetSpent)
        done = study.finish(learner, isolate=True, progress=False)
        assert (done.number, done.status, len(done.curve)) == (before.number, COMPLETE, PASSES)
        assert done.curve.values[: len(before.curve)] == before.curve.values
        assert study.ledger.spent == 10 + PASSES - len(before.curve), "on top of the budget, and nothing trained again"
        assert study.ledger.account("retrained") == 0
        assert the_checkpoint_is_that_of_the_value(done)
        assert study.best == done
        spent = study.ledger.spent
        assert study.finish(learner, progress=False) == done, "what is complete is returned as it is"
        assert study.ledger.spent == spent


def test_losers_leave_no_checkpoints_behind(tmp_path):
    assert "keep_checkpoints" in signature(ft.tune).parameters, "nothing says which checkpoints are kept"
    kept = {}
    for keep in ("all", "best", 2):
        study = ft.tune(
            learner, SPACE, "4 evaluations", policy="random", max_steps=PASSES, seed=0, keep_checkpoints=keep,
            storage=tmp_path / f"{keep}.db", progress=False,
        )  # fmt: skip
        with study:
            ranked = sorted(study.trials, key=lambda trial: trial.value)
            folders = {trial.number for trial in ranked if trial.checkpoint_dir is not None}
            names = {path.name.removesuffix(".best") for path in (tmp_path / f"{keep}.db.checkpoints").iterdir()}
            assert names == {f"trial-{number}" for number in folders}
            kept[keep] = [trial.number in folders for trial in ranked]
            assert the_checkpoint_is_that_of_the_value(study.best)
    assert kept == {"all": [True] * 4, "best": [True] + [False] * 3, 2: [True] * 2 + [False] * 2}
