"""Workers are forked from a process that has loaded the objective: in milliseconds, and yet each is its own."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from called import is_there, wait_until
from learners import LINE

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only"),
    pytest.mark.usefixtures("logged"),
]

GONE = 10.0  # seconds within which processes must be gone on a busy machine
FRESH = "4GB"  # a limit of memory, under which every evaluation has a process of its own


class Library:
    """A module that notes how often it is imported, and does something then."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, does: str = "") -> None:
        self._note, name = folder / "imports", f"library_{folder.name.replace('-', '_')}"
        code = (
            f"import os\nwith open({str(self._note)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n{does}\n"
        )
        (folder / f"{name}.py").write_text(code + "def answer(config):\n    return 42.0\n")
        monkeypatch.syspath_prepend(str(folder))
        self.answer = __import__(name).answer
        self._note.unlink()

    @property
    def imported_by(self) -> list[int]:
        return [int(line) for line in self._note.read_text().split()]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(tmp_path, monkeypatch)


def run(objective: Any, budget: str, **options: Any) -> ft.Study:
    study = ft.Study(LINE, budget, policy="random", seed=0)
    with suppress(ft.errors.InvalidArgument):  # an assertion of the test says what is missing then
        study.run(objective, progress=False, **options)
    return study


def attributes(study: ft.Study, name: str) -> list[Any]:
    assert [trial.status.value for trial in study.trials] == ["complete"] * len(study.trials), study.trials[0].error
    return [trial.attributes[name] for trial in study.trials]


def test_what_the_objective_needs_is_imported_once_and_forks_do_not_draw_alike(library):
    answer = library.answer

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        drawn = [random.random(), float(np.random.rand())]  # noqa: NPY002  # the global generator
        return {"value": answer(config), "pid": os.getpid(), "drawn": drawn, "session": os.getsid(0)}

    study = run(objective, "5 evaluations", trial_memory=FRESH)
    pids, drawn = attributes(study, "pid"), attributes(study, "drawn")
    assert len(set(pids)) == 5, "each evaluation had a process of its own"
    assert len(library.imported_by) == 1
    assert not set(pids) & set(library.imported_by)
    assert len({numbers[0] for numbers in drawn}) == len({numbers[1] for numbers in drawn}) == 5
    assert attributes(study, "session") == pids, "each leads a session of its own"


def test_what_it_imports_when_it_is_called_is_there_for_later_workers_and_its_threads_work():
    """XGBoost and scikit-learn, imported inside the objective, as notebooks do."""

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        had = "xgboost" in sys.modules
        import threadpoolctl
        import xgboost
        from sklearn.datasets import make_classification

        X, y = make_classification(400, 8, random_state=0)
        model = xgboost.XGBClassifier(n_estimators=5, n_jobs=None).fit(X, y)
        (X @ X.T).sum()
        pools = {pool["internal_api"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return {"value": model.score(X, y), "had": had, "blas": pools["openblas"], "openmp": pools["openmp"]}

    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.delenv(name, raising=False)
        study = run(objective, "3 evaluations", trial_memory=FRESH)
    processors = len(os.sched_getaffinity(0))
    assert attributes(study, "had") == [False, True, True]
    assert set(attributes(study, "blas")) == set(attributes(study, "openmp")) == {processors}


def test_a_users_own_number_of_threads_wins(library, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    answer = library.answer

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        import numpy  # noqa: F401
        import threadpoolctl

        (pool,) = {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}
        return {"value": answer(config), "threads": pool}

    assert attributes(run(objective, "2 evaluations", trial_memory=FRESH), "threads") == [3, 3]
    assert len(library.imported_by) == 1


def test_spawned_workers_import_for_themselves(library):
    answer = library.answer

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        return {"value": answer(config), "pid": os.getpid()}

    study = run(objective, "3 evaluations", trial_memory=FRESH, isolate="spawn")
    assert len(study.trials) == 3
    assert set(attributes(study, "pid")) <= set(library.imported_by)


STARTS_A_THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()"


def test_where_a_fork_would_not_be_safe_there_is_none(tmp_path, monkeypatch, caplog):
    """A library starts a thread when it is imported: then every worker imports it, and that is logged."""
    library = Library(tmp_path, monkeypatch, STARTS_A_THREAD)
    answer = library.answer

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        return {"value": answer(config), "pid": os.getpid()}

    with caplog.at_level(logging.DEBUG, logger="farthing"):
        study = run(objective, "3 evaluations", trial_memory=FRESH)
    pids = attributes(study, "pid")
    assert len(set(pids)) == 3
    assert set(pids) <= set(library.imported_by)
    said = [record.getMessage() for record in caplog.records if "not forks" in record.getMessage()]
    assert len(said) == 1
    assert "threads" in said[0]


def test_a_nursery_that_is_killed_is_replaced(library):
    answer = library.answer
    killed: list[int] = []

    def kill(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 1:
            killed.extend(pid for pid in library.imported_by if is_there(pid))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        return {"value": answer(config), "pid": os.getpid()}

    study = run(objective, "6 evaluations", trial_memory=FRESH, callbacks=[kill])
    assert not set(attributes(study, "pid")) & set(killed), "it was no worker"
    assert len(killed) == 1
    assert len(study.trials) == 6
    assert len(library.imported_by) == 2


KILLED_RUN = """
import os, sys, time
import farthing as ft

note = sys.argv[1]

def objective(config):
    import ctypes
    with open(note, "a") as file:
        file.write(f"{os.getpid()}\\n")
    ctypes.PyDLL(None).sleep(60)

ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "200s", seed=0, workers=2, progress=False)
"""


def test_no_process_is_left_of_a_run_that_is_killed(tmp_path):
    """Neither workers, which hold the interpreter's lock, nor the nursery, nor the supervisor."""
    note, mark = tmp_path / "pids", f"KILLED_RUN_{os.getpid()}"

    def marked() -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark.encode() in (process / "environ").read_bytes() and is_there(int(process.name)):
                    found.append(int(process.name))
        return found

    def kinds() -> int:
        return len(note.read_text().split()) if note.exists() else 0

    process = subprocess.Popen([sys.executable, "-c", KILLED_RUN, str(note)], env={**os.environ, mark: "1"})
    try:
        assert wait_until(lambda: kinds() == 2, 60.0)
        assert len(marked()) == 5, "the run, its supervisor, the nursery and two workers"
    finally:
        process.kill()
        process.wait()
    assert wait_until(lambda: not marked(), GONE)
