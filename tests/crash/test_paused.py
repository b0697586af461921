"""kill -9 while trainings are paused: with checkpoints nothing is trained twice, without them the unfinished."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from paused_child import BUDGET, POLICY, STEPS, Learner

import farthing as ft
from learners import cost_of, curve_of, iterative

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")

CHILD = Path(__file__).with_name("paused_child.py")


def child_of(path: Path, notes: Path, kind: str, waits: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(CHILD), str(path), str(notes), kind, str(waits)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def kill(child: subprocess.Popen[str]) -> bool:
    """Whether it did not end before."""
    child.kill()
    child.communicate(timeout=30)
    return child.returncode == -signal.SIGKILL


def trained(notes: Path) -> Counter[tuple[int, ...]]:
    """How often each step of each trial was trained."""
    return Counter(tuple(map(int, line.split())) for line in notes.read_text().splitlines())


@pytest.fixture(scope="module")
def straight() -> list[ft.Trial]:
    """The trials of the study that nobody killed."""
    study = iterative(BUDGET, policy=POLICY, max_steps=STEPS)
    study.run(Learner(os.devnull, saves=True), progress=False)
    return study.trials


@pytest.mark.parametrize("kind", ["saving", "forgetful"])
@pytest.mark.parametrize("waits", [3, 4])
def test_killed_while_three_trainings_are_paused(tmp_path, straight, kind, waits):
    """While the fourth trial begins; and while the fifth does, when the first is complete."""
    path, notes, saves = tmp_path / "study.db", tmp_path / "notes", kind == "saving"
    child = child_of(path, notes, kind, waits)
    assert child.stdout.readline() == "now\n"
    assert kill(child)
    with ft.Study.resume(path, policy=POLICY) as study:
        statuses = [trial.status.value for trial in study.trials]
        paused = [trial for trial in study.trials if trial.status is ft.Status.PAUSED]
        assert statuses == ["complete"] * (waits - 3) + ["paused"] * 3 + ["interrupted"]
        assert [len(trial.curve) for trial in paused] == ([2] * 3 if waits == 3 else [4] * 3)
        assert [trial.kept_step for trial in paused] == [len(trial.curve) if saves else 0 for trial in paused]
        assert [trial.saved_step for trial in paused] == [trial.kept_step for trial in paused]
        study.run(Learner(notes, saves), progress=False)
        ledger, times = study.ledger, trained(notes)
        again = {key: count - 1 for key, count in times.items() if count > 1}
        if saves:
            assert not again
            assert "retrained" not in ledger.accounts
        else:
            assert again == {(t.number, step): 1 for t in paused for step in range(1, len(t.curve) + 1)}
            assert ledger.account("retrained") == sum(cost_of(step) for _, step in again)
        assert ledger.account("evaluation") == sum(sum(trial.curve.costs) for trial in study.trials)
        assert ledger.spent == ledger.account("evaluation") + ledger.account("retrained")
        assert ledger.total("evaluations") == len(study.trials)
        assert set(times) == {(t.number, step) for t in study.trials for step in range(1, len(t.curve) + 1)}
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        if saves:
            assert study.trials == straight[: len(study.trials)]
    with ft.Study.resume(path, policy=POLICY) as read:
        assert read.trials == study.trials
        assert read.ledger == study.ledger


def test_killed_at_any_moment_at_most_the_step_in_the_making_is_lost(tmp_path, straight):
    """A kill may fall between the checkpoint of a step and its report: that step alone is trained again."""
    path, notes, moments = tmp_path / "study.db", tmp_path / "notes", random.Random(7)
    notes.touch()
    kills = 0
    for _ in range(4):
        before = notes.stat().st_size
        child = child_of(path, notes, "saving", -1)
        while notes.stat().st_size == before and child.poll() is None:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.05))
        kills += kill(child)
    with ft.Study.resume(path, policy=POLICY) as study:
        study.run(Learner(notes, saves=True), progress=False)
        assert study.trials == straight
        assert "retrained" not in study.ledger.accounts
    again = sum(count - 1 for count in trained(notes).values())
    assert again <= kills
