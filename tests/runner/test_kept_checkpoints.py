"""Checkpoints that stay: of the best step, of the best trials, and whole ones only; and finishing one trial."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidBudget, NoTrial, UnknownTrial
from farthing.runner.checkpoint_folders import checkpoint_root
from tests.learners import LINE, STEPS, iterative, learner, run_iterative, saving

VALLEY = (5.0, 3.0, 1.0, 2.0, 4.0, 6.0)  # values of six steps, of which the third is the best


def valley(config):
    """Writes over its checkpoint, and also over a file in a folder of its own."""
    run = ft.current_run()
    for step in range(run.step + 1, STEPS + 1):
        (run.checkpoint_dir / "state").write_text(str(step))
        (run.checkpoint_dir / "inner").mkdir(exist_ok=True)
        (run.checkpoint_dir / "inner" / "state").write_text(str(step))
        yield {"value": VALLEY[step - 1] + config["x"], "cost": 1.0}


def hill(config):
    for report in valley(config):
        yield {**report, "value": -report["value"]}


def state(trial: ft.Trial) -> int:
    one, other = ((trial.checkpoint_dir / name).read_text() for name in ("state", "inner/state"))
    assert one == other
    return int(one)


def complete(objective, evaluations=4, **options) -> ft.Study:
    running = {name: options.pop(name) for name in ("keep_checkpoints", "isolate") if name in options}
    study = ft.Study(LINE, f"{evaluations} evaluations", policy="random", seed=0, max_steps=STEPS, **options)
    return study.run(objective, progress=False, **running)


@pytest.mark.parametrize("isolate", [False, True])
def test_the_state_of_the_best_step_is_kept_beside_the_last(isolate, tmp_path):
    study = complete(valley, 2, isolate=isolate, storage=tmp_path / "s.db")
    assert state(study.best) == 3
    assert (tmp_path / "s.db.checkpoints" / f"trial-{study.best.number}" / "state").read_text() == "6"
    copies = tmp_path / "s.db.checkpoints" / f"trial-{study.best.number}.best"
    assert [path.name for path in copies.iterdir()] == ["step-3"], "earlier copies, and half ones, are gone"


def test_it_is_the_best_in_the_users_own_sign():
    assert state(complete(hill, 2, maximize=True).best) == 3


def test_only_a_trial_that_leads_gets_a_copy(tmp_path):
    study = complete(valley, 8, storage=tmp_path / "s.db", keep_checkpoints="all")
    leaders, least = set(), float("inf")
    for trial in study.trials:
        leaders |= {trial.number} if trial.value < least else set()
        least = min(least, trial.value)
    copies = {path.name for path in (tmp_path / "s.db.checkpoints").iterdir() if path.suffix == ".best"}
    assert copies == {f"trial-{number}.best" for number in leaders}
    assert len(leaders) < 8
    assert all(state(trial) == (3 if trial.number in leaders else 6) for trial in study.trials)


def test_those_of_trials_that_lose_are_removed_by_default(tmp_path):
    with complete(valley, 4, storage=tmp_path / "s.db") as study:
        assert [trial.number for trial in study.trials if trial.checkpoint_dir] == [study.best.number]


def test_no_copy_is_left_where_the_last_step_is_the_best(tmp_path):
    study = complete(saving, 3, storage=tmp_path / "s.db")
    assert study.best.checkpoint_dir == tmp_path / "s.db.checkpoints" / f"trial-{study.best.number}"
    assert not list((tmp_path / "s.db.checkpoints").glob("*.best"))


def test_there_is_none_where_nothing_was_written():
    study = complete(learner, 2)
    assert [trial.checkpoint_dir for trial in study.trials] == [None, None]


def test_that_of_a_study_in_memory_lives_as_long_as_the_study():
    study = complete(valley, 1)
    folder = study.best.checkpoint_dir
    assert folder.is_dir()
    del study
    gc.collect()
    assert not folder.exists()


def test_callbacks_see_the_checkpoint_also_of_a_trial_that_loses_it():
    seen = []
    study = ft.Study(LINE, "5 evaluations", policy="random", seed=0, max_steps=STEPS)
    study.run(
        valley, keep_checkpoints="best", progress=False,
        callbacks=[lambda study, trial: seen.append(state(trial))],
    )  # fmt: skip
    assert len(seen) == 5
    assert sum(trial.checkpoint_dir is not None for trial in study.trials) == 1


def test_those_of_paused_trials_stay(tmp_path):
    """They may go on, and need not be trained again."""
    study = iterative(ft.Budget(cost=20), storage=tmp_path / "s.db")
    study.run(saving, keep_checkpoints="best", progress=False)
    waiting = [trial for trial in study.trials if trial.status is ft.Status.PAUSED]
    ended = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
    assert len(waiting) > 1
    assert all(trial.checkpoint_dir is not None for trial in waiting)
    assert sum(trial.checkpoint_dir is not None for trial in ended) == 1
    study.close()
    with ft.Study.resume(tmp_path / "s.db", budget=ft.Budget(cost=40), policy=study.policy) as more:
        more.run(saving, progress=False)
        assert more.ledger.account("retrained") == 0


def test_a_run_with_fewer_to_keep_removes_what_earlier_ones_left(tmp_path):
    complete(valley, 4, storage=tmp_path / "s.db", keep_checkpoints="all").close()
    with ft.Study.resume(tmp_path / "s.db", budget="5 evaluations") as study:
        study.run(valley, keep_checkpoints=1, progress=False)
        assert [trial.number for trial in study.trials if trial.checkpoint_dir] == [study.best.number]


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path):
    """A loser's folder that somebody moved away and linked."""
    mine = tmp_path / "mine"
    with complete(valley, 3, storage=tmp_path / "s.db", keep_checkpoints="all") as study:
        loser = max(study.trials, key=lambda trial: trial.value).number
    link = tmp_path / "s.db.checkpoints" / f"trial-{loser}"
    link.rename(mine)
    link.symlink_to(mine)
    with ft.Study.resume(tmp_path / "s.db", budget="4 evaluations") as study:
        assert study.trial(loser).checkpoint_dir is None or study.trial(loser).checkpoint_dir.parent.name != link.name
        study.run(valley, keep_checkpoints="best", progress=False)
    assert not link.is_symlink()
    assert (mine / "state").read_text() == "6"


KILLED_WHILE_COPYING = """
import os, signal, sys
import farthing as ft
import farthing.runner.kept_checkpoints as kept
from tests.runner.test_kept_checkpoints import valley
from tests.learners import LINE, STEPS

def dies(part, whole):
    if whole.name == "step-3":
        os.kill(os.getpid(), signal.SIGKILL)
    os.replace(part, whole)

kept.os = type("os", (), {**vars(os), "rename": staticmethod(dies)})
ft.tune(valley, LINE, "3 evaluations", policy="random", seed=0, max_steps=STEPS, storage=sys.argv[1], isolate=False)
"""


def test_what_is_half_copied_is_never_taken_for_a_checkpoint(tmp_path):
    """The run is killed when the copy has everything but its name."""
    file, copies = tmp_path / "s.db", tmp_path / "s.db.checkpoints" / "trial-0.best"
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_COPYING, str(file)], cwd=Path(__file__).parents[2])
    assert ended.returncode == -9
    assert {path.name for path in copies.iterdir()} == {"step-2", "step-3.part"}
    with ft.Study.resume(file) as study:
        assert state(study.best) == 3, "the learner's own: it did not go on"
        study.run(valley, progress=False)
        assert state(study.best) == 3
        assert not list((tmp_path / "s.db.checkpoints").glob("*.best/*.part"))


@pytest.mark.parametrize("given", [0, "none", -1, True, None, 1.5])
def test_nonsense_is_refused(given):
    with pytest.raises(InvalidArgument, match="keep_checkpoints: expected 'all', 'best' or a whole number"):
        iterative().run(learner, keep_checkpoints=given, progress=False)


# -- finishing ---------------------------------------------------------------------------------------------------------


def paused_study(objective=learner, **options) -> ft.Study:
    study = run_iterative(objective, ft.Budget(cost=4), **options)
    assert study.best.status is ft.Status.PAUSED
    return study


def test_finishing_without_a_checkpoint_begins_anew():
    study = paused_study()
    before = study.best
    done = study.finish(learner, progress=False)
    assert (done.number, done.status, len(done.curve)) == (before.number, ft.Status.COMPLETE, STEPS)
    assert study.ledger.account("retrained") == before.cost


def test_finishing_has_a_budget_of_its_own():
    study = paused_study(saving)
    before, spent = study.best, study.ledger.spent
    stopped = study.finish(saving, budget=ft.Budget(cost=0.5), progress=False)
    assert (stopped.status, len(stopped.curve)) == (ft.Status.PAUSED, len(before.curve) + 1)
    assert study.ledger.spent >= spent + 0.5
    assert str(study.ledger.budget) == "4 cost"
    assert study.finish(saving, budget="1m", progress=False).status is ft.Status.COMPLETE


def test_another_trial_can_be_finished():
    study = paused_study()
    other = max(study.trials, key=lambda trial: trial.value)
    assert study.finish(learner, other, progress=False).status is ft.Status.COMPLETE
    assert study.trial(other.number).status is ft.Status.COMPLETE
    assert study.finish(learner, study.best.number, progress=False).number == study.best.number


def test_what_is_proposed_later_is_not_changed_by_it(tmp_path):
    """Finishing is not an ask. A policy that does not look at values goes on as if nothing had happened."""
    asked = []
    for finishes in (False, True):
        file = tmp_path / f"{finishes}.db"
        with ft.Study(LINE, ft.Budget(cost=3), policy="random", seed=0, max_steps=STEPS, storage=file) as study:
            study.run(learner, progress=False)
            assert study.trials[-1].status is ft.Status.PAUSED
            if finishes:
                study.finish(learner, study.trials[-1], progress=False)
        with ft.Study.resume(file, budget=ft.Budget(cost=60)) as study:
            study.run(learner, progress=False)
            asked.append([trial.config for trial in study.trials][:6])
    assert asked[0] == asked[1]


def test_stop_and_callbacks_belong_to_the_study():
    study, seen = paused_study(), []

    def callback(where: ft.Study, trial: ft.Trial) -> None:
        seen.append((where is study, trial.number))
        where.stop()

    done = study.finish(learner, callbacks=[callback], progress=False)
    assert seen == [(True, done.number)]
    assert not study.interrupted


def test_what_cannot_be_finished_says_so():
    with pytest.raises(NoTrial):
        iterative().finish(learner)
    study = paused_study()
    with pytest.raises(UnknownTrial):
        study.finish(learner, 99)
    timed = ft.Study(LINE, "1m", policy="random", max_steps=STEPS)
    timed.report(timed.ask(), 1.0, cost=70.0)
    with pytest.raises(InvalidBudget, match="finish: budget: expected a limit in seconds"):
        timed.finish(learner, budget=ft.Budget(cost=5))
    asked = iterative(ft.Budget(cost=50))
    with pytest.raises(InvalidArgument, match="which is running"):
        asked.finish(learner, asked.ask().trial)
    failing = iterative("3 evaluations")
    failing.tell(failing.ask(), failed="out of memory")
    with pytest.raises(InvalidArgument, match=r"trial 0, which is failed \(out of memory\)"):
        failing.finish(learner, 0)


def test_a_plain_function_has_nothing_to_finish():
    study = ft.tune(lambda config: config["x"], LINE, "3 evaluations", seed=0, progress=False)
    assert study.finish(lambda config: 1 / 0) == study.best
    assert checkpoint_root(study._session).is_dir()
