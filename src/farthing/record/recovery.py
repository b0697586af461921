"""What became of a study file that was not closed, cut off or overwritten.

SQLite's write-ahead log (`<file>-wal`) is a header of 32 bytes and frames of 24 bytes and a page. A frame counts if its
salts are the header's and its checksum, which runs over everything before it, is right; the first that does not ends
the log. So a log that was cut anywhere loses no more than what was being written. One that was overwritten in its
middle loses whole events too, and SQLite is silent about that: we are not.

Nothing here opens the database file but through SQLite: closing a second descriptor of it would drop SQLite's locks.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from farthing.errors import StorageError
from farthing.record.schema import CURRENT, Format, harden, version_in

SECONDS_TO_WAIT = 30.0  # for another process's lock

HEADER, FRAME_HEADER = 32, 24
MAGIC = 0x377F0682  # its last bit says whether checksums are of big-endian words

Row = tuple[int, float, str, str]  # number, time, kind, body


@dataclass(frozen=True)
class FileState:
    """What can be seen of a study file without opening it."""

    path: Path
    size: int
    log_size: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        log_size = _size(log_of(path))  # first: a rival that makes the file now makes its log later
        return cls(path, _size(path), log_size)

    @property
    def lost_its_database(self) -> bool:
        """SQLite takes such a file for new, and deletes the log."""
        return self.size == 0 and self.log_size > HEADER

    @property
    def unclean(self) -> bool:
        """Whether the last process to use it did not close it, or still uses it."""
        return self.log_size > 0


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@dataclass(frozen=True)
class LogState:
    """What a write-ahead log holds."""

    readable: bool  # whether its header is
    whole: int  # frames that count
    beyond: int  # frames of the same log after one that does not
    pages: frozenset[int] = frozenset()  # that are in the frames that count


def log_state(content: bytes) -> LogState:
    """What SQLite will make of a write-ahead log, and what it will leave out."""
    if len(content) < HEADER:
        return LogState(True, 0, 0)  # nothing was written yet
    magic, _, page, _, *salts_and_sums = struct.unpack(">8I", content[:HEADER])
    order = ">" if magic & 1 else "<"
    sums = _checksum(content[: HEADER - 8], (0, 0), order)
    if magic & ~1 != MAGIC or sums != tuple(salts_and_sums[2:]):
        return LogState(False, 0, 0)
    salts, whole, beyond, pages = content[16:24], 0, 0, set[int]()
    for start in range(HEADER, len(content) - FRAME_HEADER - page + 1, FRAME_HEADER + page):
        ours = content[start + 8 : start + 16] == salts
        if ours and not beyond and whole == (start - HEADER) // (FRAME_HEADER + page):
            sums = _checksum(content[start : start + 8], sums, order)
            sums = _checksum(content[start + FRAME_HEADER : start + FRAME_HEADER + page], sums, order)
            if sums == struct.unpack(">2I", content[start + 16 : start + FRAME_HEADER]):
                whole += 1
                pages.add(int.from_bytes(content[start : start + 4]))
        elif ours:
            beyond += 1
    return LogState(True, whole, beyond, frozenset(pages))


def _checksum(content: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's own, over 32-bit words two by two."""
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    a, b = sums
    for first, second in zip(words[::2], words[1::2], strict=True):
        a = (a + first + b) & 0xFFFFFFFF
        b = (b + second + a) & 0xFFFFFFFF
    return a, b


def read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection that cannot write. An immutable file needs no locks, but its write-ahead log is not looked at."""
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    uri = f"file:{quote(os.path.abspath(path))}?{options}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
    )  # fmt: skip
    harden(connection)
    return connection


def fault_found(connection: sqlite3.Connection) -> str | None:
    """The first thing that SQLite's check finds wrong, None if nothing is."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return None if found == "ok" else str(found).replace("\n", " ")


def fault_in_row(row: tuple[object, ...], expected: int) -> str | None:
    """What is wrong with a row of the table of events, None if nothing is."""
    number, *_, kind, body = row
    if number != expected:
        return f"event {expected} is missing: event {number} comes in its place"
    if not isinstance(kind, str) or not isinstance(body, str):
        return f"event {expected} is no text"
    return None


def damaged(path: Path, what: str) -> StorageError:
    """What is wrong, how much could be read, and what can be done."""
    events = len(readable(path))
    if not events:
        return StorageError(f"{path}: {what}; none of its events can be read. Put back a copy of the file")
    return StorageError(
        f"{path}: {what}; its first {events} events can be read. Put back a copy of the file, or go on with these in a "
        f"new one: farthing.record.storage.salvage({str(path)!r}, 'new.db')"
    )


def readable(path: Path, form: Format = CURRENT) -> list[Row]:
    """The events of a file, damaged or not, up to the first that is not whole."""
    try:
        with closing(read_only(path, immutable=_size(log_of(path)) == 0)) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # lets SQLite read a file that is shorter than it says
            version_in(connection, form, str(path))
            return list(_whole_rows(connection))
    except (sqlite3.Error, StorageError):
        return []


def _whole_rows(connection: sqlite3.Connection) -> Iterator[Row]:
    try:
        rows = connection.execute("SELECT number, time, kind, body FROM events ORDER BY number")
        for expected, row in enumerate(rows, start=1):
            if fault_in_row(row, expected) or not isinstance(row[1], float):
                return
            json.loads(row[3])
            yield row
    except (sqlite3.Error, ValueError, RecursionError):
        return
