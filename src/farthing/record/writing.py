"""Writing to a study file: the one connection that changes it.

Before the first event the file is marked as in use, with its last event so far, and all that is in the log is moved
into the file; so again when the log has grown. A clean end marks the file as closed, with its last event. So a file
without its log is complete if it was closed, or if it holds more than the mark of use counts: then an SQLite tool has
moved everything into it. SQLite itself moves nothing while we write (`wal_autocheckpoint=0`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import quote

from farthing.errors import StorageError
from farthing.record.checksums import ChainedRow
from farthing.record.lock import exclusive, held_here
from farthing.record.marks import HEARTBEAT, Use, forget_heartbeat, mark, mark_use
from farthing.record.paths import FileStamp, make_private, require_ordinary, require_writable
from farthing.record.recovery import SECONDS_TO_WAIT, UNREADABLE, log_of, read_only
from farthing.record.schema import INSERT, Format, create, harden, is_blank, migrate, version_in
from farthing.record.sharing import closed_here, opened_here

SECONDS_FOR_READERS = 1.0  # who look while a file is closed: without them its log can be emptied
PAGE, PAGES_AT_LEAST = 4096, 2  # bytes of a page, and pages that a transaction changes
MOST_IN_LOG = 1000 * PAGE  # bytes, about: as much as SQLite itself would let it grow
RIVAL = (
    "another process has written to this study since it was opened here, or another Study object of this process; "
    "only one may write at a time (any number may read). Open it anew, by Study.resume"
)


class Overtaken(StorageError):
    """Somebody else has written to the file since it was read here."""


class Writer:
    """A study file in use. `last` and `chain` are the number and the checksum of its last event."""

    def __init__(self, path: Path, name: str, form: Format, last: int, chain: int) -> None:
        self.path, self.name, self._form, self.last, self.chain = path, name, form, last, chain
        self._marked, self._begun, self._in_log, self._process = False, False, 0, os.getpid()
        require_ordinary(path, name)
        require_writable(path, name)
        make_private(path, name)
        self._held = [(str(path), _identity(str(path)))]  # files in use, and which they are
        opened_here(path)
        try:
            self._connection = self._open_patiently()
        except BaseException as error:
            closed_here(path)
            if isinstance(error, UNREADABLE):
                raise StorageError(f"{name}: cannot be opened to be written ({error})") from error
            raise

    def _open_patiently(self) -> sqlite3.Connection:
        """SQLite does not wait for a rival who is turning the same new file to a write-ahead log: we do."""
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                return self._open()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _open(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.path))}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )  # fmt: skip
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        harden(connection)
        if not is_blank(connection):
            version_in(connection, self._form, self.name)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        if is_blank(connection):
            create(connection, self._form)
        if version_in(connection, self._form, self.name) < self._form.version:
            with nullcontext() if held_here(self.path) else exclusive(self.path):
                migrate(connection, self._form, self.name)
        self._require_same_files()

    def write(self, rows: Sequence[ChainedRow], before: int) -> None:
        """All of them in one transaction, or none; `before` is the number of events there are."""
        try:
            self._transact(lambda connection: connection.executemany(INSERT, rows), sum(len(row[3]) for row in rows))
        except sqlite3.IntegrityError as error:
            raise Overtaken(f"{self.name}: {RIVAL}") from error
        except sqlite3.Error as error:
            raise StorageError(
                f"{self.name}: the event could not be written ({error}); the {before} events before it are whole"
            ) from error

    def beat(self, text: str) -> None:
        self._transact(lambda connection: mark(connection, HEARTBEAT, text), len(text))

    def _transact(self, change: Callable[[sqlite3.Connection], object], length: int) -> None:
        """A change; the first one takes away the heartbeat of an earlier process, which was read when it was opened."""
        self._require_same_files()
        if not self._marked or self._in_log > MOST_IN_LOG:
            self._mark_in_use()
        with self._transaction() as connection:
            if not self._begun:
                forget_heartbeat(connection)
            change(connection)
        self._begun, self._in_log = True, self._in_log + length + PAGES_AT_LEAST * PAGE

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some errors have ended it already
                connection.execute("ROLLBACK")
            raise

    def _mark_in_use(self) -> None:
        """In the file itself, with all events so far."""
        with self._transaction() as connection:
            if self._last_in_file() != self.last:
                raise Overtaken(f"{self.name}: {RIVAL}")
            mark_use(connection, Use(True, self.last, self.chain))
        self._into_the_file()
        if not self._marked:
            log = str(log_of(self.path))
            self._held.append((log, _identity(log)))
        self._marked, self._in_log = True, 0

    def _last_in_file(self) -> int:
        (last,) = self._connection.execute("SELECT max(number) FROM events").fetchone()
        return last or 0

    def _into_the_file(self) -> None:
        """Move what is in the log into the file, if that leaves room on the disk for what comes."""
        log = FileStamp.of(log_of(self.path)).size
        with suppress(sqlite3.Error, OSError):
            if shutil.disk_usage(self.path.parent).free > 2 * log:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _require_same_files(self) -> None:
        """What SQLite writes to a file that was deleted or replaced would be lost without a word."""
        for file, identity in self._held:
            if _identity(file) != identity:
                raise StorageError(
                    f"{self.name}: {os.path.basename(file)} was deleted or replaced while it was in use, so nothing "
                    f"more is written to it; the study in memory is whole up to event {self.last}"
                )

    def close(self) -> None:
        """A fork does not close what its parent uses."""
        if os.getpid() != self._process:
            return
        try:
            with _reader_of(self.path) if self._is_to_be_marked() and not self._marked_closed() else nullcontext():
                self._connection.close()
        finally:
            closed_here(self.path)

    def _is_to_be_marked(self) -> bool:
        """Not a file that was deleted or replaced; of one whose log was deleted, SQLite saves what is in the log."""
        return self._marked and all(_identity(file) == identity for file, identity in self._held)

    def _marked_closed(self) -> bool:
        """Mark it as closed, and empty its log, unless somebody else has written to it."""
        connection = self._connection
        try:
            with self._transaction():
                if self._last_in_file() == self.last:
                    mark_use(connection, Use(False, self.last, self.chain))
            connection.execute(f"PRAGMA busy_timeout={1000 * SECONDS_FOR_READERS:.0f}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            return False
        return True


def _reader_of(path: Path) -> AbstractContextManager[object]:
    """Where a file could not be marked as closed, say on a full disk, its log must stay: SQLite leaves it to a reader,
    who cannot remove it."""
    try:
        reader = read_only(path)
        is_blank(reader)
    except sqlite3.Error:
        return nullcontext()
    return closing(reader)


def _identity(file: str) -> tuple[int, int] | None:
    """Which file it is, None if there is none; looked at before every event, so it has to be quick."""
    try:
        found = os.lstat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino
