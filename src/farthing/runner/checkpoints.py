"""A folder of checkpoints, and whether something was written to it since the last check.

File systems record the time of a write in ticks of some milliseconds, old ones in seconds. A file younger than one such
tick can be written again without a change of its time or size. So the contents of young files are compared.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COARSEST_TICK = 2_000_000_000  # nanoseconds: FAT's two seconds
COMPARED_BYTES = 1 << 20  # of a young file: reading all of a large model after every step would slow down training


class _Snapshot(NamedTuple):
    """A file at one moment."""

    modified: int  # nanoseconds
    size: int
    inode: int
    checksum: int | None  # only of a young file


class Checkpoints:
    """The files in a folder, which may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, _Snapshot] = {}
        self.written()

    @staticmethod
    def are_in(folder: Path) -> bool:
        """Whether there is a file in a folder."""
        return next(_files(folder), None) is not None

    def __bool__(self) -> bool:
        """Whether there is a file."""
        return self.are_in(self.folder)

    def written(self) -> bool:
        """Whether a file is new or changed since the last call."""
        before, self._files, written = self._files, {}, False
        for path in _files(self.folder):
            try:
                snapshot, changed = _compare(path, before.get(path))
            except OSError:  # it has just been removed
                continue
            self._files[path] = snapshot
            written = written or changed
        return written


def _files(folder: Path) -> Iterator[str]:
    if folder.is_symlink():  # not made by us: what it leads to is somebody else's
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(parent, name)


def _compare(path: str, before: _Snapshot | None) -> tuple[_Snapshot, bool]:
    """A file as it is now, and whether it changed."""
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):  # a named pipe would never end
        raise OSError(f"{path} is no ordinary file")
    stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
    young = time.time_ns() - state.st_mtime_ns < COARSEST_TICK
    same = before is not None and before[:3] == stamp
    checksum = None
    if young or (same and before is not None and before.checksum is not None):
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(COMPARED_BYTES))
    changed = not same or (before is not None and before.checksum not in (None, checksum))
    return _Snapshot(*stamp, checksum if young else None), changed
