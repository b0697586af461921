"""Who else has a study file open.

Locks of a process on a file end when it closes any descriptor of that file. So while this process has a study file open
through SQLite, nothing here may open that file, or the index of its log, in another way: `in_use_here` knows.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farthing.record.paths import beside

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

USERS_BYTE = 128  # of the index: every connection to a file with a write-ahead log holds a shared lock on it
INDEX_BYTES = 96  # both copies of its header

_open_here: Counter[tuple[int, Path]] = Counter()  # (process, file) -> connections; a fork has none of them
_guard = threading.Lock()


def opened_here(path: Path) -> None:
    """Say that a connection to a file is about to be made."""
    with _guard:
        _open_here[os.getpid(), path] += 1


def closed_here(path: Path) -> None:
    """Say that it was closed."""
    with _guard:
        _open_here[os.getpid(), path] -= 1


def in_use_here(path: Path) -> bool:
    """Whether this process has a file open."""
    with _guard:
        return _open_here[os.getpid(), path] > 0


@contextmanager
def index_of(path: Path) -> Iterator[int | None]:
    """A descriptor of the index of a file's log, for a file that this process has not open; None if there is none."""
    try:
        descriptor = os.open(beside(path, "-shm"), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, AttributeError):  # not there, not ours to read; or Windows
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_used(path: Path) -> bool | None:
    """Whether some process has a file with a write-ahead log open; None where that cannot be known."""
    if in_use_here(path):
        return True
    if fcntl is None:
        return None
    with index_of(path) as index:
        if index is None:
            return False if not beside(path, "-shm").exists() else None
        return _is_locked(index, USERS_BYTE)


def index_header(path: Path) -> bytes:
    """The header of the index of a log that nobody uses; empty if there is none."""
    with index_of(path) as index:
        return b"" if index is None else os.read(index, INDEX_BYTES)


def _is_locked(descriptor: int, byte: int) -> bool | None:
    """Whether another process holds a lock on a byte, by asking what would be in the way of an exclusive one."""
    linux = sys.platform.startswith("linux")
    form = "hhxxxxqqixxxx" if linux else "qqihh"  # struct flock, whose type is first or last but one
    wanted = (fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0) if linux else (byte, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
    try:
        answer = struct.unpack(form, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(form, *wanted)))
    except (OSError, struct.error):
        return None
    return bool((answer[0] if linux else answer[3]) != fcntl.F_UNLCK)
