"""One runner per study file.

The lock is a record lock on `<file>.lock`: the kernel gives it back when the process ends, however it ends, and forked
workers do not inherit it. Such a lock does not keep two threads of one process apart, so the locks of this process are
also in a table here.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from farthing.errors import StorageError
from farthing.plain import warn
from farthing.record.paths import OWNER_ONLY

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TAKEN = {errno.EACCES, errno.EAGAIN}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}

_held: dict[tuple[int, str], int] = {}  # (process, lock file) -> thread; a fork has the entries and not the locks
_guard = threading.Lock()
_warned: set[str] = set()

LONGEST_NOTE = 300  # bytes of a lock file that are read: a process and a host
OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def exclusive(study_file: str | PathLike[str] | None) -> Iterator[None]:
    """Hold a study file for writing, or raise a StorageError that names who holds it. None, a study in memory, is free.

    >>> with exclusive(None):
    ...     pass
    """
    if study_file is None:
        yield
        return
    path = lock_of(study_file)
    mine = (os.getpid(), str(path))
    with _guard:
        if mine in _held:
            raise _refusal(study_file, f"process {mine[0]}, this one")
        descriptor = _locked(path, study_file)
        _held[mine] = threading.get_ident()
    try:
        yield
    finally:
        with _guard:
            del _held[mine]
            if descriptor is not None:
                path.unlink(missing_ok=True)  # before the lock goes: nobody else's file can be meant
                os.close(descriptor)


def lock_of(study_file: str | PathLike[str]) -> Path:
    return Path(f"{os.path.realpath(study_file)}.lock")


def held_here(study_file: str | PathLike[str]) -> bool:
    """Whether this process holds a study file for writing."""
    with _guard:
        return (os.getpid(), str(lock_of(study_file))) in _held


def runner_of(study_file: str | PathLike[str]) -> str | None:
    """Who runs a study now, by the note in its lock file; of a process on another machine it cannot be said whether it
    still does. A lock that this process holds is not opened: it would be lost when that is closed again."""
    if held_here(study_file):
        return _own_note()
    try:
        descriptor = os.open(lock_of(study_file), os.O_RDONLY | OPEN)
    except OSError:
        return None
    try:
        ordinary = stat.S_ISREG(os.fstat(descriptor).st_mode)
        holder = os.read(descriptor, LONGEST_NOTE).decode(errors="replace") if ordinary else ""
    finally:
        os.close(descriptor)
    found = re.fullmatch(r"process (\d{1,19}) on (.*)", holder, re.DOTALL)
    if found is None:
        return None
    return holder if found[2] != socket.gethostname() or _is_there(int(found[1])) else None


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _own_note() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _locked(path: Path, study_file: str | PathLike[str]) -> int | None:
    """The descriptor that holds the lock, None where there are no locks to be had."""
    if fcntl is None:
        _warn_once(path, study_file, "this system has no record locks")
        return None
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | OPEN, OWNER_ONLY)
        except OSError as error:
            why = "it is a symbolic link" if path.is_symlink() else error.strerror
            raise StorageError(f"{study_file}: cannot be held for a run: {path.name}: {why}") from error
        try:
            _require_our_own(descriptor, path, study_file)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _own_note().encode(), 0)
                return descriptor
        except OSError as error:
            holder = os.pread(descriptor, LONGEST_NOTE, 0).decode(errors="replace")
            os.close(descriptor)
            if error.errno in TAKEN:
                raise _refusal(study_file, holder or "another process") from error
            if error.errno in NO_LOCKS:
                _warn_once(path, study_file, f"its file system has no locks ({error.strerror})")
                return None
            raise StorageError(f"{study_file}: cannot be held for a run ({error})") from error
        os.close(descriptor)  # its last holder has just removed it: there is a new one, or none


def _require_our_own(descriptor: int, path: Path, study_file: str | PathLike[str]) -> None:
    """What is about to be overwritten is a lock file, and no other file by a second name."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise StorageError(f"{study_file}: cannot be held for a run: {path.name} is no lock file, and is left")


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the file that we hold is the one that others would find."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _refusal(study_file: str | PathLike[str], holder: str) -> StorageError:
    return StorageError(
        f"{study_file}: is being run by {holder}; only one may run a study at a time (any number may read)"
    )


def _warn_once(path: Path, study_file: str | PathLike[str], why: str) -> None:
    if str(path) not in _warned:
        _warned.add(str(path))
        text = f"{study_file}: {why}; nothing keeps a second process from running this study"
        warn(text)
