"""Checksums of what a study file holds.

That of an event is over its number, time, kind and body, and over the checksum of the event before: an event that was
changed, moved, left out or put in does not fit the chain. They protect against damage, not against forgery: whoever
writes a file can write its checksums too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

_packed = struct.Struct("<qqdq").pack
_unpacked: Callable[[bytes], tuple[int]] = struct.Struct(">q").unpack

BEGINNING = 0  # in the place of the checksum before the first event

Row = tuple[int, float, str, str]  # number, time, kind, body
ChainedRow = tuple[int, float, str, str, int]  # with its checksum


def checksum(number: int, time: float, kind: str, body: str, before: int = BEGINNING) -> int:
    """64 bits, as the signed number that SQLite stores."""
    text = kind.encode("utf-8", "surrogatepass")
    summed = blake2b(_packed(before, number, time, len(text)), digest_size=8)
    summed.update(text)
    summed.update(body.encode("utf-8", "surrogatepass"))
    (found,) = _unpacked(summed.digest())
    return found


def chained(rows: Iterable[Row], before: int = BEGINNING) -> Iterator[ChainedRow]:
    """Rows with their checksums, each over the one before."""
    for number, time, kind, body in rows:
        before = checksum(number, time, kind, body, before)
        yield number, time, kind, body, before
