"""The event log: append-only, in one SQLite file or in memory.

An event is a kind and a JSON text under consecutive numbers. Appending returns once the events are on disk (write-ahead
log, synchronous=FULL, one transaction for what happens at once), so that whoever changes memory afterwards never knows
more than the file. A second process may read at any time. Two writers cannot interleave: the numbers must stay
consecutive, and the one that comes late is told.

A file that was closed opens as fast as SQLite opens it. One that was not, or is in use, is first checked by a
connection that cannot write, so that a damaged one is left as it is. One that may not be written is opened to look at.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Protocol

from farthing.errors import StorageError
from farthing.record.lock import exclusive
from farthing.record.recovery import (
    SECONDS_TO_WAIT,
    FileState,
    LogState,
    Row,
    damaged,
    fault_found,
    fault_in_row,
    log_of,
    log_state,
    read_only,
    readable,
)
from farthing.record.schema import (
    CURRENT,
    SCHEMA_VERSION,
    Format,
    create,
    harden,
    is_blank,
    migrate,
    number_of,
    version_in,
)

__all__ = ["SCHEMA_VERSION", "EventLog", "MemoryLog", "SQLiteLog", "open_log", "salvage"]


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
    """A log in a file, made when it is not there; to look at only, where it may not be written."""

    def __init__(self, path: str | PathLike[str], form: Format = CURRENT) -> None:
        self.path = Path(path)
        self._form, self._last = form, 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of a copy
        state = FileState.of(self.path)
        if state.lost_its_database:
            raise StorageError(
                f"{self.path}: is empty, but its write-ahead log {log_of(self.path).name} is not: the file was "
                "cut off or replaced. Put back a copy of it; neither was touched"
            )
        self.writable = state.size == 0 or _may_write(self.path)
        try:
            self._connection = self._open_patiently(state)
        except sqlite3.Error as error:
            raise self._explained("cannot be opened as a study file", error) from error

    @property
    def name(self) -> str:
        return str(self.path)

    def _open_patiently(self, state: FileState) -> sqlite3.Connection:
        """SQLite does not wait for a rival who is turning the same new file to a write-ahead log: we do."""
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                return self._open_to_write(state) if self.writable else self._open_to_read(state)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _open_to_write(self, state: FileState) -> sqlite3.Connection:
        if state.unclean:
            with closing(read_only(self.path)) as reader:
                self._require_sound(reader, state)
        connection = sqlite3.connect(
            self.path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )  # fmt: skip
        try:
            self._prepare(connection, state)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, state: FileState) -> None:
        harden(connection)
        if is_blank(connection):
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if is_blank(connection):
            create(connection, self._form)
        version = version_in(connection, self._form, self.name)
        if not state.unclean:
            self._require_whole_pages(connection, state)
        if version < self._form.version:
            with exclusive(self.path):
                migrate(connection, self._form, self.name)

    def _require_sound(self, connection: sqlite3.Connection, state: FileState) -> None:
        """After an unclean end: the log, and SQLite's own check once it is clear that the file is ours."""
        log = self._sound_log()
        if is_blank(connection):  # killed while it was made
            return
        version_in(connection, self._form, self.name)
        self._require_whole_pages(connection, state, log.pages)
        if fault := fault_found(connection):
            raise damaged(self.path, f"is damaged ({fault})")

    def _sound_log(self) -> LogState:
        log = log_of(self.path)
        try:
            found = log_state(log.read_bytes())
        except FileNotFoundError:  # its last user has just closed it
            return log_state(b"")
        if not found.readable:
            raise damaged(
                self.path, f"its write-ahead log {log.name} is damaged at its beginning, so what it held is lost"
            )  # fmt: skip
        if found.beyond:
            warnings.warn(
                f"{self.path}: its write-ahead log is damaged after page {found.whole}, and the {found.beyond} pages "
                "after that are left out: events that were in them are lost", RuntimeWarning, stacklevel=2,
            )  # fmt: skip
        return found

    def _require_whole_pages(
        self, connection: sqlite3.Connection, state: FileState, in_log: frozenset[int] = frozenset()
    ) -> None:
        """SQLite fills up a page that was cut off with zeros, which is right only if the log holds it anew."""
        page = number_of(connection, "page_size")
        if state.size % page and state.size // page + 1 not in in_log:
            raise damaged(self.path, f"was cut off inside a page, after {state.size} bytes")

    def _open_to_read(self, state: FileState) -> sqlite3.Connection:
        connection = self._reader(state)
        try:
            if state.unclean:
                self._require_sound(connection, state)
            else:
                self._require_whole_pages(connection, state)
            if version_in(connection, self._form, self.name) < self._form.version:
                raise StorageError(f"{self.path}: is of an older schema version, and may not be written: use a copy")
        except BaseException:
            connection.close()
            self._discard_copy()
            raise
        return connection

    def _reader(self, state: FileState) -> sqlite3.Connection:
        """A connection to a file that may not be written. Where SQLite cannot share its log, we read a copy of both."""
        if not state.unclean:
            return read_only(self.path, immutable=True)
        connection = read_only(self.path)
        try:
            is_blank(connection)
            return connection
        except sqlite3.OperationalError:
            connection.close()
        self._folder = tempfile.TemporaryDirectory(prefix="farthing-")
        copy = Path(self._folder.name) / "study.db"
        shutil.copyfile(self.path, copy)
        shutil.copyfile(log_of(self.path), log_of(copy))
        return read_only(copy)

    def append(self, *events: tuple[str, str]) -> None:
        now = time.time()
        self._insert([(number, now, kind, body) for number, (kind, body) in enumerate(events, self._last + 1)])

    def _insert(self, rows: list[Row]) -> None:
        """All of them in one transaction, or none."""
        if not self.writable:
            raise StorageError(
                f"{self.path}: is open for reading only, as the file or its folder may not be written; "
                "to go on with this study copy the file to where you can write"
            )
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO events (number, time, kind, body) VALUES (?, ?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # some errors have ended it already
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError as error:
            raise StorageError(
                f"{self.path}: another process has written to this study since it was opened here; "
                "only one may run it at a time (any number may read)"
            ) from error
        except sqlite3.Error as error:
            raise StorageError(
                f"{self.path}: the event could not be written ({error}); the {self._last} events before it are whole"
            ) from error
        self._last += len(rows)

    def read(self) -> Iterator[tuple[str, str]]:
        try:
            rows = self._connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()
        except sqlite3.Error as error:
            raise self._explained("cannot be read", error) from error
        for expected, row in enumerate(rows, start=1):
            if fault := fault_in_row(row, expected):
                raise damaged(self.path, fault)
        self._last = len(rows)
        return iter([(kind, body) for _, kind, body in rows])

    def _explained(self, what: str, error: sqlite3.Error) -> StorageError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
            return damaged(self.path, f"is damaged ({error})")
        return StorageError(f"{self.path}: {what} ({error})")

    def close(self) -> None:
        self._connection.close()
        self._discard_copy()

    def _discard_copy(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _may_write(path: Path) -> bool:
    """SQLite writes to the file and creates others next to it."""
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def open_log(storage: str | PathLike[str] | None) -> EventLog:
    """The log in that file, or one in memory."""
    if storage is None:
        return MemoryLog()
    path = Path(storage)
    if not path.parent.is_dir():
        raise StorageError(f"{path}: the folder {path.parent} does not exist")
    return SQLiteLog(path)


def salvage(path: str | PathLike[str], new: str | PathLike[str], *, events: int | None = None) -> int:
    """Copy the readable events of a damaged study file, at most the first `events`, to a new file; returns how many.

    The damaged file is left as it is.
    """
    if Path(new).exists():
        raise StorageError(f"{new}: is there already; salvage writes to a new file")
    rows = readable(Path(path))[:events]
    if not rows:
        raise StorageError(f"{path}: none of its events can be read")
    with closing(SQLiteLog(new)) as log:
        log._insert(rows)
    return len(rows)
