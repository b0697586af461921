"""A run with worker processes can get a signal at any moment: no announced trial is lost, no process is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from faulty_child import STEPS, gate_of, objective_of, study_of

import farthing as ft
from learners import Alternating, bodies

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")

CHILD = Path(__file__).with_name("faulty_child.py")


class Nursery:
    """The process that forks children, and what the living child says; see faulty_child."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.child = 0

    def start(self, path: Path, kind: str = "plain", workers: int = 1, waits_at: int = 0) -> None:
        self._process.stdin.write(f"{path}\t{kind}\t{workers}\t{waits_at}\n")
        self._process.stdin.flush()
        (line,) = [line for line in self.until("child") if line[0] == "child"]
        self.child = int(line[1])

    def until(self, word: str, times: int = 1) -> list[list[str]]:
        """The lines that the child writes, in words, until `times` of them began with this one."""
        lines: list[list[str]] = []
        while sum(line[0] == word for line in lines) < times:
            line = self._process.stdout.readline()
            assert line, "the nursery is closed"
            lines.append(line.split())
        return lines

    def send(self, number: int) -> None:
        os.kill(self.child, number)

    def close(self) -> None:
        with self._process:
            self._process.stdin.close()
            assert self._process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def require_gone(pids: set[int], seconds: float = 30.0) -> None:
    """Wait for the processes to end: usually less than a second, more where the machine is busy."""
    deadline = time.monotonic() + seconds
    while left := {pid for pid in pids if is_there(pid)}:
        assert time.monotonic() < deadline, f"{left} are still there"
        time.sleep(0.01)


class Witness:
    """Knows what the children said, and compares it with their file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended: dict[int, float] = {}  # trials announced as complete
        self.steps: Counter[int] = Counter()  # that were announced
        self.workers: set[int] = set()

    def hears(self, lines: list[list[str]]) -> None:
        for line in lines:
            match line:
                case ["told", number, status, steps, value]:
                    if status == "complete":
                        assert int(number) not in self.ended, f"trial {number} was told twice"
                        self.ended[int(number)] = float(value)
                    self.steps[int(number)] = max(self.steps[int(number)], int(steps))
                case ["worker", pid, _]:
                    self.workers.add(int(pid))

    def checks(self, kind: str) -> None:
        """A fresh reader finds everything that was announced, once."""
        require_gone(self.workers)
        told = Counter(body["trial"] for body in bodies(self.path, "told") if body["status"] == "complete")
        assert set(told.values()) <= {1}, "a trial was completed twice"
        with ft.Study.resume(self.path, policy=study_of_policy(kind)) as study:
            trials = study._history.trials
            assert study.ledger.total("evaluations") == sum(trial.counted for trial in trials)
            assert not [trial for trial in trials if trial.status in (ft.Status.FAILED, ft.Status.KILLED)]
        for number, value in self.ended.items():
            assert trials[number].status is ft.Status.COMPLETE
            assert trials[number].value == value
        for number, steps in self.steps.items():
            assert len(trials[number].curve) >= steps


def study_of_policy(kind: str) -> Alternating | None:
    return Alternating() if kind == "training" else None


def goes_on(path: Path, kind: str, workers: int) -> None:
    """Trials that were cut short run again, and then new ones."""
    with study_of(path, kind) as study:
        wanted = study.count(ft.Status.COMPLETE) + 3

        def enough(study: ft.Study, trial: ft.Trial) -> None:
            if study.count(ft.Status.COMPLETE) >= wanted and not study.count(ft.Status.INTERRUPTED):
                study.stop()

        study.run(objective_of(path, kind), workers=workers, progress=False, callbacks=[enough])
        complete = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
        assert len(complete) >= wanted
        if kind == "training":
            assert {len(trial.curve) for trial in complete} == {STEPS}
            assert "retrained" not in study.ledger.accounts, "there were checkpoints"


@pytest.mark.parametrize("kind", ["plain", "training"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_at_random_moments_nothing_announced_is_lost_and_no_process_is_left(nursery, tmp_path, kind, workers, number):
    """Eight times each, 64 in all: while the run starts, or while trials are running."""
    moments, witness = random.Random(f"{kind} {workers} {number}"), Witness(tmp_path / "study.db")
    for turn in range(8):
        nursery.start(witness.path, kind, workers)
        if early := turn % 4 == 0:
            time.sleep(moments.uniform(0.0, 0.5))
        else:
            witness.hears(nursery.until("told"))
            time.sleep(moments.uniform(0.0, 0.1))
        nursery.send(number)
        lines = nursery.until("ended")
        witness.hears(lines)
        code, logged = int(lines[-1][1]), [" ".join(line) for line in lines if line[0] == "log"]
        if number == signal.SIGKILL:
            assert code == -signal.SIGKILL
        elif not early or code != -signal.SIGTERM:  # which came before the run began
            assert code == 143
            assert any("interrupted after" in line and "Study.resume(" in line for line in logged)
        if witness.path.exists() and not early:
            witness.checks(kind)
    assert sum(witness.steps.values()) + len(witness.ended) >= 5
    goes_on(witness.path, kind, workers)


@pytest.mark.parametrize("kind", ["plain", "training"])
def test_after_one_ctrl_c_running_trials_end_and_no_new_ones_begin(nursery, tmp_path, kind):
    path = tmp_path / "study.db"
    nursery.start(path, kind, workers=2, waits_at=1)
    began = nursery.until("waits", 2)
    nursery.send(signal.SIGINT)
    time.sleep(0.1)
    gate_of(path).touch()
    lines = nursery.until("ended")
    assert lines[-1] == ["ended", "130"]
    assert any("interrupted after 2 trials" in " ".join(line) for line in lines)
    assert not [line for line in lines if line[0] == "worker"], "no new trial was begun"
    assert sorted(line[1] for line in lines if line[0] == "told") == ["0", "1"]
    require_gone({int(line[1]) for line in began if line[0] == "worker"})
    with ft.Study.resume(path, policy=study_of_policy(kind)) as study:
        if kind == "plain":
            assert [trial.status.value for trial in study.trials] == ["complete"] * 2
        else:  # the step that was running is there, and the rest can follow
            assert [len(trial.curve) for trial in study.trials] == [1, 1]
            assert [trial.saved_step for trial in study._history.trials] == [1, 1]
    goes_on(path, kind, 2)


@pytest.mark.parametrize("kind", ["plain", "training"])
def test_a_second_ctrl_c_kills_running_trials(nursery, tmp_path, kind):
    path = tmp_path / "study.db"
    nursery.start(path, kind, workers=2, waits_at=1)
    began = nursery.until("waits", 2)
    nursery.send(signal.SIGINT)
    time.sleep(0.3)
    assert is_there(nursery.child), "the first one waits"
    nursery.send(signal.SIGINT)
    assert nursery.until("ended")[-1] == ["ended", "130"]
    require_gone({int(line[1]) for line in began if line[0] == "worker"})
    with ft.Study.resume(path, policy=study_of_policy(kind)) as study:
        assert [trial.status.value for trial in study.trials] == ["interrupted"] * 2
        assert study.ledger.account("interrupted", "compute_seconds") > 0.2
    goes_on(path, kind, 2)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["term", "hup"])
def test_sigterm_leaves_a_training_step_time_to_end(nursery, tmp_path, number, code):
    """And so does SIGHUP, when the terminal is closed."""
    path = tmp_path / "study.db"
    nursery.start(path, "training", workers=1, waits_at=2)
    assert nursery.until("waits")[-1] == ["waits", "0", "2"]  # all three are paused after a step; the first goes on
    nursery.send(number)
    time.sleep(0.1)
    gate_of(path).touch()
    assert nursery.until("ended")[-1] == ["ended", str(code)]
    with ft.Study.resume(path, policy=Alternating()) as study:
        assert [len(trial.curve) for trial in study.trials] == [2, 1, 1]
    goes_on(path, "training", 1)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
    ids=["term", "hup", "ctrl-c"],
)
def test_in_the_runs_own_process_the_trial_is_interrupted_at_once(nursery, tmp_path, number, code):
    path = tmp_path / "study.db"
    nursery.start(path, "here", waits_at=1)
    (worker,) = [line for line in nursery.until("waits") if line[0] == "worker"]
    assert int(worker[1]) == nursery.child
    nursery.send(number)
    lines = nursery.until("ended")
    assert lines[-1] == ["ended", str(code)]
    assert any("interrupted after 1 trial" in " ".join(line) for line in lines)
    with ft.Study.resume(path) as study:
        assert [trial.status.value for trial in study.trials] == ["interrupted"]
    goes_on(path, "plain", 1)


def test_sigterm_to_the_run_and_its_workers_is_an_interruption_too(nursery, tmp_path):
    """Cluster schedulers send it to all processes. Whichever is hit first, the trial has not failed."""
    path = tmp_path / "study.db"
    nursery.start(path, "plain", workers=2, waits_at=1)
    for line in nursery.until("waits", 2):
        if line[0] == "worker":
            os.kill(int(line[1]), signal.SIGTERM)
    nursery.send(signal.SIGTERM)
    assert nursery.until("ended")[-1] == ["ended", "143"]
    with ft.Study.resume(path) as study:
        assert [trial.status.value for trial in study.trials] == ["interrupted"] * 2
    goes_on(path, "plain", 2)
