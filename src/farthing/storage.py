"""The event log: append-only, in one SQLite file or in memory.

An event is a kind and a JSON text under consecutive numbers. Appending returns once the events are on disk (write-ahead
log, synchronous=FULL, one transaction for what happens at once), so that whoever changes memory afterwards never knows
more than the file. A second process may read at any time. Two writers cannot interleave: the numbers must stay
consecutive, and the one that comes late is told.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Protocol

from farthing.errors import StorageError

SCHEMA_VERSION = 1
APPLICATION_ID = 0x46544847  # "FTHG" in ASCII, so that `file` and we know our own
SECONDS_TO_WAIT = 30.0  # for another process's lock

_SCHEMA = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    time   REAL NOT NULL,
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL
) STRICT
"""


class EventLog(Protocol):
    """Where events go."""

    @property
    def name(self) -> str: ...
    def append(self, *events: tuple[str, str]) -> None: ...
    def read(self) -> Iterator[tuple[str, str]]: ...
    def close(self) -> None: ...


class MemoryLog:
    """A log that lives as long as its study."""

    name = "memory"

    def __init__(self) -> None:
        self._events: list[tuple[str, str]] = []

    def append(self, *events: tuple[str, str]) -> None:
        self._events.extend(events)

    def read(self) -> Iterator[tuple[str, str]]:
        return iter(list(self._events))

    def close(self) -> None:
        pass


class SQLiteLog:
    """A log in a file, made when it is not there."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._last = 0
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare_patiently()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: cannot be opened as a study file ({error})") from error

    @property
    def name(self) -> str:
        return str(self.path)

    def _prepare_patiently(self) -> None:
        """SQLite does not wait for a rival who is turning the same new file to a write-ahead log: we do."""
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                return self._prepare()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _prepare(self) -> None:
        connection = self._connection
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if self._is_empty() and application == 0:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if self._is_empty() and application == 0:
            self._create()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise StorageError(f"{self.path}: is an SQLite file, but not a Farthing study")
        if version != SCHEMA_VERSION:
            raise StorageError(
                f"{self.path}: has schema version {version}, this Farthing reads version {SCHEMA_VERSION}; "
                "use the Farthing that wrote it or a newer one"
            )

    def _is_empty(self) -> bool:
        tables: int = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return tables == 0

    def _create(self) -> None:
        """One transaction, so that a file is either whole or empty; a rival that was faster is fine."""
        self._connection.execute("BEGIN IMMEDIATE")
        if self._is_empty():
            self._connection.execute(_SCHEMA)
            self._connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        self._connection.execute("COMMIT")

    def append(self, *events: tuple[str, str]) -> None:
        rows = [(number, time.time(), kind, body) for number, (kind, body) in enumerate(events, self._last + 1)]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO events (number, time, kind, body) VALUES (?, ?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError as error:
            raise StorageError(
                f"{self.path}: another process has written to this study since it was opened here; "
                "only one may run it at a time (any number may read)"
            ) from error
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: the event could not be written ({error})") from error
        self._last += len(rows)

    def read(self) -> Iterator[tuple[str, str]]:
        try:
            rows = self._connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: cannot be read ({error})") from error
        self._last = rows[-1][0] if rows else 0
        return iter([(kind, body) for _, kind, body in rows])

    def close(self) -> None:
        self._connection.close()


def open_log(storage: str | PathLike[str] | None) -> EventLog:
    """The log in that file, or one in memory."""
    if storage is None:
        return MemoryLog()
    path = Path(storage)
    if not path.parent.is_dir():
        raise StorageError(f"{path}: the folder {path.parent} does not exist")
    return SQLiteLog(path)
