"""What a study file says of itself beside its events, in rows that are overwritten: whether it is in use, and a
heartbeat.

The mark of use is in the file itself, not only in its log, before anything else is written: so a file whose log was
removed can be told from one that was closed.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import asdict, dataclass

from farthing.record import stored_checks as stored
from farthing.record.checksums import checksum

USE, HEARTBEAT = 1, 2  # numbers of rows
KINDS = {USE: "use", HEARTBEAT: "heartbeat"}


@dataclass(frozen=True)
class Use:
    """Whether the file is in use, and its last event when that was written."""

    open: bool
    last: int
    checksum: int  # of the last event

    @classmethod
    def read(cls, body: str) -> Use:
        found = cls(**json.loads(body))
        stored.switch("open", found.open)
        stored.whole("last", found.last)
        return found


class DamagedMark(ValueError):
    """A mark that is not as it was written."""


def mark(connection: sqlite3.Connection, number: int, body: str) -> None:
    """Write a mark, in the place of the one before; a part of the transaction that is under way."""
    now = time.time()
    row = (number, now, KINDS[number], body, checksum(number, now, KINDS[number], body))
    connection.execute("INSERT OR REPLACE INTO marks (number, time, kind, body, checksum) VALUES (?, ?, ?, ?, ?)", row)


def mark_use(connection: sqlite3.Connection, use: Use) -> None:
    mark(connection, USE, json.dumps(asdict(use)))


def forget_heartbeat(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM marks WHERE number = ?", (HEARTBEAT,))


def body_of(connection: sqlite3.Connection, number: int) -> str | None:
    """The text of a mark, None if there is none."""
    row = connection.execute("SELECT time, kind, body, checksum FROM marks WHERE number = ?", (number,)).fetchone()
    if row is None:
        return None
    when, kind, body, said = row
    if kind != KINDS[number] or said != checksum(number, when, kind, body):
        raise DamagedMark(f"its mark of {KINDS[number]} is damaged")
    return str(body)


def use_of(connection: sqlite3.Connection) -> Use | None:
    """The mark of use, None if nothing was ever written."""
    body = body_of(connection, USE)
    try:
        return None if body is None else Use.read(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedMark(f"its mark of use cannot be read ({error!r:.200})") from error
