"""The event log: append-only, in one SQLite file or in memory.

An event is a kind and a JSON text under consecutive numbers. Appending returns once the events are on disk (write-ahead
log, synchronous=FULL, one transaction for what happens at once), so that whoever changes memory afterwards never knows
more than the file. A second process may read at any time. Two writers cannot interleave: the numbers must stay
consecutive, and the one that comes late is told.

A log is opened to look at (looking.py), which changes nothing. The first event to be written opens it to write
(writing.py): it makes the file if there is none, brings an older one to the newest version, and marks it as in use.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Protocol

from farthing.errors import FarthingError, StorageError
from farthing.record.checksums import Row, chained
from farthing.record.heartbeat import Heartbeat
from farthing.record.looking import Contents, Known, look
from farthing.record.paths import resolved
from farthing.record.recovery import Event, FileState, readable
from farthing.record.schema import CURRENT, SCHEMA_VERSION, Format
from farthing.record.writing import RIVAL, Overtaken, Writer

TICK = 100_000_000  # nanoseconds: more than the time stamps of any file system in use are apart

__all__ = ["SCHEMA_VERSION", "EventLog", "MemoryLog", "SQLiteLog", "open_log", "salvage"]


class EventLog(Protocol):
    """Where events go. `heartbeat` is the text of the last one that was found by reading, None if there is none;
    `times` are those of the events that were read last."""

    heartbeat: str | None
    times: Sequence[float]

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    def append(self, *events: Event) -> float: ...
    def beat(self, heartbeat: Heartbeat) -> None: ...
    def read(self) -> Iterator[Event]: ...
    def close(self) -> None: ...


class MemoryLog:
    """A log that lives as long as its study."""

    name = "memory"
    heartbeat: str | None = None
    times: Sequence[float] = ()  # nothing is ever read that was not written here

    def __init__(self) -> None:
        self._events: list[Event] = []

    @property
    def count(self) -> int:
        return len(self._events)

    def append(self, *events: Event) -> float:
        self._events.extend(events)
        return time.time()

    def beat(self, heartbeat: Heartbeat) -> None:
        """Nothing of a study in memory outlives its process."""

    def read(self) -> Iterator[Event]:
        return iter(list(self._events))

    def close(self) -> None:
        pass


class SQLiteLog:
    """A log in a file. `name` is the file as its user calls it, `path` where it really is."""

    def __init__(self, path: str | PathLike[str], form: Format = CURRENT) -> None:
        self.name, self.path = str(path), resolved(path)
        self._form, self._closed = form, False
        self._lock = threading.RLock()  # a heartbeat comes from another thread
        self._writer: Writer | None = None
        self._seen: Contents | None = None  # not yet handed out
        self.times: Sequence[float] = ()
        self._take_in(look(self.path, self.name, form))

    def _take_in(self, found: Contents) -> None:
        self._seen, self._state, self.heartbeat, self.times = found, found.state, found.heartbeat, found.times
        self._last, self._chain = found.last, found.chain

    @property
    def count(self) -> int:
        """How many events it holds, as far as this process knows."""
        return self._last

    def read(self) -> Iterator[Event]:
        """All events, as they are now."""
        with self._lock:
            self._require_open()
            seen, self._seen = self._seen, None
            if seen is None or seen.used or FileState.of(self.path) != seen.state:
                seen = look(self.path, self.name, self._form)
                self._take_in(seen)
                self._seen = None
            return iter(seen.events)

    def read_on(self) -> Iterator[Event]:
        """The events that others have written since this log was read or written to last; see `is_as_it_was`."""
        with self._lock:
            self._require_open()
            self._take_in(look(self.path, self.name, self._form, Known(self._last, self._chain)))
            seen, self._seen = self._seen, None
            if self._writer is not None:
                self._writer.last, self._writer.chain = self._last, self._chain
            assert seen is not None
            return iter(seen.events)

    @property
    def is_as_it_was(self) -> bool:
        """Whether the file is as it was when it was read last, in short: what was written a moment ago may not show in
        its time stamps."""
        now = FileState.of(self.path)
        if not now.file.exists or now.file.identity != self._state.file.identity:
            what = "replaced by another" if now.file.exists else "deleted"
            raise StorageError(f"{self.name}: was {what} since it was opened; open it anew")
        newest = max(now.file.modified, now.log.modified)
        return now == self._state and abs(time.time_ns() - newest) > TICK

    def append(self, *events: Event) -> float:
        """Returns when that was, which is a part of every event."""
        now = time.time()
        with self._lock:
            self._write([(number, now, kind, body) for number, (kind, body) in enumerate(events, self._last + 1)])
        return now

    def _write(self, rows: list[Row]) -> None:
        """All of them in one transaction, or none."""
        self._require_open()
        writer, new = self._open_to_write(), list(chained(rows, self._chain))
        writer.write(new, self._last)
        self._last += len(new)
        self._chain = new[-1][-1] if new else self._chain
        writer.last, writer.chain = self._last, self._chain

    def beat(self, heartbeat: Heartbeat) -> None:
        """Write a heartbeat over the one before, if no event came after what it counts."""
        with self._lock:
            self._require_open()
            if heartbeat.after == self._last:
                self._open_to_write().beat(heartbeat.text())

    def _open_to_write(self) -> Writer:
        """What was looked at is what is written to: who has changed it meanwhile is a rival, or has damaged it."""
        if self._writer is None:
            self._seen = None
            if FileState.of(self.path) != self._state:
                found = look(self.path, self.name, self._form)
                if (found.last, found.chain) != (self._last, self._chain):
                    raise Overtaken(f"{self.name}: {RIVAL}")
            self._writer = Writer(self.path, self.name, self._form, self._last, self._chain)
            self._closing = weakref.finalize(self, Writer.close, self._writer)  # also when the process ends
        return self._writer

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.name}: the study was closed")

    def close(self) -> None:
        with self._lock:
            self._closed, self._seen = True, None
            if self._writer is not None:
                self._closing()
                self._writer = None


def open_log(storage: str | PathLike[str] | None) -> EventLog:
    """The log in that file, or one in memory."""
    return MemoryLog() if storage is None else SQLiteLog(storage)


def salvage(path: str | PathLike[str], new: str | PathLike[str], *, events: int | None = None) -> int:
    """Copy the readable events of a damaged study file, at most the first `events`, to a new file; returns how many.

    The damaged file is left as it is.
    """
    if Path(new).exists():
        raise StorageError(f"{new}: is there already; salvage writes to a new file")
    rows = readable(resolved(path))[:events]
    if not rows:
        raise StorageError(f"{path}: none of its events can be read")
    with closing(SQLiteLog(new)) as log:
        log._write(rows)
    return len(rows)


@contextmanager
def closed_on_error(log: EventLog) -> Iterator[EventLog]:
    """A file that turns out to be the wrong one is not held open."""
    try:
        yield log
    except BaseException as error:
        log.close()
        if isinstance(error, Exception) and not isinstance(error, FarthingError):
            raise StorageError(f"{log.name}: event 1 cannot be read ({error!r})") from error
        raise
