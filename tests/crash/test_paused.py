"""kill -9 while trainings are paused: with checkpoints no step is trained twice, without them the paused ones are."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from paused_child import BUDGET, POLICY, STEPS, Learner

import farthing as ft
from learners import cost_of, curve_of, iterative
from warm_python import Script, WarmPython

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")

CHILD = Path(__file__).with_name("paused_child.py")


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    warm = WarmPython()
    yield warm
    warm.close()


def start(python: WarmPython, path: Path, notes: Path, kind: str, waits: int) -> tuple[Script, int]:
    """The child, and where its output can be read."""
    output, stdout = os.pipe()
    try:
        with open(os.devnull) as nothing:
            return python.start(
                CHILD.read_text(), str(path), str(notes), kind, str(waits),
                stdin=nothing.fileno(), stdout=stdout, stderr=2, environment=dict(os.environ),
            ), output  # fmt: skip
    finally:
        os.close(stdout)


def kill(child: Script) -> bool:
    """Kill it; returns whether it had not ended before."""
    with suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


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
def test_killed_while_three_trainings_are_paused(python, tmp_path, straight, kind, waits):
    """While the fourth trial begins; or the fifth, when the first is complete."""
    path, notes, saves = tmp_path / "study.db", tmp_path / "notes", kind == "saving"
    child, output = start(python, path, notes, kind, waits)
    with open(output) as lines:
        assert lines.readline() == "now\n"
        assert kill(child)
    with ft.Study.resume(path, policy=POLICY) as study:
        statuses = [trial.status.value for trial in study.trials]
        paused = [trial for trial in study._history.trials if trial.status is ft.Status.PAUSED]
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


def test_killed_at_any_moment_at_most_the_running_step_is_lost(python, disk_path, straight):
    """A kill may come between the checkpoint of a step and its report: only that step is trained again."""
    path, notes, moments = disk_path / "study.db", disk_path / "notes", random.Random(7)
    notes.touch()
    kills = 0
    for _ in range(4):
        before = notes.stat().st_size
        child, output = start(python, path, notes, "saving", -1)
        os.close(output)
        while notes.stat().st_size == before and Path(f"/proc/{child.pid}").exists():
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.05))
        kills += kill(child)
    with ft.Study.resume(path, policy=POLICY) as study:
        study.run(Learner(notes, saves=True), progress=False)
        assert study.trials == straight
        assert "retrained" not in study.ledger.accounts
    again = sum(count - 1 for count in trained(notes).values())
    assert again <= kills
