"""One runner per study file.

The lock is a record lock on `<file>.lock`: the kernel gives it back when the process ends, however it ends, and forked
workers do not inherit it. Such a lock does not keep two threads of one process apart, so the locks of this process are
also in a table here.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from farthing.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TAKEN = {errno.EACCES, errno.EAGAIN}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}

_held: dict[tuple[int, str], int] = {}  # (process, lock file) -> thread; a fork has the entries and not the locks
_guard = threading.Lock()
_warned: set[str] = set()


@contextmanager
def exclusive(study_file: str | PathLike[str] | None) -> Iterator[None]:
    """Hold a study file for writing, or raise a StorageError that names who holds it. None, a study in memory, is free.

    >>> with exclusive(None):
    ...     pass
    """
    if study_file is None:
        yield
        return
    path = Path(f"{os.path.realpath(study_file)}.lock")
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


def _locked(path: Path, study_file: str | PathLike[str]) -> int | None:
    """The descriptor that holds the lock, None where there are no locks to be had."""
    if fcntl is None:
        _warn_once(path, study_file, "this system has no record locks")
        return None
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageError(f"{study_file}: cannot be held for a run: {path.name}: {error.strerror}") from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
                return descriptor
        except OSError as error:
            holder = os.pread(descriptor, 300, 0).decode(errors="replace")
            os.close(descriptor)
            if error.errno in TAKEN:
                raise _refusal(study_file, holder or "another process") from error
            if error.errno in NO_LOCKS:
                _warn_once(path, study_file, f"its file system has no locks ({error.strerror})")
                return None
            raise StorageError(f"{study_file}: cannot be held for a run ({error})") from error
        os.close(descriptor)  # its last holder has just removed it: there is a new one, or none


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the file that we hold is the one that others would find."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
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
        warnings.warn(text, RuntimeWarning, stacklevel=5)
