"""Ways to damage the bytes of a study file and of its write-ahead log. Each is a pure function of a generator.

The formats are SQLite's: a header of 100 bytes and pages; a log with a header of 32 bytes and frames of 24 bytes and a
page (https://www.sqlite.org/fileformat2.html).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

Files = dict[str, bytes]
Change = Callable[[bytes, random.Random], bytes]

FILE_HEADER, LOG_HEADER, FRAME_HEADER, PAGE_HEADER = 100, 32, 24, 12
DIGIT = re.compile(rb"[0-9]")
TEXT = re.compile(rb'[{"][\x20-\x7e]{20,}')  # JSON as it lies in a page


@dataclass(frozen=True)
class Damage:
    """A change of one of the files; None removes it."""

    name: str
    suffix: str
    change: Change | None

    def done(self, files: Files, rng: random.Random) -> Files:
        if self.suffix not in files:
            return files
        changed = dict(files)
        if self.change is None:
            del changed[self.suffix]
        else:
            changed[self.suffix] = self.change(files[self.suffix], rng)
        return changed


def _page_size(content: bytes) -> int:
    return int.from_bytes(content[16:18]) or 4096


def _log_page_size(content: bytes) -> int:
    return int.from_bytes(content[8:12]) or 4096


def _flipped_at(content: bytes, places: list[int], rng: random.Random) -> bytes:
    changed = bytearray(content)
    for place in places:
        changed[place] ^= rng.randrange(1, 256)
    return bytes(changed)


def _zeroed_at(content: bytes, start: int, length: int) -> bytes:
    end = min(start + length, len(content))
    return content[:start] + bytes(end - start) + content[end:]


# -- anywhere ----------------------------------------------------------------------------------------------------------


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))] if content else content


def emptied(content: bytes, rng: random.Random) -> bytes:
    return b""


def flipped(content: bytes, rng: random.Random) -> bytes:
    return _flipped_at(content, [rng.randrange(len(content))], rng) if content else content


def flipped_often(content: bytes, rng: random.Random) -> bytes:
    return _flipped_at(content, [rng.randrange(len(content)) for _ in range(8)], rng) if content else content


def zeroed(content: bytes, rng: random.Random) -> bytes:
    return _zeroed_at(content, rng.randrange(len(content)), rng.choice((16, 512, 4096))) if content else content


def scribbled(content: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(content) or 1), rng.choice((16, 512, 4096))
    end = min(start + length, len(content))
    return content[:start] + rng.randbytes(end - start) + content[end:]


def another_digit(content: bytes, rng: random.Random) -> bytes:
    """Inside the JSON of an event: it stays valid, and says something else."""
    texts = [found.span() for found in TEXT.finditer(content)]
    if not texts:
        return content
    start, end = rng.choice(texts)
    digits = [start + found.start() for found in DIGIT.finditer(content[start:end])]
    if not digits:
        return content
    place = rng.choice(digits)
    other = rng.choice([digit for digit in b"123456789" if digit != content[place]])
    return content[:place] + bytes([other]) + content[place + 1 :]


# -- aimed -------------------------------------------------------------------------------------------------------------


def header_flipped(content: bytes, rng: random.Random) -> bytes:
    return _flipped_at(content, [rng.randrange(min(FILE_HEADER, len(content)))], rng) if content else content


def page_header_flipped(content: bytes, rng: random.Random) -> bytes:
    page = rng.randrange(max(len(content) // _page_size(content), 1))
    start = page * _page_size(content) + (FILE_HEADER if page == 0 else 0)
    return _flipped_at(content, [min(start + rng.randrange(PAGE_HEADER), len(content) - 1)], rng)


def page_zeroed(content: bytes, rng: random.Random) -> bytes:
    size = _page_size(content)
    return _zeroed_at(content, rng.randrange(max(len(content) // size, 1)) * size, size)


def cut_at_page(content: bytes, rng: random.Random) -> bytes:
    size = _page_size(content)
    return content[: rng.randrange(max(len(content) // size, 1)) * size]


def pages_swapped(content: bytes, rng: random.Random) -> bytes:
    size = _page_size(content)
    pages = [content[start : start + size] for start in range(0, len(content), size)]
    if len(pages) < 3:
        return flipped(content, rng)
    a, b = rng.sample(range(1, len(pages)), 2)
    pages[a], pages[b] = pages[b], pages[a]
    return b"".join(pages)


def log_header_flipped(content: bytes, rng: random.Random) -> bytes:
    return _flipped_at(content, [rng.randrange(min(LOG_HEADER, len(content)))], rng) if content else content


def _frames(content: bytes) -> range:
    return range(LOG_HEADER, len(content), FRAME_HEADER + _log_page_size(content))


def frame_header_flipped(content: bytes, rng: random.Random) -> bytes:
    if not _frames(content):
        return content
    return _flipped_at(content, [rng.choice(_frames(content)) + rng.randrange(FRAME_HEADER)], rng)


def frame_zeroed(content: bytes, rng: random.Random) -> bytes:
    if not _frames(content):
        return content
    return _zeroed_at(content, rng.choice(_frames(content)), FRAME_HEADER + _log_page_size(content))


def cut_at_frame(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.choice(_frames(content))] if _frames(content) else content


CLOSED_DAMAGES = tuple(
    Damage(f"file {name}", "", change)
    for name, change in (
        ("cut off", cut), ("cut off at a page", cut_at_page), ("emptied", emptied), ("with a byte flipped", flipped),
        ("with 8 bytes flipped", flipped_often), ("zeroed in part", zeroed), ("with a page zeroed", page_zeroed),
        ("overwritten in part", scribbled), ("with another digit in an event", another_digit),
        ("with its header flipped", header_flipped), ("with a page header flipped", page_header_flipped),
        ("with two pages swapped", pages_swapped),
    )
)  # fmt: skip
LOG_DAMAGES = tuple(
    Damage(f"log {name}", "-wal", change)
    for name, change in (
        ("removed", None), ("emptied", emptied), ("cut off", cut), ("cut off at a frame", cut_at_frame),
        ("with a byte flipped", flipped), ("with 8 bytes flipped", flipped_often), ("zeroed in part", zeroed),
        ("with a frame zeroed", frame_zeroed), ("overwritten in part", scribbled),
        ("with another digit in an event", another_digit), ("with its header flipped", log_header_flipped),
        ("with a frame header flipped", frame_header_flipped),
    )
) + tuple(
    Damage(f"index of the log {name}", "-shm", change)
    for name, change in (("removed", None), ("flipped", flipped_often), ("zeroed in part", zeroed), ("cut off", cut))
)  # fmt: skip
