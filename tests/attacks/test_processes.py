"""Attacks on processes: runs that are killed, workers that cannot notice, daemons, starts that fail, shared memory."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from called import is_there, wait_until
from farthing.errors import InvalidArgument
from learners import LINE

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.usefixtures("logged"),
]

GONE = 8.0  # seconds within which processes must be gone on a busy machine; they would stay for STAYS
STAYS = 40


class Noted:
    """Processes that write their numbers into a file; what is left of them after a test is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def pids(self) -> list[int]:
        return [int(word) for word in self.path.read_text().split()] if self.path.exists() else []

    def are_gone(self, seconds: float = GONE) -> bool:
        return wait_until(lambda: not any(map(is_there, self.pids)), seconds)

    def kill(self) -> None:
        for pid in self.pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Noted]:
    noted = Noted(tmp_path / "pids")
    yield noted
    noted.kill()


DEFINITIONS = """
import ctypes, os, signal, sys, time

def note(path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\\n")

def daemon(path, seconds):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(path)
            time.sleep(seconds)
        os._exit(0)
    os.wait()
    while not os.path.exists(path):
        time.sleep(0.01)
"""
exec(DEFINITIONS)

KILLED_RUN = (
    DEFINITIONS
    + """
import farthing as ft

path, how, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])

def objective(config):
    if how == "daemon":
        daemon(path, seconds)
    note(path)
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "holds the lock":
        ctypes.PyDLL(None).sleep(seconds)
    time.sleep(seconds)
    return 1.0

ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "200s", seed=0, progress=False)
"""
)


@pytest.mark.parametrize(("how", "count"), [("holds the lock", 1), ("stopped", 1), ("daemon", 2)])
def test_workers_end_with_a_run_that_is_killed_even_if_they_cannot_notice(noted, how, count):
    run = subprocess.Popen([sys.executable, "-c", KILLED_RUN, str(noted.path), how, str(STAYS)])
    try:
        assert wait_until(lambda: len(noted.pids) == count, 30.0)
        time.sleep(0.2)
    finally:
        run.kill()
        run.wait()
    assert noted.are_gone()


@pytest.mark.parametrize("end", ["limit", "return", "death"])
def test_a_daemon_ends_with_the_evaluation_that_started_it(noted, end):
    """Also in a worker that is used again, and in one that died before."""

    def objective(config: dict[str, Any]) -> float:
        if ft.current_run().trial == 0:
            daemon(str(noted.path), STAYS)  # noqa: F821
            if end == "death":
                os._exit(1)
            time.sleep(STAYS * (end == "limit"))
        return float(noted.are_gone()) if end == "return" and ft.current_run().trial else 0.0

    study = ft.Study(LINE, "2 evaluations", policy="random", seed=0)
    study.run(objective, isolate=True, trial_seconds=2.0 if end == "limit" else 60.0, progress=False)
    assert len(noted.pids) == 1
    assert noted.are_gone()
    if end == "return":
        assert study.trials[1].value == 1.0, "it ended before the next evaluation began, not with the run"


@pytest.mark.parametrize("end", ["limit", "death"])
def test_so_does_one_that_goes_on_forking_in_new_sessions(monkeypatch, tmp_path, end):
    """It is never the same process for longer than a moment."""
    mark = f"FORKING_{os.getpid()}_{end}"
    monkeypatch.setenv(mark, "1")
    stop = tmp_path / "stop"

    def objective(config: dict[str, Any]) -> float:
        if os.fork() == 0:
            while not stop.exists():
                with suppress(OSError):  # it leads one already
                    os.setsid()
                if os.fork():
                    os._exit(0)
            os._exit(0)
        time.sleep(0.3)
        if end == "death":
            os._exit(1)
        time.sleep(STAYS)
        return 1.0

    def are_there() -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if process.name != str(os.getpid()) and f"{mark}=1".encode() in (process / "environ").read_bytes():
                    return True
        return False

    study = ft.Study(LINE, "1 evaluation", policy="random", seed=0)
    try:
        study.run(objective, isolate=True, trial_seconds=1.0 if end == "limit" else 60.0, progress=False)
        time.sleep(1.0)
        assert not any(are_there() for _ in range(20))
    finally:
        stop.touch()


def test_a_supervisor_that_dies_is_replaced_and_that_is_said():
    def supervisors() -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_child = int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
                if is_child and b"supervisor.py" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found

    killed: list[int] = []

    def kill(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 1:
            killed.extend(supervisors())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    def objective(config: dict[str, Any]) -> float:
        return os._exit(1) if ft.current_run().trial == 3 else 1.0  # then another worker is needed

    study = ft.Study(LINE, "6 evaluations", policy="random", seed=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        study.run(objective, isolate=True, progress=False, callbacks=[kill])
    assert len(killed) == 1
    assert [trial.status.value for trial in study.trials] == [*["complete"] * 3, "failed", *["complete"] * 2]
    assert any("supervises the workers died" in str(warning.message) for warning in said)
    assert supervisors() == []


class TestStarts:
    """A hard budget is hard, or says no."""

    def test_an_objective_that_cannot_be_sent_is_refused_with_the_way_out(self):
        lock = threading.Lock()

        def objective(config: dict[str, Any]) -> float:
            with lock:
                time.sleep(1.0)
            return 1.0

        refused = ""
        study = ft.Study(LINE, "2s", policy="random", seed=0)
        try:
            study.run(objective, progress=False)
        except InvalidArgument as error:
            refused = str(error)
        assert "cannot pickle" in refused
        assert "isolate=False" in refused
        assert study.trials == []

    def test_a_start_that_fails_for_a_moment_is_tried_again(self, tmp_path, monkeypatch):
        """Four times: the run neither gives up nor runs the objective in its own process."""
        program, count = tmp_path / "python", tmp_path / "count"
        program.write_text(
            f'#!/bin/sh\necho >> {count}\n[ "$(wc -l < {count})" -le 4 ] && exit 1\nexec {sys.executable} "$@"\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(program))
        study = ft.Study(LINE, "60s, 2 evaluations", policy="random", seed=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            study.run(lambda config: {"value": 1.0, "pid": os.getpid()}, progress=False)
        assert os.getpid() not in [trial.attributes["pid"] for trial in study.trials]
        assert len(study.trials) == 2
        assert any("trying again" in str(warning.message) for warning in said)

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_an_objective_of_a_spawned_process_is_sent_by_value(self, tmp_path, method):
        script = tmp_path / "script.py"
        script.write_text(SPAWNING.replace("METHOD", method))
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
        assert done.stdout.split() == ["True", "2.5"], done.stderr


SPAWNING = """
import multiprocessing, os
import farthing as ft

class Shift:
    by = 2.0

def shifted(x):
    return x + Shift.by

def objective(config):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return {"value": pool.map(shifted, [0.5])[0], "pid": os.getpid()}

def child():
    study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "60s, 2 evaluations", seed=0, progress=False)
    print(all(trial.attributes["pid"] != os.getpid() for trial in study.trials), study.best.value, flush=True)

if __name__ == "__main__":
    process = multiprocessing.get_context("METHOD").Process(target=child)
    process.start()
    process.join()
"""


class TestMemory:
    """Memory counts as the kernel shares it."""

    def run(self, objective: Any, limit: str) -> ft.Trial:
        study = ft.Study(LINE, "1 evaluation", policy="random", seed=0)
        return study.run(objective, trial_memory=limit, progress=False).trials[0]

    def test_forks_that_share_pages_are_not_killed(self):
        def objective(config: dict[str, Any]) -> float:
            held = bytearray(300_000_000)
            ctypes.memset((ctypes.c_char * len(held)).from_buffer(held), 1, len(held))
            children = []
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    time.sleep(0.7)
                    os._exit(0)
                children.append(child)
            for child in children:
                os.waitpid(child, 0)
            return 1.0

        trial = self.run(objective, "450MB")
        assert (trial.status.value, trial.error) == ("complete", None)

    @pytest.mark.parametrize("stays_open", [True, False])
    def test_files_in_memory_count(self, stays_open):
        path = Path("/dev/shm") / f"farthing-{uuid.uuid4().hex}"

        def objective(config: dict[str, Any]) -> float:
            with path.open("wb") as file:
                for _ in range(300):
                    file.write(bytes(1_000_000))
                file.flush()
                time.sleep(3.0 * stays_open)
            time.sleep(3.0 * (not stays_open))
            return 1.0

        try:
            assert self.run(objective, "250MB").status is ft.Status.KILLED
        finally:
            path.unlink(missing_ok=True)
