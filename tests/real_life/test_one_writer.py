"""One process writes to a study file, any number read: a second writer is told, and the study that runs goes on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import FarthingError, StorageError
from farthing.record.checksums import checksum
from farthing.record.events import Asked
from farthing.record.lock import runner_of

SPACE = ft.Space(x=ft.Real(0, 1))

RUNNER = """
    import sys, time
    import farthing as ft

    def objective(config):
        print("evaluates", flush=True)
        sys.stdin.readline()
        return config["x"]

    if __name__ == "__main__":
        study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0, storage=sys.argv[1])
        study.run(objective, isolate=False, progress=False)
        print("ended with", study.count(ft.Status.COMPLETE), flush=True)
    """

DISPATCHER = """
    import sys
    import farthing as ft

    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", policy="random", seed=0, storage=sys.argv[1])
    asked = [study.ask(), study.ask()]
    print("asked", flush=True)
    sys.stdin.readline()
    print("told", study.tell(asked[0], value=1.0).number, flush=True)
    """


def started(script: str, path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    process.stdout.readline()
    return process


def attempt(study: ft.Study) -> str:
    """What becomes of an ask by somebody else."""
    try:
        return f"was given trial {study.ask().trial}"
    except StorageError as error:
        return str(error)


def test_an_ask_of_a_second_process_is_refused_and_the_run_goes_on_to_its_end(tmp_path):
    path = tmp_path / "study.db"
    with started(RUNNER, path) as runner:
        with ft.Study.resume(path) as second:
            answer = attempt(second)
        said, _ = runner.communicate("\n" * 9, timeout=60)
        assert said.splitlines()[-1] == "ended with 4", said[-500:]
    assert f"is being run by process {runner.pid}" in answer
    with ft.Study.resume(path) as study:
        assert [trial.status.value for trial in study.trials] == ["complete"] * 4


def test_a_dispatcher_holds_its_file_until_it_ends(tmp_path):
    path = tmp_path / "study.db"
    with started(DISPATCHER, path) as dispatcher:
        with ft.Study.resume(path) as second:
            answer = attempt(second)
        said, _ = dispatcher.communicate("\n", timeout=60)
        assert said.splitlines()[-1] == "told 0", said[-500:]
    assert f"is being run by process {dispatcher.pid}" in answer
    assert runner_of(path) is None


def test_scripts_that_ask_in_one_process_and_tell_in_another_take_turns(tmp_path):
    assert hasattr(ft.Study, "forget"), "trials of ask do not outlive their process"
    path = tmp_path / "study.db"
    ft.Study(SPACE, "3 evaluations", policy="random", seed=0, storage=path).close()
    ask = "import sys, farthing as ft; print(ft.Study.resume(sys.argv[1]).ask().trial)"
    tell = "import sys, farthing as ft; print(ft.Study.resume(sys.argv[1]).tell(int(sys.argv[2]), value=1.0).status)"
    for number in range(2):
        for script in (ask, tell):
            done = subprocess.run(
                [sys.executable, "-c", script, str(path), str(number)], capture_output=True, text=True
            )
            assert done.stdout.strip() == (str(number) if script is ask else "complete"), done.stderr
    assert not Path(f"{path}.lock").exists()


def intrude(path: Path, config: dict[str, float]) -> None:
    """Ask as a Farthing of before would, which takes no lock."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute("SELECT number, body, checksum FROM events ORDER BY number").fetchall()
        (number, _, chain), trials = rows[-1], sum('"trial"' in body and '"ask"' in body for _, body, _ in rows)
        empty = {"accounts": {}, "committed": 0.0, "running": 0}
        event = Asked(0, ft.Proposal(trials, config), empty)
        with ft.Study(SPACE, "1 evaluation") as model:
            kind, body = event.kind, model_body(model, event)
        row = (number + 1, time.time(), kind, body)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row, chain)))
        connection.commit()


def model_body(study: ft.Study, event: Asked) -> str:
    from farthing.record.state import write_event

    return write_event(event, study._session.record._encoding)[1]


def test_a_run_survives_an_intruder_who_takes_no_lock(tmp_path):
    path, seen = tmp_path / "study.db", []

    def objective(config):
        seen.append(config["x"])
        if len(seen) == 2:
            intrude(path, {"x": 0.125})
        return config["x"]

    study = ft.Study(SPACE, "6 evaluations", policy="random", seed=0, storage=path)
    try:
        with pytest.warns(RuntimeWarning, match="another process has written to this study while it is held here"):
            study.run(objective, isolate=False, progress=False)
    except (StorageError, pytest.fail.Exception) as error:
        pytest.fail(f"the run died of it: {error}")
    study.close()
    assert len(seen) == 5, "one of six evaluations is the intruder's"
    with ft.Study.resume(path) as again:
        assert again.count(ft.Status.COMPLETE) == 5
        assert again.trials[2].config == {"x": 0.125}


class TestOneProcess:
    def test_a_cell_that_is_run_again_goes_on_although_the_old_study_was_not_closed(self, tmp_path):
        path = tmp_path / "study.db"
        old = ft.Study(SPACE, "9 evaluations", policy="random", seed=0, storage=path)
        old.tell(old.ask(), value=1.0)
        new = ft.Study(SPACE, "9 evaluations", policy="random", seed=0, storage=path)
        new.tell(new.ask(), value=2.0)
        assert [trial.value for trial in new.trials] == [1.0, 2.0]
        with pytest.raises(StorageError) as refused:
            old.ask()
        assert "another Study object of this process" in str(refused.value)
        new.tell(new.ask(), value=3.0)
        new.close()
        old.close()

    def test_a_study_that_is_being_run_is_not_run_twice(self):
        study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
        refused = []

        def objective(config):
            try:
                study.run(lambda config: 0.0, isolate=False, progress=False)
            except FarthingError as error:
                refused.append(str(error))
            return config["x"]

        study.run(objective, isolate=False, progress=False)
        assert len(refused) == 3, "a run inside a run was let in"
        assert "is being run by" in refused[0]


class TestLooking:
    def test_a_view_follows_a_study_that_another_process_runs(self, tmp_path):
        assert hasattr(ft.Study, "open"), "a file cannot be opened to look at"
        path = tmp_path / "study.db"
        with started(RUNNER, path) as runner, ft.Study.open(path) as view:
            assert [trial.status for trial in view.trials] == [ft.Status.RUNNING]
            assert f"process {runner.pid} on " in view.runner
            runner.communicate("\n" * 9, timeout=60)
            assert view.count() == 1, "it is as it was when it was read"
            assert view.refresh().count(ft.Status.COMPLETE) == 4
            assert view.runner is None
            assert view.ended is not None
            assert view.best.value == min(trial.value for trial in view.trials)

    def test_it_reads_what_is_new_changes_nothing_and_says_so(self, tmp_path):
        assert hasattr(ft.Study, "open"), "a file cannot be opened to look at"
        path = tmp_path / "study.db"
        study = ft.Study(SPACE, "9 evaluations", policy="random", seed=0, storage=path)
        with ft.Study.open(path) as view:
            for number in range(3):
                proposal = study.ask()
                assert view.refresh().trial(number).status is ft.Status.RUNNING
                study.tell(proposal, value=float(number))
                assert view.refresh().trial(number).value == number
            assert (view.trials, view.ledger) == (study.trials, study.ledger)
            for use in (view.ask, view.add, view.forget, lambda: view.tell(0, value=1.0), lambda: view.run(len)):
                with pytest.raises(FarthingError, match=r"opened to look only; Study\.resume"):
                    use()
            study.close()
            before = path.read_bytes()
            assert view.refresh().count() == 3
            assert path.read_bytes() == before

    def test_a_file_that_was_replaced_or_deleted_is_an_error(self, tmp_path):
        assert hasattr(ft.Study, "open"), "a file cannot be opened to look at"
        path = tmp_path / "study.db"
        ft.Study(SPACE, "9 evaluations", storage=path).close()
        view = ft.Study.open(path)
        ft.Study(SPACE, "8 evaluations", storage=tmp_path / "other.db").close()
        (tmp_path / "other.db").replace(path)
        with pytest.raises(StorageError, match="was replaced by another"):
            view.refresh()
        path.unlink()
        with pytest.raises(StorageError, match="was deleted"):
            view.refresh()
