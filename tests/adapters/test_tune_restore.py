"""`Tuner.restore` after the process that drove the experiment was killed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import farthing as ft

HERE = Path(__file__).parent
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_AIR_NEW_OUTPUT": "0", "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "0.5",  # Tune's own is 10 seconds
}  # fmt: skip
PATIENCE = 120  # seconds


def driver(folder: Path, storage: str, *restore: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(ft.__file__).parent.parent), str(HERE), os.environ.get("PYTHONPATH", "")])
    with (folder / f"output{len(restore)}.txt").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, str(HERE / "tune_driver.py"), str(folder), storage, *restore],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path}, stdout=output, stderr=output,
        )  # fmt: skip


def steps_reported(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.glob("killed/*/result.json"))


@pytest.mark.parametrize("kept", ["in a file", "in Tune's checkpoints"])
def test_a_killed_experiment_goes_on_and_nothing_is_doubled(tmp_path, request, kept):
    """With a file of its own the study knows more than Tune: steps that are trained again are charged as such, and
    trials that Tune does not know run again. Without one, Tune may know a step of each trial before the checkpoint of
    it. Each model that a trial ends with has seen each step once."""
    storage = str(tmp_path / "study.db") if kept == "in a file" else "none"
    first = driver(tmp_path, storage)
    request.addfinalizer(first.kill)
    until = time.monotonic() + PATIENCE
    while steps_reported(tmp_path) < 5 and first.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert first.poll() is None, (tmp_path / "output0.txt").read_text()
    first.kill()
    first.wait()
    second = driver(tmp_path, storage, "restore")
    request.addfinalizer(second.kill)
    assert second.wait(PATIENCE) == 0, (tmp_path / "output1.txt").read_text()
    found = ast.literal_eval((tmp_path / "results.txt").read_text())
    with ft.Study.open(tmp_path / "study.db") as study:
        trials, ledger = study.trials, study.ledger
        assert study.why_ended == "the budget of 24 cost is spent"
    assert 24 <= ledger.spent <= 28  # two trials at once: at most one step of each is too much
    assert ledger.account("evaluation") == sum(sum(trial.curve.costs) for trial in trials)
    assert ledger.account("retrained") <= 4 or kept == "in a file"  # two trials at once, and a step costs at most 2
    assert [trial.status.value for trial in trials[:2]].count("failed") == 1
    assert set(found) == {trial.config["optimizer/rate"] for trial in trials}
    for trial in trials:  # one that trains steps again may not have caught up when the budget ends
        seen, steps = found[trial.config["optimizer/rate"]], len(trial.curve)
        assert seen in [k * (k + 1) / 2 for k in range(0 if kept == "in a file" else steps, steps + 1)]
