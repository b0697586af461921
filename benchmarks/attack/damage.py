"""Damaged study files: cut off, overwritten, zeroed, without their log, everywhere and aimed at headers.

Each file is opened by a reader and by `Study.resume`, a sample also by `farthing status`. The worst outcome counts:

same content        nothing was lost
loss said           an error of farthing.errors, or a RuntimeWarning; what was read is right
loss not said       trials or steps are missing, and nothing was said
wrong data          a trial, value or ledger that never was
traceback           any other exception, of the internals
took too long       more than ten seconds
changed by looking  the reader changed the file or its log (counted beside the others)
"""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import farthing as ft
from benchmarks.attack.damages import CLOSED_DAMAGES, LOG_DAMAGES, Damage
from benchmarks.attack.logged import InTurns
from benchmarks.attack.patience import TookTooLong, at_most
from benchmarks.attack.processes import farthing, run
from benchmarks.attack.results import Result
from benchmarks.attack.specimens import KILLED, KINDS, Specimen
from farthing.errors import FarthingError
from farthing.record.reader import read_study

SAME, SAID, UNSAID, WRONG, TRACEBACK, LATE = (
    "same content", "loss said", "loss not said", "wrong data", "traceback", "took too long",
)  # fmt: skip
WORST_LAST = (SAME, SAID, UNSAID, WRONG, TRACEBACK, LATE)
CHANGED = "changed by looking"
LONGEST_SECONDS = 10


@dataclass(frozen=True)
class Content:
    """What a study file says."""

    trials: list[ft.Trial]
    accounts: Mapping[str, Mapping[str, float]]
    settings: tuple[object, ...]

    @classmethod
    def of(cls, study: Any, *settings: object) -> Content:
        return cls(study.trials, study.ledger.accounts, (str(study.ledger.budget), study.notes, *settings))

    def total(self, unit: str) -> float:
        return sum(amounts.get(unit, 0.0) for amounts in self.accounts.values())


def read(path: Path) -> Content:
    return Content.of(read_study(path))


def resumed(path: Path, has_own_policy: bool) -> Content:
    with ft.Study.resume(path, policy=InTurns() if has_own_policy else None) as study:
        return Content.of(study, str(study.policy), study.seed, study.maximize, str(study.space))


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """The events of a file as SQLite itself sees them."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()


def outcome_of(look: Callable[[], Content], truth: Content, is_earlier: Callable[[Content], bool]) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with at_most(LONGEST_SECONDS):
                found = look()
        except FarthingError:
            return SAID
        except TookTooLong:
            return LATE
        except BaseException as error:
            return TRACEBACK if not isinstance(error, KeyboardInterrupt) else _again(error)
    if found == truth:
        return SAME
    if not is_earlier(found):
        return WRONG
    return SAID if any(issubclass(one.category, RuntimeWarning) for one in said) else UNSAID


def _again(error: BaseException) -> str:
    raise error


@dataclass(frozen=True)
class Subject:
    """A specimen, and what is true of it."""

    specimen: Specimen
    by_reader: Content
    by_resume: Content
    rows: list[tuple[object, ...]]

    @classmethod
    def of(cls, specimen: Specimen, path: Path) -> Subject:
        specimen.put(path)
        by_reader = read(path)
        specimen.put(path)
        by_resume = resumed(path, specimen.has_own_policy)
        specimen.put(path)
        return cls(specimen, by_reader, by_resume, rows_of(path))

    def attacked(self, damage: Damage, seed: int, path: Path) -> tuple[str, bool, Specimen]:
        """The worst outcome, whether looking changed a file, and the damaged files."""
        rng = random.Random(f"{self.specimen.name} {damage.name} {seed}")
        hurt = replace(self.specimen, files=damage.done(self.specimen.files, rng))
        hurt.put(path)
        outcomes = [outcome_of(lambda: read(path), self.by_reader, partial(self.was_true, hurt, path))]
        changed = _differs(hurt, path)
        hurt.put(path)
        outcomes.append(
            outcome_of(
                lambda: resumed(path, self.specimen.has_own_policy), self.by_resume, partial(self.was_true, hurt, path)
            )
        )
        return max(outcomes, key=WORST_LAST.index), changed, hurt

    def was_true(self, hurt: Specimen, path: Path, found: Content) -> bool:
        """Whether the damaged file holds the first events and no other, and not more was charged than is true."""
        copy = path.with_name("copy.db")
        hurt.put(copy)
        try:
            rows = rows_of(copy)
        except sqlite3.Error:
            return False
        units = {unit for amounts in found.accounts.values() for unit in amounts}
        return rows == self.rows[: len(rows)] and all(found.total(u) <= self.by_reader.total(u) + 1e-9 for u in units)


def _differs(specimen: Specimen, path: Path) -> bool:
    """Whether the file or its log is another one now; the log's index belongs to SQLite."""
    for suffix in ("", "-wal"):
        file, before = path.with_name(path.name + suffix), specimen.files.get(suffix)
        if (file.read_bytes() if file.exists() else b"") != (before or b""):
            return True
    return False


def status_outcome(hurt: Specimen, path: Path) -> str:
    """By the command line: a traceback is what its user must not see."""
    hurt.put(path)
    ended = run(farthing("status", path), limit=30.0)
    if ended.status is None:
        return LATE
    if "Traceback" in ended.errors or ended.status not in (0, 1):
        return TRACEBACK
    return SAID if ended.status or "warning" in ended.errors.lower() else "opened"


def pairs() -> list[tuple[str, Damage]]:
    """Which damage is done to which specimen."""
    found = [(name, damage) for name in KINDS for damage in CLOSED_DAMAGES]
    return found + [(name, damage) for name in KILLED for damage in LOG_DAMAGES]


def attack(quick: bool) -> list[Result]:
    files, every = (100, 20) if quick else (1000, 20)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    by_status: Counter[str] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-damage-", dir=_fast_place()) as place:
        path = Path(place) / "study.db"
        subjects = {}
        for name in KINDS:
            home = Path(place) / f"specimen-{len(subjects)}"
            home.mkdir()
            subjects[name] = Subject.of(Specimen.made(name, home), path)
        todo = pairs()
        random.Random(0).shuffle(todo)
        for number in range(files):
            name, damage = todo[number % len(todo)]
            worst, changed, hurt = subjects[name].attacked(damage, number // len(todo), path)
            outcomes[damage.name][worst] += 1
            outcomes[damage.name][CHANGED] += changed
            if worst in (UNSAID, WRONG, TRACEBACK, LATE):
                print(f"damage {number}, {damage.name} of {name!r}: {worst}", flush=True)
            if number % every == 0:
                by_status[status_outcome(hurt, path)] += 1
    results = [
        Result(name, counts.total() - counts[CHANGED], {one: counts[one] for one in (*WORST_LAST, CHANGED)})
        for name, counts in sorted(outcomes.items())
    ]
    results.append(Result("farthing status, a sample", by_status.total(), dict(by_status)))
    print(f"damage: {files} files in {time.monotonic() - began:.0f} s", *results, sep="\n  ", flush=True)
    return results


def _fast_place() -> str | None:
    """Nothing here depends on a disk; memory is kinder to it."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
