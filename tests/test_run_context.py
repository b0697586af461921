"""What an objective can know of its run: its trial, where to start, its folder, what is left of the budget."""

from __future__ import annotations

import contextvars
import gc
import os
import shutil
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.runner.checkpoints import Checkpoints
from learners import LINE, STEPS, Alternating, bodies, cost_of, iterative, saving, steps_from, value_at


def saved_steps(objective, **options) -> tuple[int, ...]:
    """The steps of the first training after which a checkpoint was seen, as the study file says."""
    path = options.pop("path")
    with iterative(ft.Budget(cost=1e9, evaluations=1), policy="sobol", storage=path, **options) as study:
        study.run(objective, progress=False)
        assert study.trials[0].status is ft.Status.COMPLETE, study.trials[0].error
    return tuple(step for step, body in enumerate(bodies(path, "reported"), start=1) if body["saved"])


class TestOutside:
    def test_there_is_none_outside_a_run(self):
        with pytest.raises(InvalidArgument, match="current_run"):
            ft.current_run()

    def test_there_is_none_in_callbacks_policies_and_afterwards(self):
        class Nosy(Alternating):
            def decide(self, *args):
                with pytest.raises(InvalidArgument):
                    ft.current_run()
                return super().decide(*args)

        def callback(study, trial):
            with pytest.raises(InvalidArgument):
                ft.current_run()

        study = iterative(policy=Nosy())
        study.run(saving, progress=False, callbacks=[callback])
        callback(study, None)

    def test_a_study_within_a_study_has_its_own(self, tmp_path):
        def outer(config):
            mine = ft.current_run()
            for _ in range(2):
                inner = ft.tune(
                    lambda c: ft.current_run().trial, LINE, "3 evaluations", policy="sobol", seed=0, progress=False
                )
                assert inner.best.value == 0.0
                assert ft.current_run() == mine
                yield inner.best.value

        with iterative("2 evaluations", policy="sobol", storage=tmp_path / "study.db") as study:
            study.run(outer, progress=False)
            assert study.count(ft.Status.COMPLETE) == 2


class TestFolder:
    def test_it_is_beside_the_file_one_for_each_trial_and_made_on_demand(self, tmp_path):
        path = tmp_path / "study.db"
        folders = {}

        def objective(config):
            run = ft.current_run()
            if run.trial != 1:
                assert not (tmp_path / "study.db.checkpoints" / f"trial-{run.trial}").exists()
                folders[run.trial] = run.checkpoint_dir
                assert run.checkpoint_dir.is_dir()
            yield 1.0

        with iterative("3 evaluations", policy="sobol", storage=path) as study:
            study.run(objective, keep_checkpoints="all", progress=False)
        expected = tmp_path / "study.db.checkpoints"
        assert folders == {0: expected / "trial-0", 2: expected / "trial-2"}
        assert sorted(p.name for p in expected.iterdir()) == ["trial-0", "trial-2"]

    def test_a_study_that_uses_none_leaves_none(self, tmp_path):
        with iterative("3 evaluations", policy="sobol", storage=tmp_path / "study.db") as study:
            study.run(lambda config: steps_from(config, 0), progress=False)
        assert [p.name for p in tmp_path.iterdir()] == ["study.db"]

    def test_a_relative_file_and_an_objective_that_changes_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "elsewhere").mkdir()

        def objective(config):
            os.chdir(tmp_path / "elsewhere")
            yield from saving(config)

        with iterative("1 evaluation", policy="sobol", storage="study.db") as study:
            study.run(objective, progress=False)
        assert (tmp_path / "study.db.checkpoints" / "trial-0" / "state").read_text() == str(STEPS)

    def test_in_memory_it_is_temporary_and_goes_with_the_study(self):
        folders = []

        def objective(config):
            folders.append(ft.current_run().checkpoint_dir)
            yield from saving(config)

        study = iterative("2 evaluations", policy="sobol")
        study.run(objective, keep_checkpoints="all", progress=False)
        assert len(set(folders)) == 2
        assert all(folder.is_dir() for folder in folders), "for another run"
        root = folders[0].parent
        del study
        gc.collect()
        assert not root.exists()

    def test_what_an_earlier_study_of_that_name_left_is_not_taken_for_ones_own(self, tmp_path):
        path = tmp_path / "study.db"
        with iterative("3 evaluations", policy="sobol", storage=path) as study:
            study.run(saving, progress=False)
        path.unlink()

        def objective(config):
            assert not list(ft.current_run().checkpoint_dir.iterdir())
            yield from saving(config)

        with iterative("3 evaluations", policy="sobol", seed=1, storage=path) as study:
            study.run(objective, progress=False)
            assert study.count(ft.Status.COMPLETE) == 3

    def test_it_survives_pauses_and_resuming(self, tmp_path):
        path = tmp_path / "study.db"
        with iterative(storage=path) as study:
            study.run(
                saving,
                progress=False,
                paused_limit=0,
                callbacks=[lambda study, trial: len(trial.curve) == 2 and study.stop()],
            )
            assert [trial.kept_step for trial in study._history.trials] == [2, 1, 1]
        with ft.Study.resume(path, policy=Alternating()) as study:
            assert [trial.kept_step for trial in study._history.trials] == [2, 1, 1]
            study.run(saving, progress=False)
            assert "retrained" not in study.ledger.accounts

    @pytest.mark.parametrize("lost", ["moved", "emptied"])
    def test_without_its_folder_a_run_starts_anew_and_the_policy_knows(self, tmp_path, lost):
        """As when a study file is copied to another machine without its checkpoints."""
        path, seen = tmp_path / "study.db", []
        with iterative(storage=path) as study:
            study.run(saving, progress=False, callbacks=[lambda study, trial: len(trial.curve) == 2 and study.stop()])
        if lost == "moved":
            path = path.rename(tmp_path / "elsewhere.db")
        else:
            (tmp_path / "study.db.checkpoints" / "trial-0" / "state").unlink()

        class Watching(Alternating):
            def propose(self, space, history, ledger, n, rng):
                seen.append([trial.kept_step for trial in history.trials])
                return super().propose(space, history, ledger, n, rng)

        def objective(config):
            run = ft.current_run()
            assert (run.step > 0) == bool(list(run.checkpoint_dir.iterdir()))
            yield from saving(config)

        with ft.Study.resume(path, policy=Watching()) as study:
            study.run(objective, progress=False)
            assert seen[0] == ([0, 0, 0] if lost == "moved" else [0, 1, 1])
            assert all(trial.error is None or "spent" in trial.error for trial in study.trials)
            again = 0.25 + 0.5 + (0.25 + 0.25 if lost == "moved" else 0.0)
            assert study.ledger.account("retrained") == again
        with ft.Study.resume(path, policy=Watching()) as read:
            assert read.trials == study.trials


class TestSaved:
    """A checkpoint is whatever was written to the folder since the previous step."""

    def test_rewritten_in_place_with_the_same_size_in_no_time(self, tmp_path):
        assert saved_steps(saving, path=tmp_path / "study.db") == tuple(range(1, STEPS + 1))

    def test_only_the_steps_that_wrote_count(self, tmp_path):
        def objective(config):
            folder = ft.current_run().checkpoint_dir
            for step, report in enumerate(steps_from(config, 0), start=1):
                if step in (2, 5):
                    (folder / "state").write_text(str(step))
                yield report

        assert saved_steps(objective, path=tmp_path / "study.db") == (2, 5)

    def test_in_folders_within_and_by_replacing(self, tmp_path):
        def objective(config):
            folder = ft.current_run().checkpoint_dir
            for step, report in enumerate(steps_from(config, 0), start=1):
                if step == 2:
                    (folder / "epoch" / "two").mkdir(parents=True)
                elif step == 3:
                    (folder / "epoch" / "two" / "weights").write_bytes(b"abc")
                elif step == 5:
                    (folder / "new").write_bytes(b"abc")
                    os.replace(folder / "new", folder / "epoch" / "two" / "weights")
                yield report

        assert saved_steps(objective, path=tmp_path / "study.db") == (3, 5)

    def test_deleting_is_not_saving(self, tmp_path):
        def objective(config):
            folder = ft.current_run().checkpoint_dir
            for step, report in enumerate(steps_from(config, 0), start=1):
                if step in (1, 2, 5):
                    (folder / str(step)).write_text("state")
                if step in (2, 3):
                    (folder / str(step - 1)).unlink()  # 2: the older of two, 3: the last
                yield report

        assert saved_steps(objective, path=tmp_path / "study.db") == (1, 2, 5)

    def test_a_deleted_checkpoint_is_not_one_to_start_from(self):
        starts = []

        def objective(config):
            run = ft.current_run()
            starts.append(run.step)
            for step, report in enumerate(steps_from(config, run.step), start=run.step + 1):
                (run.checkpoint_dir / "state").write_text(str(step))
                if step == 2:
                    shutil.rmtree(run.checkpoint_dir)
                yield report

        study = iterative(policy=Alternating(width=1), max_steps=4)
        study.run(
            objective,
            progress=False,
            paused_limit=0,
            callbacks=[lambda study, trial: trial.status == "complete" and study.stop()],
        )
        assert starts == [0, 1, 0, 3]
        assert study.ledger.account("retrained") == cost_of(1) + cost_of(2)

    def test_old_files_that_do_not_change_are_not_read_again(self, tmp_path, monkeypatch):
        file = tmp_path / "weights"
        file.write_bytes(b"abc")
        os.utime(file, (1, 1))
        checkpoints = Checkpoints(tmp_path)
        monkeypatch.setattr("builtins.open", lambda *args, **kwargs: pytest.fail("it was read"))
        assert not checkpoints.written()
        os.utime(file, (2, 2))
        assert checkpoints.written()
        assert not checkpoints.written()

    def test_a_young_file_that_grows_old_unaltered_is_no_news(self, tmp_path, monkeypatch):
        file = tmp_path / "weights"
        file.write_bytes(b"abc")
        checkpoints = Checkpoints(tmp_path)
        now = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: now + 10**10)
        assert not checkpoints.written()
        assert not checkpoints.written()

    def test_a_file_written_twice_within_a_tick_is_news(self, tmp_path):
        file = tmp_path / "weights"
        file.write_bytes(b"abc")
        state = file.stat()
        checkpoints = Checkpoints(tmp_path)
        file.write_bytes(b"xyz")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert checkpoints.written()


class TestStep:
    def test_it_is_where_to_start_and_0_without_a_checkpoint(self):
        starts = []

        def objective(config):
            run = ft.current_run()
            starts.append((run.trial, run.step))
            for step, report in enumerate(steps_from(config, run.step), start=run.step + 1):
                if run.trial == 0:
                    (run.checkpoint_dir / "state").write_text(str(step))
                yield report

        study = iterative(policy=Alternating(width=2), max_steps=3)
        study.run(
            objective,
            progress=False,
            paused_limit=0,
            callbacks=[lambda study, trial: trial.status == "complete" and trial.number == 1 and study.stop()],
        )
        assert [step for number, step in starts if number == 0] == [0, 1, 2]
        assert [step for number, step in starts if number == 1] == [0, 0, 0]

    def test_the_trial_is_that_of_the_step_being_taken(self):
        """Also when several trainings take turns."""
        numbers = {}

        def objective(config):
            first = ft.current_run().trial
            for report in steps_from(config, 0):
                assert ft.current_run().trial == first
                numbers.setdefault(first, []).append(ft.current_run().step)
                yield report

        study = iterative()
        study.run(objective, progress=False)
        assert set(numbers) == {trial.number for trial in study.trials}
        assert numbers[0] == [0] * STEPS, "where it was begun"


class TestRemaining:
    def test_it_falls_with_what_is_reported(self):
        left = []

        def objective(config):
            run = ft.current_run()
            for report in steps_from(config, 0):
                left.append(run.remaining)
                yield report

        study = iterative(ft.Budget(cost=10), policy="sobol")
        study.run(objective, progress=False)
        spent = [10 - amount for amount in left]
        assert spent[:4] == [0.0, 0.25, 0.75, 1.5]
        assert spent == sorted(spent)

    @pytest.mark.parametrize("budget", ["100s", ft.Budget(compute_seconds=100), ft.Budget(usd=100, usd_per_hour=3600)])
    def test_time_passes_within_a_step_and_in_a_black_box(self, budget):
        def black_box(config):
            run = ft.current_run()
            before = run.remaining
            time.sleep(0.02)
            study.stop()
            assert 0.02 <= before - run.remaining < 50.0, "a busy machine may be late"
            return 1.0

        study = iterative(budget, policy="sobol", max_steps=None)
        study.run(black_box, isolate=False, progress=False)  # it uses the study, which cannot be sent
        assert study.trials[0].status is ft.Status.COMPLETE, study.trials[0].error

    def test_without_a_limit_in_the_unit_there_is_no_end(self):
        study = iterative("2 evaluations", policy="sobol", max_steps=None)
        study.run(lambda config: 1.0 if ft.current_run().remaining == float("inf") else None, progress=False)
        assert study.count(ft.Status.COMPLETE) == 2


class TestBlackBox:
    def test_a_plain_function_may_keep_its_state_across_a_crash(self, tmp_path):
        """It runs again under the same number, and finds what it wrote."""
        path = tmp_path / "study.db"

        def objective(config):
            run = ft.current_run()
            assert (run.trial, run.step) == (0, 0)
            file = run.checkpoint_dir / "half"
            if not file.exists():
                file.write_text("done")
                raise KeyboardInterrupt
            return value_at(config, 1)

        for ended in (pytest.raises(KeyboardInterrupt), nullcontext()):
            with iterative("1 evaluation", policy="sobol", max_steps=None, storage=path) as study, ended:
                study.run(objective, progress=False)
        assert study.trials[0].status is ft.Status.COMPLETE
        assert isinstance(ft.Run, type)

    def test_other_threads_need_the_context(self):
        """As with every context variable of Python."""
        seen = []

        def objective(config):
            context = contextvars.copy_context()
            seen.append(context.run(lambda: ft.current_run().trial))
            return 1.0

        iterative("2 evaluations", policy="sobol", max_steps=None).run(objective, progress=False)
        assert seen == [0, 1]

    def test_the_folder_is_a_path(self):
        kinds = []
        study = iterative("1 evaluation", policy="sobol", max_steps=None)
        study.run(lambda config: kinds.append(type(ft.current_run().checkpoint_dir)) or 1.0, progress=False)
        assert issubclass(kinds[0], Path)
