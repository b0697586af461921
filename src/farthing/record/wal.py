"""SQLite's write-ahead log (`<file>-wal`), and what its index (`<file>-shm`) knows of it.

The log is a header of 32 bytes and frames of 24 bytes and a page. A frame counts if its salts are the header's and its
checksum, which runs over everything before it, is right; the first that does not ends the log. SQLite sees what counts
up to the last frame that ends a transaction. So a log that was cut anywhere loses no more than its end. SQLite is
silent about that, and about frames that come after a damaged one: we are not.

The index says how many frames there were when its last user ended. It is not on disk for sure, but never ahead of the
log: what it counts has been there.

Format: https://www.sqlite.org/walformat.html and https://www.sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

import numpy as np

HEADER, FRAME_HEADER = 32, 24
MAGIC = 0x377F0682  # its last bit says whether checksums are of big-endian words
PAGE_SIZES = {1 << power for power in range(9, 17)}  # bytes
FRAMES_AT_ONCE = 256  # read together: some megabytes at most, however large the log
INDEX_HEADER, INDEX_VERSION = 48, 3007000  # bytes of one of its two copies, and the only version there is

WORD = 2**32  # what checksums are modulo

Sums = tuple[int, int]


@dataclass(frozen=True)
class LogState:
    """What a write-ahead log holds."""

    readable: bool = True  # whether its header is
    salts: bytes = b""
    frame: int = 0  # bytes of a frame
    whole: int = 0  # frames that count
    committed: int = 0  # frames up to the end of the last transaction
    beyond: int = 0  # frames of the same log after one that does not count
    torn: bool = False  # it ends inside a frame or inside a transaction
    pages: frozenset[int] = frozenset()  # that are in the frames of whole transactions

    @property
    def length(self) -> int:
        """Bytes that SQLite will use."""
        return HEADER + self.committed * self.frame if self.committed else 0


def log_state(log: BinaryIO) -> LogState:
    """What SQLite will make of a write-ahead log, and what it will leave out. A part of it is in memory at a time."""
    header = log.read(HEADER)
    if len(header) < HEADER:
        return LogState()  # nothing was written yet
    magic, _, page, *_ = struct.unpack(">8I", header)
    order = ">" if magic & 1 else "<"
    sums = _sums(np.frombuffer(header[: HEADER - 8], f"{order}u4")[None], (0, 0))[0]
    if magic & ~1 != MAGIC or page not in PAGE_SIZES or sums != struct.unpack(">2I", header[HEADER - 8 :]):
        return LogState(readable=False)
    return _frames(log, header[16:24], FRAME_HEADER + page, order, sums)


def _frames(log: BinaryIO, salts: bytes, frame: int, order: str, sums: Sums) -> LogState:
    whole, committed, beyond, torn, ended = 0, 0, 0, False, False
    pages, waiting = set[int](), list[int]()
    while content := log.read(FRAMES_AT_ONCE * frame):
        count = len(content) // frame
        rows = np.frombuffer(content, np.uint8, count * frame).reshape(count, frame)
        right = [] if ended else _right(rows, salts, order, sums)
        for i in range(count):
            start = i * frame
            if i < len(right):
                sums, whole = right[i], whole + 1
                number, size = struct.unpack(">2I", content[start : start + 8])
                waiting.append(number)
                if size:  # the last frame of a transaction
                    pages.update(waiting)
                    committed, waiting = whole, []
            elif _is_ours(content[start : start + FRAME_HEADER], salts):
                beyond, torn, ended = beyond + ended, torn or not ended, True
            else:
                ended = True
        rest = content[count * frame :]
        torn = torn or (len(rest) > 0 and (len(rest) < FRAME_HEADER or _is_ours(rest[:FRAME_HEADER], salts)))
    return LogState(True, salts, frame, whole, committed, beyond, torn or bool(waiting), frozenset(pages))


def _is_ours(header: bytes, salts: bytes) -> bool:
    """Whether a frame is of this round of the log. Those of an earlier one differ in both salts."""
    return header[8:12] == salts[:4] or header[12:16] == salts[4:]


def _right(rows: np.ndarray, salts: bytes, order: str, before: Sums) -> list[Sums]:
    """The running checksums of the frames that count, from the first one on."""
    words = np.ascontiguousarray(np.delete(rows, np.s_[8:FRAME_HEADER], axis=1)).view(f"{order}u4")
    claimed = np.ascontiguousarray(rows[:, 16:FRAME_HEADER]).view(">u4")
    found: list[Sums] = []
    for row, sums, said in zip(rows, _sums(words, before), claimed.tolist(), strict=True):
        if row[8:16].tobytes() != salts or sums != tuple(said):
            break
        found.append(sums)
    return found


def _sums(words: np.ndarray, before: Sums) -> list[Sums]:
    """SQLite's checksum after each row of words (n, 2m), begun at `before`.

    One step takes two words x, y: a += x + b, then b += y + a, modulo 2^32. That is linear, so the m steps of a row are
    a product with fixed coefficients and a 2 x 2 matrix for what came before it.
    """
    steps = words.shape[1] // 2
    of_first, of_second, through = _coefficients(steps)
    first, second = words[:, ::2].astype(np.uint32), words[:, 1::2].astype(np.uint32)
    own = (first @ of_first + second @ of_second).tolist()
    found, (a, b) = [], before
    (p, q), (r, s) = through
    for x, y in own:
        a, b = (p * a + q * b + x) % WORD, (r * a + s * b + y) % WORD
        found.append((a, b))
    return found


@lru_cache
def _coefficients(steps: int) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """What the words of each step (m, 2) add to a and b in the end, and what a and b before the first step become."""
    of_first, of_second = np.empty((steps, 2), np.uint32), np.empty((steps, 2), np.uint32)
    (p, q), (r, s) = (1, 0), (0, 1)  # the steps after this one: a -> a + b, b -> a + 2b
    for i in reversed(range(steps)):
        of_first[i], of_second[i] = ((p + q) % WORD, (r + s) % WORD), (q, s)
        (p, q), (r, s) = ((p + q) % WORD, (p + 2 * q) % WORD), ((r + s) % WORD, (r + 2 * s) % WORD)
    return of_first, of_second, [[p, q], [r, s]]


def frames_in_index(index: bytes, salts: bytes) -> int | None:
    """How many frames the index of a log with these salts counted; None if it is damaged, or of another round."""
    first, second = index[:INDEX_HEADER], index[INDEX_HEADER : 2 * INDEX_HEADER]
    if len(second) < INDEX_HEADER or first != second:
        return None
    version, *_ = struct.unpack("=I", first[:4])
    words = np.frombuffer(first[: INDEX_HEADER - 8], "=u4")[None]
    if version != INDEX_VERSION or _sums(words, (0, 0))[0] != struct.unpack("=2I", first[INDEX_HEADER - 8 :]):
        return None
    return int.from_bytes(first[16:20], sys.byteorder) if first[32:40] == salts else None
