"""Where a study file is, and what may lie there: an ordinary file with one name, seen once and held to.

A path is resolved once, when a study is opened: through links, to an absolute path. From then on the file, its log, its
lock and its checkpoints are those next to the real file, wherever the process goes and whatever becomes of the links.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from farthing.checks import refuse
from farthing.errors import StorageError

OWNER_ONLY = 0o600  # a study holds what its user runs and finds: nobody else's to read
COMPANIONS = ("-wal", "-shm", "-journal")  # of SQLite, next to the file

MAGIC = b"SQLite format 3\0"  # the first bytes of a study's file

KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device", stat.S_IFLNK: "a symbolic link",
}  # fmt: skip


def resolved(storage: Any) -> Path:
    """The real, absolute path of a study file, which need not exist yet; its folder must.

    >>> resolved(":memory:")
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: storage: expected the path of a file (None keeps a study in memory), got ':memory:'
    """
    path = os.fspath(storage) if isinstance(storage, str | PathLike) else storage
    if not isinstance(path, str) or path in ("", ":memory:"):
        refuse("storage", "the path of a file (None keeps a study in memory)", storage)
    if path.lower().startswith("file:"):
        refuse("storage", f"a path and not a URI (a file of that name is './{path}')", storage)
    try:
        real = Path(os.path.realpath(path))
        for folder in (Path(path).parent, real.parent):
            if not folder.is_dir():
                raise StorageError(f"{path}: the folder {folder} does not exist")
    except (OSError, ValueError) as error:  # an embedded NUL, a name that is too long
        raise StorageError(f"{path!r}: is no path of a file ({error})") from error
    return real


def beside(path: Path, suffix: str) -> Path:
    """The file next to a study file whose name is longer by a suffix."""
    return path.with_name(path.name + suffix)


@dataclass(frozen=True)
class FileStamp:
    """What tells one state of a file from another, without opening it; all are 0 if there is none."""

    device: int = 0
    inode: int = 0
    size: int = 0
    modified: int = 0  # nanoseconds
    links: int = 0
    kind: int = 0

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """That of the file of that very name: a link is not followed."""
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return cls()
        kind = stat.S_IFMT(found.st_mode)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink, kind)

    @property
    def exists(self) -> bool:
        return self.kind != 0

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode


def require_ordinary(path: Path, name: str) -> None:
    """A StorageError unless the file and those next to it are ordinary files, or not there."""
    for file in (path, *(beside(path, suffix) for suffix in COMPANIONS)):
        found = FileStamp.of(file)
        if found.exists and found.kind != stat.S_IFREG:
            which = "is" if file == path else f"{file.name} next to it is"
            raise StorageError(f"{name}: {which} {KINDS.get(found.kind, 'no ordinary file')}, not an ordinary file")


def require_writable(path: Path, name: str) -> None:
    """A StorageError unless the file may be written, or made: by right, and because it has no second name."""
    found = FileStamp.of(path)
    if found.exists and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):  # SQLite makes others too
        raise StorageError(
            f"{name}: is open for reading only, as the file or its folder may not be written; "
            "to go on with this study copy the file to where you can write"
        )
    for file in (path, *(beside(path, suffix) for suffix in COMPANIONS)):
        if FileStamp.of(file).links > 1:
            raise StorageError(
                f"{name}: {file.name} has several names (hard links), and under another name its write-ahead log "
                "would be missed; to go on with this study copy the file"
            )


def make_private(path: Path, name: str) -> None:
    """Make the file, for its owner only, unless it is there: SQLite would let the umask decide."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY))
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageError(f"{name}: cannot be made ({error.strerror})") from error
