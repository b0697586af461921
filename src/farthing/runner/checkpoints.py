"""A folder of checkpoints, and whether something was written to it since one looked last.

File systems note when a file was written in ticks of some milliseconds, old ones in seconds. A file that is younger
than the coarsest tick may be written again without its time or size telling: of such a file the content is compared.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COARSEST_TICK = 2_000_000_000  # nanoseconds
COMPARED = 1 << 20  # bytes of a young file


class _Seen(NamedTuple):
    """What a file was like; the checksum only while it was young."""

    written: int  # nanoseconds
    size: int
    inode: int
    checksum: int | None


class Checkpoints:
    """What is in a folder, which may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, _Seen] = {}
        self.written()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return next(_files(self.folder), None) is not None

    def written(self) -> bool:
        """Whether a file is there that was not, or not like this, when this was called last."""
        before, self._files, news = self._files, {}, False
        for path in _files(self.folder):
            try:
                seen, altered = _look(path, before.get(path))
            except OSError:  # removed just now
                continue
            self._files[path] = seen
            news = news or altered
        return news


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def _look(path: str, before: _Seen | None) -> tuple[_Seen, bool]:
    """A file as it is, and whether it was altered."""
    state = os.stat(path)
    stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
    young = time.time_ns() - state.st_mtime_ns < COARSEST_TICK
    same = before is not None and before[:3] == stamp
    checksum = None
    if young or (same and before is not None and before.checksum is not None):
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(COMPARED))
    altered = not same or (before is not None and before.checksum not in (None, checksum))
    return _Seen(*stamp, checksum if young else None), altered
