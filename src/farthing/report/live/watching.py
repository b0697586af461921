"""A study file that is followed: opened when it is there, read on when it grows, opened anew when it was replaced.

Reading is the business of one thread per file. Others see a `Look`: the study as it was at one moment, which stays as
it is while a figure is computed from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread

from farthing.errors import FarthingError, StorageError
from farthing.policies.named import stored_policy
from farthing.record.paths import MAGIC, require_ordinary, resolved
from farthing.record.reader import StudyFile, read_study
from farthing.record.recovery import FileState, log_of
from farthing.record.schema import APPLICATION_ID
from farthing.record.sharing import in_use_here
from farthing.record.storage import TICK
from farthing.session import Session
from farthing.text.escaping import on_one_line
from farthing.text.plain import cut_text, text_of

POLL = 0.5  # seconds between two looks at a file
LONGEST_TROUBLE = 400  # characters


@dataclass(frozen=True)
class Look:
    """A study at one moment."""

    session: Session
    opened: int  # how often the file had been opened: event 5 of another file is another event
    events: int
    live: bool  # whether somebody writes to it
    heartbeat: str | None = None
    left_out: tuple[str, ...] = ()  # parts of the study that the file cannot hold

    @property
    def stage(self) -> tuple[int, int, bool]:
        """What figures depend on; what running trials have spent so far changes more often."""
        return self.opened, self.events, self.live

    @property
    def moment(self) -> object:
        """What words and the table depend on: all that there is to see."""
        return *self.stage, self.heartbeat


@dataclass(frozen=True)
class Condition:
    """What there is to see of a file now."""

    look: Look | None = None  # the last one that there was
    trouble: str = ""  # why the file cannot be read now
    reading: bool = True  # whether it is being opened

    @property
    def message(self) -> dict[str, object]:
        """For open pages."""
        look = self.look
        return {
            "events": look.events if look else 0, "live": bool(look and look.live and not self.trouble),
            "reading": self.reading, "trouble": self.trouble,
        }  # fmt: skip


class WatchedFile:
    """A file and its condition. The thread that follows it calls `looked()` after each look."""

    def __init__(self, path: str, name: str, looked: Callable[[], None]) -> None:
        self.path, self.name, self._looked = path, name, looked
        self.condition = Condition()
        self._file: StudyFile | None = None
        self._opened = 0
        self._failed: FileState | None = None  # of the file that could not be read
        self._wait_until = 0.0  # before the next try
        self._ended = Event()

    def follow(self, first: Callable[[], None]) -> None:
        """Begin, in a thread of its own; with this, before the file is read."""
        Thread(target=self._follow, args=(first,), name="farthing-watch", daemon=True).start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _follow(self, first: Callable[[], None]) -> None:
        first()
        while not self._ended.is_set():
            self.look()
            self._looked()
            self._ended.wait(POLL)

    def look(self) -> None:
        """Read what is new."""
        before, began = self.condition, time.monotonic()
        try:
            self.condition = self._after(before)
        except Exception as error:  # whatever a file of unknown origin holds
            self._file = None
            self._wait_until = time.monotonic() + 2.0 * (time.monotonic() - began)
            self.condition = Condition(before.look, words_of(error, self.path, self.name), reading=False)

    def _after(self, before: Condition) -> Condition:
        if self._file is None:
            now = FileState.of(Path(os.path.realpath(self.path)))
            if time.monotonic() < self._wait_until or (now == self._failed and _is_settled(now)):
                return before
            self._failed = now
            self.condition = replace(before, reading=True)
            file = read_study(self.path)
            self._file, self._failed, self._opened = file, None, self._opened + 1
        else:
            self._file.refresh()
        return Condition(self._seen(self._file, before.look), reading=False)

    def _seen(self, file: StudyFile, before: Look | None) -> Look:
        """The same object if nothing has changed."""
        record = file.record
        key = self._opened, record.log.count, file.runner is not None, record.log.heartbeat
        if before is not None and key == before.moment:
            return before
        held = copy(record)  # its state does not change, and that of the file's own record does
        return Look(Session(held, stored_policy(record.settings.policy)), *key, file.left_out)


def _is_settled(state: FileState) -> bool:
    """Whether what was written last shows in the time stamps."""
    return abs(time.time_ns() - max(state.file.modified, state.log.modified)) > TICK


def words_of(error: Exception, path: str, name: str) -> str:
    """What is wrong, without saying where the file lies on this machine.

    >>> words_of(FarthingError("/home/ann/s.db: is damaged; put back a copy"), "/home/ann/s.db", "s.db")
    's.db: is damaged; put back a copy'
    >>> words_of(PermissionError(13, "Permission denied", "/home/ann/s.db"), "/home/ann/s.db", "s.db")
    's.db: cannot be read (Permission denied)'
    """
    if isinstance(error, FarthingError):
        text = text_of(error)
    else:
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        text = f"{name}: cannot be read ({why})"
    real, given = os.path.realpath(path), os.path.abspath(path)
    for hidden in (real, given, path):
        text = text.replace(hidden, name) if os.sep in hidden else text
    for hidden in (os.path.dirname(real), os.path.dirname(given)):
        text = text if hidden == os.sep else text.replace(hidden, "its folder")
    return on_one_line(cut_text(text, LONGEST_TROUBLE))


def require_study(path: str) -> None:
    """A StorageError if the file is there and is plainly something else; reading it will say whether it is whole."""
    real = resolved(path)
    require_ordinary(real, path)
    if in_use_here(real) or not real.exists():  # it may be made later
        return
    with real.open("rb") as file:
        header = file.read(100)
    if header and header[:16] != MAGIC:
        raise StorageError(f"{path}: is no study file (it is no SQLite file)")
    if header and not log_of(real).exists() and header[68:72] != APPLICATION_ID.to_bytes(4):  # else it may be in that
        raise StorageError(f"{path}: is an SQLite file, but not a Farthing study")
