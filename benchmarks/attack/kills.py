"""SIGKILL at random moments of a study's life, in six modes, against a side log that is synced to the disk.

After the kills a study is continued to its end. Then its file is compared with what was known to be recorded before
each kill, with the side log, and with a study that nobody killed.

lost             an answer that was on disk before a kill is missing or different
doubled          a trial has two final results
invented         a result that no evaluation ever noted
wrong ledgers    the number of evaluations is not that of the trials; or more seconds were charged than passed
undercharged     a study lost more than 1.5 s per kill of what it really spent, the start of Python included
other proposals  a configuration differs from that of the study that nobody killed
false alarms     a warning of damage, although there was none but the kill
left behind      a process lived on for more than three seconds after its run was killed
not continued    a life that should have ended by itself failed
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.attack.lives import CLI, IN_PYTHON, MODES, Home, Life, Nursery, start_cli
from benchmarks.attack.logged import lines_of
from benchmarks.attack.results import Result
from farthing.errors import StorageError
from farthing.record.reader import read_study
from farthing.trial import Status, Trial

OUTCOMES = (
    "lost", "doubled", "invented", "wrong ledgers", "undercharged", "other proposals", "false alarms", "left behind",
    "not continued",
)  # fmt: skip
ENDLESS = "100000 evaluations"
MORE = 4  # evaluations that follow the last kill
UNSAVED_SECONDS = 1.5  # that one kill may keep from being charged: the heartbeat's second, and slack for a busy machine
CLOCK_SLACK = 0.02  # seconds per life by which charges may pass what we measured: the kernel's clock is coarse
FINAL = ("complete", "failed", "stopped", "killed")

LONGEST = {"black box": 0.35, "workers": 1.2, "yielding": 1.2} | dict.fromkeys(CLI, 1.8)  # seconds of a life, at first
EARLY_SECONDS = 0.02  # every fifth life in Python ends in its first moments: opening, creating, reading

Start = Callable[[Home, str], Life]


@dataclass(frozen=True)
class Setting:
    """How many studies there are of each mode, and how often each is killed."""

    studies: int = 4
    kills: int = 13


@dataclass
class Witness:
    """Knows what was recorded before each kill, and compares it with what is there at the end."""

    home: Home
    seen: dict[int, Trial] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    real_seconds: float = 0.0
    charged: float = 0.0
    kills: int = 0

    def look(self, path: Path) -> None:
        """Remember what a reader sees; whatever was seen before has to be there."""
        try:
            now = {trial.number: trial for trial in read_study(path).trials}
        except RuntimeWarning:  # made an error below: a kill is no damage
            self.counts["false alarms"] += 1
            return
        except StorageError:  # killed while it was made: there is no study yet
            now = {}
        self.counts["lost"] += sum(not _kept(trial, now.get(number)) for number, trial in self.seen.items())
        self.seen = now

    def look_at_copy(self) -> None:
        """The file itself is left for the next life to recover."""
        with tempfile.TemporaryDirectory() as folder:
            for suffix in ("", "-wal"):
                if (there := self.home.path.with_name(self.home.path.name + suffix)).exists():
                    shutil.copy(there, folder)
            copy = Path(folder) / self.home.path.name
            if copy.exists() and copy.stat().st_size:
                self.look(copy)

    def judge(self, straight: Home) -> None:
        """At the end, when nothing runs any more."""
        study, lines = read_study(self.home.path), lines_of(self.home.log)
        self.look(self.home.path)
        told = {line["trial"]: line for line in lines if line["did"] == "told" and line["status"] in FINAL}
        self.counts["lost"] += sum(
            study.trial(number).status.value != line["status"] or study.trial(number).value != line["value"]
            for number, line in told.items()
        )
        ends = Counter(body["trial"] for kind, body in _events(self.home.path) if _is_final(kind, body))
        self.counts["doubled"] += sum(count > 1 for count in ends.values())
        noted = Counter((line["trial"], line["value"]) for line in lines if line["did"] != "told")
        complete = [trial for trial in study.trials if trial.status is Status.COMPLETE]
        self.counts["invented"] += sum((trial.number, trial.value) not in noted for trial in complete)
        self.counts["wrong ledgers"] += not self._ledger_is_right(study)
        expected = [trial.config for trial in read_study(straight.path).trials]
        found = [trial.config for trial in study.trials]
        self.counts["other proposals"] += abs(len(found) - len(expected))
        self.counts["other proposals"] += sum(a != b for a, b in zip(found, expected, strict=False))
        self.counts["evaluations"] += len(complete)
        self.counts["done again"] += noted.total() - len(noted)

    def _ledger_is_right(self, study: Any) -> bool:
        ledger = study.ledger
        self.charged = ledger.total("seconds")
        lives = self.kills + 1
        self.counts["undercharged"] += self.charged < self.real_seconds - UNSAVED_SECONDS * lives
        is_empty = not ledger.running and not ledger.committed
        in_time = self.charged <= self.real_seconds + CLOCK_SLACK * lives
        return ledger.total("evaluations") == len(study.trials) and is_empty and in_time


def _kept(before: Trial, now: Trial | None) -> bool:
    """Whether what was recorded of a trial is still there: its result, or at least its steps."""
    if now is None or now.config != before.config or len(now.curve) < len(before.curve):
        return False
    if before.status.value in FINAL:
        return (now.status, now.value, now.cost, now.error) == (before.status, before.value, before.cost, before.error)
    return now.curve.values[: len(before.curve)] == before.curve.values


def _is_final(kind: str, body: dict[str, Any]) -> bool:
    return kind == "told" and body["status"] in FINAL


def _events(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """As SQLite itself sees them."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT kind, body FROM events ORDER BY number").fetchall()
    return [(kind, json.loads(body)) for kind, body in rows]


def killed_study(home: Home, start: Start, kills: int) -> Witness:
    """A study that is killed, continued to its end, and judged."""
    witness, moments = Witness(home.furnished()), random.Random(f"{home.mode} {home.seed}")
    longest = LONGEST[home.mode]
    for kill in range(kills):
        early = home.mode in IN_PYTHON and kill % 5 == 0
        before = len(lines_of(home.log))
        life = start(home, ENDLESS)
        time.sleep(moments.uniform(0.0, EARLY_SECONDS if early else longest))
        if home.mode in CLI and kill % 2 and home.path.exists() and home.path.stat().st_size:
            witness.look(home.path)  # as somebody would who looks while it runs
        witness.real_seconds += life.killed()
        witness.counts["left behind"] += life.left()
        witness.kills += 1
        witness.look_at_copy()
        if not early and len(lines_of(home.log)) == before:  # too short for one evaluation: machines differ
            longest = min(1.3 * longest, 10.0)
    target = f"{len(witness.seen) + MORE} evaluations"
    witness.counts["not continued"] += _lived(start, home, target, witness) != 0
    straight = Home(home.folder / "straight", home.mode, home.seed).furnished()
    witness.counts["not continued"] += _lived(start, straight, target) != 0
    witness.judge(straight)
    return witness


def _lived(start: Start, home: Home, budget: str, witness: Witness | None = None) -> int:
    """A life that ends by itself."""
    life = start(home, budget)
    status = life.ended()
    if witness:
        witness.real_seconds += time.monotonic() - life.began
        witness.counts["left behind"] += life.left()
    return status


def mode_killed(mode: str, setting: Setting, folder: Path) -> Result:
    """All studies of one mode."""
    nursery = Nursery() if mode in IN_PYTHON else None
    start = nursery.start if nursery else start_cli
    try:
        homes = [Home(folder / f"{MODES.index(mode)}-{seed}", mode, seed) for seed in range(setting.studies)]
        found = [killed_study(home, start, setting.kills) for home in homes]
    finally:
        if nursery:
            nursery.close()
    counts = sum((witness.counts for witness in found), Counter())
    numbers = {
        "evaluations": counts["evaluations"],
        "done again": counts["done again"],
        "seconds lived": sum(witness.real_seconds for witness in found),
        "seconds charged": sum(witness.charged for witness in found),
    }
    kills = sum(witness.kills for witness in found)
    result = Result(mode, kills, {outcome: counts[outcome] for outcome in OUTCOMES}, numbers)
    print(f"kills, {result}", flush=True)
    return result


def attack(quick: bool) -> list[Result]:
    """Two modes at a time."""
    setting = Setting(1, 5) if quick else Setting()
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory(prefix="attack-kills-") as folder, ThreadPoolExecutor(2) as pool:
        order = sorted(MODES, key=lambda mode: mode in IN_PYTHON)  # the long ones first
        by_mode = dict(zip(order, pool.map(lambda mode: mode_killed(mode, setting, Path(folder)), order), strict=True))
    return [by_mode[mode] for mode in MODES]
