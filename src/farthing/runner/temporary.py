"""Temporary folders of a run, which the next run removes if this one is killed.

Each holds a file, `owner`, that its process keeps locked. The kernel gives the lock back when the process ends, however
it ends, and it is seen from other containers too, where process numbers mean nothing. So a folder whose lock is free
is nobody's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing tells whose a folder is, and none is removed
    fcntl = None  # type: ignore[assignment]

PREFIX = "farthing-run-"
OWNER = "owner"
UNFINISHED_SECONDS = 3600.0  # after which a folder without an owner is one whose process was killed as it made it


class TemporaryFolder:
    """A new folder that only this user may enter. It is removed at the end, or by the next run after that.

    >>> with TemporaryFolder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.is_dir()
    False
    """

    def __init__(self) -> None:
        remove_orphans()
        self._pid = os.getpid()
        self.path, self._lock = _locked_folder()

    def remove(self) -> None:
        """Remove it with all that is in it; in forks of its process nothing happens."""
        if self._pid != os.getpid():
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *exception: object) -> None:
        self.remove()


_of_process: dict[int, TemporaryFolder] = {}  # by process: a fork has its own


def subfolder_of_process() -> Path:
    """A new folder in the one that this process has for all its studies in memory: each open file of a process counts
    towards a limit, and a program may hold thousands of studies."""
    pid = os.getpid()
    if pid not in _of_process:
        _of_process[pid] = TemporaryFolder()
        atexit.register(_of_process[pid].remove)
    return Path(tempfile.mkdtemp(dir=_of_process[pid].path))


def _locked_folder() -> tuple[Path, int | None]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        owner = os.open(path / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(owner, f"process {os.getpid()}, since {time.time():.0f}\n".encode())  # for whoever looks
        if _lock(owner) is not False and (path / OWNER).exists():
            return path, owner
        os.close(owner)  # another run looked at it before it was locked, and took it for an orphan


def _lock(descriptor: int) -> bool | None:
    """Whether the lock is ours now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def remove_orphans() -> None:
    """Remove the temporary folders of this user's runs that were killed; never anybody else's, and no link is
    followed."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_if_orphan(entry)


def _remove_if_orphan(entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        owner = os.open(os.path.join(entry.path, OWNER), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        if time.time() - found.st_mtime > UNFINISHED_SECONDS:
            os.rmdir(entry.path)  # only if it is empty
        return
    try:
        if stat.S_ISREG(os.fstat(owner).st_mode) and _lock(owner):
            shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(owner)
