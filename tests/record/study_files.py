"""Study files to be damaged, and how SQLite itself sees them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import farthing as ft
from farthing.record.schema import APPLICATION_ID, EVENTS_1

SPACE = ft.Space(x=ft.Real(0, 1))


FILES = Path(__file__).with_name("files")


def old_file(name: str, path: Path) -> Path:
    """A study file of an earlier version, unpacked to a path with all that lay beside it."""
    for suffix in ("", "-wal"):
        if (stored := FILES / f"{name}.db{suffix}.gz").exists():
            Path(f"{path}{suffix}").write_bytes(gzip.decompress(stored.read_bytes()))
    return path


def shown(trial: ft.Trial) -> dict[str, object]:
    """What there was to see of a trial, as `files/seen-*.json` hold it."""
    curve = [list(trial.curve.values), list(trial.curve.costs), list(trial.curve.train_values)]
    return {
        "number": trial.number, "config": trial.config, "status": trial.status.value, "value": trial.value,
        "cost": trial.cost, "error": trial.error, "curve": curve, "attributes": dict(trial.attributes),
        "reason": trial.reason, "predicted": trial.predicted_cost,
    }  # fmt: skip


def rows(path: Path) -> list[tuple[int, str, str]]:
    """The events of a file as SQLite itself sees them."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()


def pragma(path: Path, name: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def small_study(path: Path) -> None:
    """A study file of two trials."""
    with ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path) as study:
        for value in (1.0, 2.0):
            study.tell(study.ask(), value=value)


def version_1(path: Path) -> None:
    """The same study as the schema version before checksums held it."""
    small_study(path)
    rewritten(path)


def rewritten(path: Path, change: Callable[[dict[str, Any]], None] = lambda first: None) -> None:
    """A file as the schema version before checksums held it, with a change to the body of its first event."""
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT number, time, kind, body FROM events ORDER BY number").fetchall()
    first = json.loads(stored[0][3])
    change(first)
    stored[0] = (*stored[0][:3], json.dumps(first))
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(EVENTS_1)
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", stored)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("PRAGMA user_version=1")
        connection.commit()


def a_text(path: Path) -> None:
    path.write_text("the only copy of my thesis, " * 1000)


OPENERS = {
    "Study": lambda path: ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path),
    "Study.resume": ft.Study.resume,
}
