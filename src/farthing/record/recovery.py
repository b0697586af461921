"""What can still be read of a study file that was not closed, cut off or overwritten.

Nothing here opens the database file but through SQLite while somebody uses it: see sharing.py.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from farthing.errors import StorageError
from farthing.record.checksums import BEGINNING, Row, checksum
from farthing.record.paths import FileStamp, beside
from farthing.record.schema import CURRENT, Format, harden, version_in
from farthing.record.sharing import index_header, is_used
from farthing.record.wal import HEADER, LogState, frames_in_index, log_state

SECONDS_TO_WAIT = 30.0  # for another process's lock
CHECKED_FROM = 2  # the schema version from which events have checksums

# what a file of any origin can make of SQLite and of what we make of its rows
UNREADABLE = (sqlite3.Error, UnicodeError, OverflowError, MemoryError)

Event = tuple[str, str]  # kind, JSON


@dataclass(frozen=True)
class FileState:
    """What can be seen of a study file without opening it."""

    file: FileStamp
    log: FileStamp

    @classmethod
    def of(cls, path: Path) -> FileState:
        log = FileStamp.of(log_of(path))  # first: a rival that makes the file now makes its log later
        return cls(FileStamp.of(path), log)

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def lost_its_database(self) -> bool:
        """SQLite takes such a file for new, and deletes the log."""
        return self.size == 0 and self.log.size > HEADER

    @property
    def unclean(self) -> bool:
        """Whether the last process to use it did not close it, or still uses it."""
        return self.log.size > 0


def log_of(path: Path) -> Path:
    return beside(path, "-wal")


@dataclass(frozen=True)
class KnownLog:
    """The log of a file that nobody uses, and what its index knows of it."""

    state: LogState = field(default_factory=LogState)
    indexed: int | None = None  # frames there were, None where that is not known

    @classmethod
    def of(cls, path: Path) -> KnownLog:
        try:
            with log_of(path).open("rb") as file:
                state = log_state(file)
        except FileNotFoundError:  # its last user has just closed it
            return cls()
        return cls(state, frames_in_index(index_header(path), state.salts) if state.salts else None)

    @property
    def loss(self) -> str | None:
        """What is missing at its end, in words; None if nothing is, as far as anybody can know."""
        state = self.state
        if self.indexed is not None:
            missing = self.indexed - state.committed
            if missing <= 0:
                return None
            return f"its write-ahead log ends after page {state.committed}, {missing} more were in it: events are lost"
        if state.beyond:
            return (
                f"its write-ahead log is damaged after page {state.whole}, and the {state.beyond} pages after that are "
                "left out: events that were in them are lost"
            )
        if state.torn:
            return (
                f"its write-ahead log ends in the middle of what was being written, after page {state.committed}: "
                "that is left out, and if the log was cut off or overwritten, events are lost"
            )
        return None


def read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection that cannot write. An immutable file needs no locks, but its write-ahead log is not looked at."""
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    uri = f"file:{quote(os.path.abspath(path))}?{options}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
    )  # fmt: skip
    try:
        harden(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def copied(path: Path, log: LogState) -> Iterator[sqlite3.Connection]:
    """A copy of a file and of what counts in its log. SQLite would rewrite the log's index to read the file itself,
    or cannot share the log."""
    with tempfile.TemporaryDirectory(prefix="farthing-") as folder:
        copy = Path(folder) / "study.db"
        shutil.copyfile(path, copy)
        if log.length:
            with log_of(path).open("rb") as source, log_of(copy).open("wb") as target:
                left = log.length
                while left > 0 and (part := source.read(min(left, 1 << 20))):
                    target.write(part)
                    left -= len(part)
        with closing(read_only(copy, immutable=not log.length)) as connection:
            yield connection


def rows_in(connection: sqlite3.Connection, version: int, after: int = 0) -> sqlite3.Cursor:
    """Number, time, kind, body and checksum of the events after one, which is NULL in files that have none."""
    last = "checksum" if version >= CHECKED_FROM else "NULL"
    where = f"WHERE number > {after}" if after else ""  # without, also those whose number can be none
    return connection.execute(f"SELECT number, time, kind, body, {last} FROM events {where} ORDER BY number")


def whole_rows(
    rows: Iterator[tuple[object, ...]], after: int = 0, chain: int = BEGINNING
) -> Iterator[tuple[Row, int]]:  # fmt: skip
    """Each event with the checksum up to it; a ValueError at the first that is not whole. `chain` is the checksum of
    the event `after`, which comes before them."""
    for expected, (number, time, kind, body, said) in enumerate(rows, start=after + 1):
        if number != expected:
            raise ValueError(f"event {expected} is missing: event {number} comes in its place")
        if not isinstance(kind, str) or not isinstance(body, str) or not isinstance(time, float):
            raise ValueError(f"event {expected} is no text")
        chain = checksum(expected, time, kind, body, chain)
        if said is not None and said != chain:
            raise ValueError(f"event {expected} is not as it was written: its checksum is wrong")
        yield (expected, time, kind, body), chain


def damaged(path: Path, name: str, what: str) -> StorageError:
    """What is wrong, how much could be read, and what can be done."""
    events = len(readable(path))
    if not events:
        return StorageError(f"{name}: {what}; none of its events can be read. Put back a copy of the file")
    return StorageError(
        f"{name}: {what}; its first {events} events can be read. Put back a copy of the file, or go on with these in a "
        f"new one: farthing.record.storage.salvage({name!r}, 'new.db')"
    )


def readable(path: Path, form: Format = CURRENT) -> list[Row]:
    """The events of a file, damaged or not, up to the first that is not whole."""
    try:
        with _any_connection(path) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # lets SQLite read a file that is shorter than it says
            version = version_in(connection, form, str(path))
            return list(_readable_rows(connection, version))
    except (*UNREADABLE, StorageError, OSError):
        return []


@contextmanager
def _any_connection(path: Path) -> Iterator[sqlite3.Connection]:
    state = FileState.of(path)
    if state.unclean and not is_used(path):
        with copied(path, KnownLog.of(path).state) as connection:
            yield connection
    else:
        with closing(read_only(path, immutable=not state.unclean)) as connection:
            yield connection


def _readable_rows(connection: sqlite3.Connection, version: int) -> Iterator[Row]:
    try:
        for row, _ in whole_rows(rows_in(connection, version)):
            json.loads(row[3])
            yield row
    except (*UNREADABLE, ValueError, RecursionError):
        return
