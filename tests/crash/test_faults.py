"""Every way an objective can go wrong: which status and message the trial gets, and that the study goes on unharmed.

These are the rows of the table in docs/runner.md, with real processes.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from learners import LINE, iterative

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX"),
    pytest.mark.usefixtures("logged"),
]

LIMIT = 1.0  # seconds that a trial may take where one hangs


def channels() -> list[int]:
    """The numbers of all sockets of this process."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                found.append(int(name))
    return found


def write_to_all(text: bytes) -> None:
    for number in channels():
        with suppress(OSError):
            os.write(number, text)
    time.sleep(60)


def close_all() -> float:
    for number in channels():
        os.close(number)
    return 1.0


def shut_all() -> None:
    for number in channels():
        socket.socket(fileno=os.dup(number)).shutdown(socket.SHUT_RDWR)
    time.sleep(60)


def raises() -> None:
    raise ValueError("boom")


def hangs() -> None:
    time.sleep(60)


def hangs_deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def swallows_everything() -> None:
    while True:
        with suppress(BaseException):
            time.sleep(60)


FAULTS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "exception": (raises, "failed", "ValueError: boom"),
    "nan": (lambda: math.nan, "failed", "the value must be finite, got nan"),
    "exit": (lambda: sys.exit(3), "failed", "SystemExit: 3"),
    "os exit": (lambda: os._exit(1), "failed", "the objective ended its process with exit code 1"),
    "abort": (os.abort, "failed", "the objective died of SIGABRT"),
    "segmentation fault": (lambda: ctypes.string_at(0), "failed", "the objective died of SIGSEGV"),
    "kill": (
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        "failed",
        "the objective died of SIGKILL, perhaps for lack of memory",
    ),
    "real-time signal": (lambda: os.kill(os.getpid(), signal.SIGRTMIN + 1), "failed", "the objective died of signal"),
    "SIGTERM from elsewhere": (
        lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(60),
        "failed",
        "the objective was told to end by SIGTERM, and not by the run",
    ),
    "SIGHUP from elsewhere": (
        lambda: os.kill(os.getpid(), signal.SIGHUP) or time.sleep(60),
        "failed",
        "the objective was told to end by SIGHUP, and not by the run",
    ),
    "hang": (hangs, "killed", "killed: it took longer than 1s, the limit of a trial"),
    "hang without SIGTERM": (hangs_deaf, "killed", "killed: it took longer"),
    "hang that catches all": (swallows_everything, "killed", "killed: it took longer"),
    "closed channel": (close_all, "failed", "the objective closed the channel"),
    "shut channel": (shut_all, "failed", "the objective closed the channel"),
    "garbled channel": (
        lambda: write_to_all(b"hello world, hello pipe"),
        "failed",
        "the objective wrote into the channel between its process and the run",
    ),
    "half a message": (lambda: write_to_all(b"farthing\0\0\0\0\0\0\1\0abc"), "killed", "killed: it took longer"),
    "a message of its own": (
        lambda: write_to_all(b"farthing\0\0\0\0\0\0\0\3abc"),
        "failed",
        "the objective wrote into the channel",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_trial_with_its_status_and_reason_and_the_study_goes_on(name):
    fault, status, reason = FAULTS[name]

    def objective(config: dict[str, Any]) -> float:
        return 1.0 if ft.current_run().trial != 1 else fault()

    study = ft.Study(LINE, "3 evaluations", policy="random", seed=0)
    began = time.perf_counter()
    study.run(objective, isolate=True, trial_seconds=LIMIT if status == "killed" else 30.0, progress=False)
    assert time.perf_counter() - began < 30.0
    assert [trial.status.value for trial in study.trials] == ["complete", status, "complete"]
    error = study.trials[1].error.splitlines()[-1]
    assert re.search(reason, error), error
    assert study.ledger.account(status, "evaluations") == 1.0
    assert study.ledger.running == 0


@pytest.mark.parametrize("name", ["exception", "os exit", "segmentation fault", "hang", "nan"])
def test_a_fault_in_the_middle_of_a_training_keeps_the_curve(name):
    fault, status, _ = FAULTS[name]

    def objective(config: dict[str, Any]) -> Iterator[Any]:
        yield 2.0
        if ft.current_run().trial == 1:
            yield fault()
        yield 1.0

    study = iterative("3 evaluations", policy="random", max_steps=2)
    study.run(objective, isolate=True, trial_seconds=LIMIT if status == "killed" else 30.0, progress=False)
    assert [trial.status.value for trial in study.trials] == ["complete", status, "complete"]
    assert [len(trial.curve) for trial in study.trials] == [2, 1, 2]


def pids_in(path: Path) -> set[int]:
    return set(map(int, path.read_text().split()))


def is_there(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("end", ["limit", "death", "return"])
@pytest.mark.parametrize("session", [False, True])
def test_processes_that_an_objective_started_end_with_it(tmp_path, end, session):
    """Children and grandchildren, in sessions of their own too."""
    notes = tmp_path / "pids"
    script = f"echo $$ >> {notes}; exec sleep 60"
    script = f"sh -c '{script}' & {script}"

    def objective(config: dict[str, Any]) -> float:
        subprocess.Popen(["sh", "-c", script], start_new_session=session)
        while not notes.exists() or len(notes.read_text().split()) < 2:
            time.sleep(0.02)
        if end == "death":
            os._exit(1)
        time.sleep(60.0 * (end == "limit"))
        return 1.0

    study = ft.Study(LINE, "1 evaluation", policy="random", seed=0)
    study.run(objective, isolate=True, trial_seconds=2 * LIMIT if end == "limit" else 30.0, progress=False)
    assert [t.status.value for t in study.trials] == [{"limit": "killed", "death": "failed", "return": "complete"}[end]]
    assert len(pids_in(notes)) == 2
    deadline = time.monotonic() + 30.0
    while any(is_there(pid) for pid in pids_in(notes)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
