"""Looking at a study file, which changes nothing: neither the file, nor its log, nor the index of that.

A file that was closed is read as it is. One that somebody uses is read through SQLite, which shares it. One that was
not closed is checked first, its log and its pages, and a copy of both is read. In all three the checksums of the events
are followed from the first to the last, and the mark of use says whether that is the last.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from farthing.errors import StorageError
from farthing.record.checksums import BEGINNING
from farthing.record.marks import HEARTBEAT, DamagedMark, Use, body_of, use_of
from farthing.record.paths import MAGIC, require_ordinary
from farthing.record.recovery import (
    CHECKED_FROM,
    SECONDS_TO_WAIT,
    UNREADABLE,
    Event,
    FileState,
    KnownLog,
    copied,
    damaged,
    log_of,
    read_only,
    rows_in,
    whole_rows,
)
from farthing.record.schema import APPLICATION_ID, Format, is_blank, number_of, version_in
from farthing.record.sharing import is_used
from farthing.record.wal import HEADER
from farthing.text.plain import warn


@dataclass(frozen=True)
class Contents:
    """What was found in a file, and what the file was like then."""

    state: FileState
    events: tuple[Event, ...] = ()  # all, or those after a known one
    times: tuple[float, ...] = ()  # of these
    last: int = 0  # the number of the last event
    chain: int = BEGINNING  # its checksum
    heartbeat: str | None = None
    used: bool = False  # by some process at that time


class Known(NamedTuple):
    """The last event that is known of a file, and its checksum."""

    last: int = 0
    chain: int = BEGINNING


NOTHING = Known()


def look(path: Path, name: str, form: Format, after: Known = NOTHING) -> Contents:
    """What a file holds, if it is sound; again if somebody has changed it meanwhile. Of a file that was read before,
    only what came after."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        require_ordinary(path, name)
        state = FileState.of(path)
        try:
            attempt = _Look(path, name, form, state, after)
            found = attempt.contents()
        except (*UNREADABLE, OSError, StorageError) as error:
            busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            if time.monotonic() > deadline or not (busy or FileState.of(path) != state):
                raise _explained(path, name, error) from error
        else:
            if found.used or FileState.of(path) == state or time.monotonic() > deadline:
                for text in attempt.said:
                    warn(f"{name}: {text}")
                return found
        time.sleep(0.02)


@contextmanager
def glimpse(path: Path, name: str, form: Format) -> Iterator[sqlite3.Connection]:
    """A file to read from as it is: a study by its schema, of which neither checksums nor pages have been checked."""
    require_ordinary(path, name)
    looking = _Look(path, name, form, FileState.of(path), NOTHING)
    try:
        with looking.glimpse() as found:
            yield found
    except (*UNREADABLE, OSError) as error:
        raise StorageError(f"{name}: cannot be read at a glance ({error})") from error


def _explained(path: Path, name: str, error: BaseException) -> StorageError:
    if isinstance(error, StorageError):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CORRUPT or isinstance(error, UnicodeError) or "decode to UTF-8" in str(error):
        return damaged(path, name, f"is damaged ({error})")
    return StorageError(f"{name}: cannot be opened as a study file ({error})")


@dataclass(frozen=True)
class _Look:
    """One look at a file in a known state."""

    path: Path
    name: str
    form: Format
    state: FileState
    after: Known
    said: list[str] = field(default_factory=list)  # what is lost or in doubt, in words

    def contents(self) -> Contents:
        if self.state.lost_its_database:
            raise StorageError(
                f"{self.name}: is empty, but its write-ahead log {log_of(self.path).name} is not: the file was "
                "cut off or replaced. Put back a copy of it; neither was touched"
            )
        if self.state.size == 0:
            self._require_known(0, BEGINNING)
            return Contents(self.state)
        used, log = self._log()
        if loss := log.loss:
            self.said.append(loss)
        with self._connection(used, log) as connection:
            return self._read(connection, bool(used), log)

    @contextmanager
    def glimpse(self) -> Iterator[sqlite3.Connection]:
        """A connection to a file that is a study by its schema."""
        if self.state.size == 0:
            raise StorageError(f"{self.name}: the file is empty")
        used, log = self._log()
        with self._connection(used, log) as connection:
            if is_blank(connection):
                raise StorageError(f"{self.name}: the file holds no study yet")
            version_in(connection, self.form, self.name)
            connection.execute("BEGIN")
            yield connection

    def _log(self) -> tuple[bool | None, KnownLog]:
        """Whether the file is used, None if that is not known, and its log if that has to be looked through."""
        used = is_used(self.path) if self.state.unclean else False
        log = KnownLog.of(self.path) if self.state.unclean and not used else KnownLog()
        if not log.state.readable:
            file = log_of(self.path).name
            raise self._damaged(f"its write-ahead log {file} is damaged at its beginning, so what it held is lost")
        return used, log

    @contextmanager
    def _connection(self, used: bool | None, log: KnownLog) -> Iterator[sqlite3.Connection]:
        """One that cannot write. Where SQLite cannot share the log, we read a copy of both."""
        if not self.state.unclean:
            with closing(read_only(self.path, immutable=True)) as connection:
                yield connection
            return
        if used is not False:
            with closing(read_only(self.path)) as connection:
                if _can_read(connection):
                    yield connection
                    return
            log = KnownLog.of(self.path)
        self._require_ours(log)
        with copied(self.path, log.state) as connection:
            yield connection

    def _require_ours(self, log: KnownLog) -> None:
        """Before a file is copied: it may be a gigabyte of anything. Its first page may be in the log."""
        with self.path.open("rb") as file:
            header = file.read(100)
        if 1 not in log.state.pages and header[:16] != MAGIC:
            raise StorageError(f"{self.name}: cannot be opened as a study file (it is no SQLite file)")
        if 1 not in log.state.pages and header[68:72] not in (APPLICATION_ID.to_bytes(4), bytes(4)):
            raise StorageError(f"{self.name}: is an SQLite file, but not a Farthing study")

    def _read(self, connection: sqlite3.Connection, used: bool, log: KnownLog) -> Contents:
        if is_blank(connection):  # being made, or killed while it was made
            self._require_known(0, BEGINNING)
            return Contents(self.state, used=used)
        version = version_in(connection, self.form, self.name)
        if not used:
            self._require_whole_pages(connection, log)
            if self.state.unclean and (fault := _fault_found(connection)):
                raise self._damaged(f"is damaged ({fault})")
        connection.execute("BEGIN")  # events and marks of one moment
        events, times, chains = self._events(connection, version)
        beat = None
        if version >= CHECKED_FROM:
            self._require_all(connection, chains)
            beat = self._heartbeat(connection)
        last = self.after.last + len(events)
        return Contents(self.state, tuple(events), tuple(times), last, chains[-1], beat, used)

    def _events(self, connection: sqlite3.Connection, version: int) -> tuple[list[Event], list[float], list[int]]:
        last, chain = self.after
        if last and version >= CHECKED_FROM:
            found = connection.execute("SELECT number, checksum FROM events WHERE number = ?", (last,)).fetchone()
            self._require_known(*(found or (0, BEGINNING)))
        events, times, chains = list[Event](), list[float](), [chain]
        try:
            for (_, time, kind, body), link in whole_rows(rows_in(connection, version, last), last, chain):
                events.append((kind, body))
                times.append(time)
                chains.append(link)
        except ValueError as error:
            raise self._damaged(str(error)) from error
        return events, times, chains

    def _require_known(self, last: int, chain: int) -> None:
        if (last, chain) != self.after:
            raise StorageError(
                f"{self.name}: event {self.after.last} is not the one that was read before: the file was replaced; "
                "open it anew"
            )

    def _require_all(self, connection: sqlite3.Connection, chains: list[int]) -> None:
        """The mark of use counts the events that there were."""
        try:
            use = use_of(connection)
        except DamagedMark as error:
            self.said.append(f"{error}, so it is not known whether all its events are there")
            return
        if use is None:
            use = Use(False, 0, BEGINNING)
        first = self.after.last
        last = first + len(chains) - 1
        if last < use.last or (use.last >= first and chains[use.last - first] != use.checksum):
            raise self._damaged(f"held {use.last} events, and {last} of them are there")
        alone = use.last == last and self.state.log.size <= HEADER  # else an SQLite tool has emptied the log
        if use.open and alone and not is_used(self.path):
            self.said.append(
                "it was in use when it was written last, and its write-ahead log is missing: "
                f"what was written after event {use.last} is lost"
            )

    def _heartbeat(self, connection: sqlite3.Connection) -> str | None:
        try:
            return body_of(connection, HEARTBEAT)
        except DamagedMark as error:
            self.said.append(f"{error}: what was spent since the last event is not charged")
            return None

    def _require_whole_pages(self, connection: sqlite3.Connection, log: KnownLog) -> None:
        """SQLite fills up a page that was cut off with zeros, which is right only if the log holds it anew."""
        page = number_of(connection, "page_size")
        if self.state.size % page and self.state.size // page + 1 not in log.state.pages:
            raise self._damaged(f"was cut off inside a page, after {self.state.size} bytes")

    def _damaged(self, what: str) -> StorageError:
        return damaged(self.path, self.name, what)


def _can_read(connection: sqlite3.Connection) -> bool:
    try:
        is_blank(connection)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise
        return False
    return True


def _fault_found(connection: sqlite3.Connection) -> str | None:
    """The first thing that SQLite's check finds wrong, None if nothing is."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return None if found == "ok" else str(found).replace("\n", " ")
