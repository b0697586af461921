"""Changes to the events of a study file, by somebody who also mends its checksums and its mark of use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from farthing.record.checksums import chained
from farthing.record.marks import Use, mark_use


def change(path: Path, statement: str, *many: tuple[object, ...]) -> int:
    """Run a statement for each of some tuples of values, or once; returns how many rows it changed the last time."""
    with closing(sqlite3.connect(path)) as connection:
        for values in many or [()]:
            count = connection.execute(statement, values).rowcount
        connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        stored = connection.execute("SELECT number, time, kind, body FROM events ORDER BY number").fetchall()
        mended = list(chained(stored))
        connection.executemany("UPDATE events SET checksum = ? WHERE number = ?", [(r[4], r[0]) for r in mended])
        mark_use(connection, Use(False, mended[-1][0], mended[-1][4]))
        connection.commit()
    return count
