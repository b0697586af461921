"""kill -9 at any moment: no trial that was told is lost or stored twice, and the study goes on unharmed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from crash_child import BUDGET, SEED, SPACE, objective

import farthing as ft

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and fork")

CHILD = Path(__file__).with_name("crash_child.py")


class Witness:
    """Knows what the children said, and compares it with their file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.announced: dict[int, float | None] = {}

    def hears(self, line: str) -> None:
        _, number, value = line.split()
        assert int(number) not in self.announced, f"trial {number} was told twice"
        self.announced[int(number)] = None if value == "None" else float(value)

    def events(self) -> list[tuple[int, str, dict[str, Any]]]:
        """What a reader finds in a copy. The file itself is left for the next child to recover."""
        with tempfile.TemporaryDirectory() as folder:
            for suffix in ("", "-wal"):
                if (there := self.path.with_name(self.path.name + suffix)).exists():
                    shutil.copy(there, folder)
            copy = Path(folder) / self.path.name
            if not copy.exists():
                return []
            with closing(sqlite3.connect(copy)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    return []
                rows = connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()
        return [(number, kind, json.loads(body)) for number, kind, body in rows]

    def checks(self) -> None:
        """The file is whole, its events consecutive; every announced trial is in it, with its value, once."""
        events = self.events()
        assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
        assert [kind for _, kind, _ in events[:2]] == ["opened", "budgeted"][: len(events)]
        told = [body for _, kind, body in events if kind == "told"]
        assert all(body["status"] in ("complete", "failed") for body in told)
        assert not [number for number, times in Counter(body["trial"] for body in told).items() if times > 1]
        on_disk = {body["trial"]: body["value"] for body in told}
        for number, value in self.announced.items():
            assert number in on_disk, f"trial {number} was told and is lost"
            assert on_disk[number] == value
        asked: dict[int, dict[str, Any]] = {}
        for _, kind, body in events:
            if kind == "asked":
                assert asked.setdefault(body["trial"], body["config"]) == body["config"], "again the same"
        assert sorted(asked) == list(range(len(asked)))
        assert set(range(len(asked))) - set(on_disk) <= {len(asked) - 1}, "only the last may be unfinished"

    def compares_with_an_uninterrupted_run(self, policy: str) -> int:
        """Trial by trial, config and value; returns how many trials there were."""
        with ft.Study.resume(self.path) as survived:
            found = [(trial.config, trial.value) for trial in survived.trials]
            ended = [trial.number for trial in survived.trials if trial.status is not ft.Status.INTERRUPTED]
            assert survived.ledger.total("evaluations") == len(ended)
        straight = ft.Study(SPACE, BUDGET, policy=policy, seed=SEED)

        def stop(study: ft.Study, trial: ft.Trial) -> None:
            if trial.number == len(found) - 1:
                study.stop()

        straight.run(objective, progress=False, callbacks=[stop])
        expected = [(trial.config, trial.value) for trial in straight.trials]
        for number, (here, there) in enumerate(zip(found, expected, strict=True)):
            assert here[0] == there[0], f"trial {number} is another one"
            assert number not in ended or here[1] == there[1]
        return len(found)


@contextmanager
def nursery():
    """The process that forks children; see crash_child."""
    with subprocess.Popen(
        [sys.executable, str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(("policy", "kills", "trials"), [("sobol", 30, 36), ("ei", 14, 12)])
def test_killed_at_random_moments_nothing_told_is_lost_and_the_study_goes_on(disk_path, policy, kills, trials):
    """A fifth of the kills come in the first five milliseconds: opening, creating, reading.

    The other lives grow longer whenever one was too short for a single trial, because disks and machines differ.
    """
    witness, moments = Witness(disk_path / "study.db"), random.Random(f"{policy} 2")
    kill, longest = 0, 50.0
    with nursery() as process:
        while kill < kills or len(witness.announced) < trials:
            early = kill % 5 == 0
            milliseconds = moments.uniform(0.0, 5.0 if early else longest)
            process.stdin.write(f"{witness.path}\t{policy}\t{milliseconds}\n")
            process.stdin.flush()
            heard = len(witness.announced)
            while (line := process.stdout.readline()).startswith("told"):
                witness.hears(line)
            assert line == f"ended {-signal.SIGKILL}\n", "it did not end on its own"
            witness.checks()
            kill += 1
            assert kill < 10 * kills, "children get nothing done"
            if not early and len(witness.announced) == heard:
                longest = min(1.2 * longest, 2000.0)
    assert witness.compares_with_an_uninterrupted_run(policy) >= trials


def test_whole_processes_killed_from_their_start_on(tmp_path):
    """New interpreters, killed while they import, open or run, and while their last words are in the pipe."""
    witness, moments = Witness(tmp_path / "study.db"), random.Random(3)
    for kill in range(4):
        child = subprocess.Popen(
            [sys.executable, str(CHILD), str(witness.path), "random"], stdout=subprocess.PIPE, text=True
        )
        if kill % 2:
            while len(witness.announced) < 5 * kill:  # until it has come this far
                witness.hears(child.stdout.readline())
        time.sleep(moments.uniform(0.0, 0.1))
        child.kill()
        for line in child.communicate(timeout=30)[0].splitlines():
            witness.hears(line)
        assert child.returncode == -signal.SIGKILL
        witness.checks()
    assert witness.compares_with_an_uninterrupted_run("random") >= 15
