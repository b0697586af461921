"""Study files to be damaged, and how SQLite itself sees them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import farthing as ft

SPACE = ft.Space(x=ft.Real(0, 1))


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


def a_text(path: Path) -> None:
    path.write_text("the only copy of my thesis, " * 1000)


OPENERS = {
    "Study": lambda path: ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path),
    "Study.resume": ft.Study.resume,
}
