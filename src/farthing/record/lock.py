"""One writer per study file.

The lock is a record lock on `<file>.lock`: the kernel gives it back when the process ends, however it ends, and forked
workers do not inherit it. Such a lock does not keep two objects of one process apart, so the locks of this process are
also in a table here. A run holds it from its beginning to its end, a loop of the user's from its first `ask` on, until
its study is closed. Within a process it passes to another study of the same file, unless it is in use right now: in a
notebook the study of a cell that is run again is not closed.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from farthing.errors import StorageError
from farthing.record.paths import OWNER_ONLY, require_writable
from farthing.text.plain import warn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TAKEN = {errno.EACCES, errno.EAGAIN}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


@dataclass(eq=False)
class _Held:
    """A lock of this process."""

    descriptor: int | None  # None where there are no locks to be had
    owner: object
    uses: int = 0  # under way: runs, and single events
    kept: bool = False  # between them
    written: bool = False  # something, since it was taken


_held: dict[tuple[int, str], _Held] = {}  # (process, lock file); a fork has the entries and not the locks
_guard = threading.Lock()
_gone: deque[tuple[Path, object]] = deque()  # owners that will write no more, whose locks are not given back yet
_warned: set[str] = set()

LONGEST_NOTE = 300  # bytes of a lock file that are read: a process and a host
OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


FREE: AbstractContextManager[object] = nullcontext()  # of a study in memory


class WriteLock:
    """The right of one study object to write to its file. None, a study in memory, is free.

    >>> with WriteLock(None).held():
    ...     pass
    """

    def __init__(self, study_file: str | PathLike[str] | None) -> None:
        self._file, self._owner = study_file, object()
        self._path = None if study_file is None else lock_of(study_file)
        if self._path is not None:
            self._closing = weakref.finalize(
                self, _owner_is_gone, self._path, self._owner
            )  # also when the process ends

    def held(self, *, keep: bool = False) -> AbstractContextManager[object]:
        """Hold the file for writing, or raise a StorageError that names who holds it; with `keep` until `release`."""
        return FREE if self._path is None else _Use(self, self._path, keep)

    def take(self, path: Path) -> None:
        """Begin to use it."""
        assert self._file is not None
        with _guard:
            _give_back()
            held = _held.get(_key(path))
            if held is None:
                held = _held[_key(path)] = _Held(_locked(path, self._file), self._owner)
            elif held.owner is not self._owner:
                if held.uses:
                    raise refusal(self._file, f"process {os.getpid()}, this one")
                held.owner, held.kept, held.written = self._owner, False, False
            held.uses += 1

    def leave(self, path: Path, keep: bool) -> None:
        """One use of it has ended."""
        with _guard:
            held = _held.get(_key(path))  # None in a fork
            if held is not None and held.owner is self._owner:
                held.uses, held.kept = held.uses - 1, held.kept or keep
                _unlock_if_free(path, held)

    def wrote(self) -> None:
        """Say that something was written while it was held."""
        if self._path is not None:
            _held[_key(self._path)].written = True

    @property
    def has_written(self) -> bool:
        """Whether something was written since it was taken: then nobody else may have written since."""
        held = None if self._path is None else _held.get(_key(self._path))
        return held is not None and held.owner is self._owner and held.written

    def release(self) -> None:
        """Let others write."""
        if self._path is not None:
            self._closing.detach()
            with _guard:
                _gone.append((self._path, self._owner))
                _give_back()


class _Use:
    """A lock while it is in use: there is one for every event, so that it has to be quick."""

    __slots__ = ("_keep", "_lock", "_path")

    def __init__(self, lock: WriteLock, path: Path, keep: bool) -> None:
        self._lock, self._path, self._keep = lock, path, keep

    def __enter__(self) -> None:
        self._lock.take(self._path)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._lock.leave(self._path, self._keep and kind is None)


def _key(path: Path) -> tuple[int, str]:
    return os.getpid(), str(path)


def _owner_is_gone(path: Path, owner: object) -> None:
    """A finaliser: it may run in the middle of anything, and so waits for nothing."""
    _gone.append((path, owner))
    if _guard.acquire(blocking=False):
        try:
            _give_back()
        finally:
            _guard.release()


def _give_back() -> None:
    while _gone:
        path, owner = _gone.popleft()
        held = _held.get(_key(path))
        if held is not None and held.owner is owner:
            held.kept = False
            _unlock_if_free(path, held)


def _unlock_if_free(path: Path, held: _Held) -> None:
    if held.uses or held.kept:
        return
    del _held[_key(path)]
    if held.descriptor is not None:
        path.unlink(missing_ok=True)  # before the lock goes: nobody else's file can be meant
        os.close(held.descriptor)


@contextmanager
def exclusive(study_file: str | PathLike[str] | None) -> Iterator[None]:
    """Hold a study file for writing for a while."""
    lock = WriteLock(study_file)
    with lock.held():
        yield


def lock_of(study_file: str | PathLike[str]) -> Path:
    return Path(f"{os.path.realpath(study_file)}.lock")


def held_here(study_file: str | PathLike[str]) -> bool:
    """Whether this process holds a study file for writing."""
    with _guard:
        return _key(lock_of(study_file)) in _held


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
            require_writable(Path(os.path.realpath(study_file)), str(study_file))
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
                raise refusal(study_file, holder or "another process") from error
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


def refusal(study_file: str | PathLike[str], holder: str) -> StorageError:
    return StorageError(
        f"{study_file}: is being run by {holder}; only one may run a study at a time (any number may read)"
    )


def _warn_once(path: Path, study_file: str | PathLike[str], why: str) -> None:
    if str(path) not in _warned:
        _warned.add(str(path))
        text = f"{study_file}: {why}; nothing keeps a second process from running this study"
        warn(text)
