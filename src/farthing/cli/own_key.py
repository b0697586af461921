"""The key of this user, with which `farthing run` marks the study files it writes.

It lies in the user's config folder, `$XDG_CONFIG_HOME/farthing/key` or `~/.config/farthing/key`: 32 random bytes that
only this user may read. A key that others could read, or could have put there, proves nothing and is not used.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farthing.errors import FarthingError

BYTES = 32
WRITING_SECONDS = 0.5  # in which another process writes the key that it has just made
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
OTHERS_READ, OTHERS_WRITE = 0o077, 0o022


class KeyUnusable(FarthingError):
    """There is no key that could be used, and why."""


def key_file() -> Path:
    """Where the key is. A relative XDG_CONFIG_HOME is ignored, as its standard says: it could lead into a stranger's
    folder."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        config = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    except RuntimeError as error:
        raise KeyUnusable("there is no home folder") from error
    return config / "farthing" / "key"


def own_key(*, make: bool = False) -> bytes | None:
    """The key; None if there is none yet, unless it may be made."""
    path = key_file()
    try:
        if make:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(path.parent, os.lstat(path.parent), "folder", OTHERS_WRITE)
        with suppress(FileExistsError):
            if make:
                _write_new(path)
        return _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise KeyUnusable(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _write_new(path: Path) -> None:
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        os.write(descriptor, secrets.token_bytes(BYTES))


def _read(path: Path) -> bytes:
    _check(path, os.lstat(path), "file", OTHERS_READ)  # before opening: a FIFO would wait for a writer
    deadline = time.monotonic() + WRITING_SECONDS
    while True:
        with _opened(path, os.O_RDONLY) as descriptor:
            _check(path, os.fstat(descriptor), "file", OTHERS_READ)
            key = os.read(descriptor, BYTES + 1)
        if len(key) == BYTES:
            return key
        if time.monotonic() > deadline:
            raise KeyUnusable(f"{path}: expected {BYTES} bytes, got {len(key)}; remove it, and a new one is made")
        time.sleep(0.01)


@contextmanager
def _opened(path: Path, how: int) -> Iterator[int]:
    descriptor = os.open(path, how | NO_FOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result, kind: str, forbidden: int) -> None:
    """Refuse a file or folder that may be another's. Windows has neither these owners nor these modes: there the
    folders of a user are private."""
    if stat.S_ISLNK(found.st_mode):
        raise KeyUnusable(f"{path}: is a symbolic link, which is not followed")
    if not (stat.S_ISDIR if kind == "folder" else stat.S_ISREG)(found.st_mode):
        raise KeyUnusable(f"{path}: is not a {kind}")
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid():
        raise KeyUnusable(f"{path}: belongs to another user")
    if found.st_mode & forbidden:
        way = "others may read it; remove it, and a new one is made" if kind == "file" else "others may write to it"
        raise KeyUnusable(f"{path}: {way} (mode {found.st_mode & 0o777:o})")
