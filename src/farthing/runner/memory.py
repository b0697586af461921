"""How much memory a trial holds: that of its processes as the kernel shares it, and that of its files in memory.

Resident memory is quick to read, but counts a page that several processes share in each of them. So it only raises a
suspicion. Then the proportional set size is read (smaps_rollup of proc(5)): a page that n processes share counts 1/n in
each. Files in /dev/shm are memory too. Those that are mapped are part of the set size, the others are added: files that
the trial's processes have open, and, if no other trial runs, files that were written since it began, belong to this
user, and that no process of others has open.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from farthing.runner.process_tree import PROC, tree_members, tree_usages

SHARED = Path("/dev/shm")
BLOCK = 512  # bytes of a block in stat(2)
SHARE = 0.25  # of the time that may be spent on close looks: the size of a large process takes milliseconds to read


class FileId(NamedTuple):
    """Which file it is, whatever its name."""

    device: int
    number: int


class Size(NamedTuple):
    """The proportional set size of processes, in bytes, and what of it is shared memory."""

    all: int = 0
    shared: int = 0


class MemoryWatch:
    """Which trials hold more memory than a trial may."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._began: dict[int, float] = {}  # of each trial, by the clock that files have
        self._free_of: dict[int, int] = {}  # bytes of files in memory that were there before the trial, at most
        self._next_look = 0.0

    def above(self, processes: Mapping[int, int]) -> list[int]:
        """The trials above the limit, of those whose processes are given."""
        usages, files = tree_usages(processes.values()), files_bytes()
        suspects = []
        for trial, pid in processes.items():
            self._began.setdefault(trial, time.time())
            self._free_of[trial] = min(self._free_of.get(trial, files), files)
            usage = usages[pid]
            if usage is not None and usage.resident_bytes + files - self._free_of[trial] > self._limit:
                suspects.append(trial)
        began = time.monotonic()
        if not suspects or began < self._next_look:
            return []
        is_alone = len(processes) == 1
        found = [
            trial for trial in suspects
            if is_above(processes[trial], self._limit, self._began[trial] if is_alone else None)
        ]  # fmt: skip
        self._next_look = time.monotonic() + (time.monotonic() - began) / SHARE
        return found


def files_bytes(folder: Path = SHARED) -> int:
    """What the files in memory hold, of all users."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def is_above(pid: int, limit: float, since: float | None = None) -> bool:
    """Whether a process tree holds more than `limit` bytes, files written since the time `since` included, if it is
    given."""
    if not (PROC / "self" / "smaps_rollup").exists():  # elsewhere than on Linux a suspicion has to do
        return True
    members = tree_members(pid)
    size, mapped = _size(members), set(_mapped(members))
    files = _open_files(members)
    held = size.all + _not_counted(files, mapped, size.shared)
    if held > limit or since is None:
        return held > limit
    files.update(_written(since))
    if size.all + _not_counted(files, mapped, size.shared) <= limit:
        return False
    others = [int(name) for name in os.listdir(PROC) if name.isdecimal() and int(name) not in members]
    for file in {*_open_files(others), *_mapped(others)} - {*_open_files(members), *mapped}:
        files.pop(file, None)
    return size.all + _not_counted(files, mapped, size.shared) > limit


def sizes_if_above(limit: float, processes: Mapping[int, int]) -> dict[int, int]:
    """Bytes of each trial's process and its descendants, as the kernel shares them, if together they may hold more than
    `limit`; empty if they do not."""
    if math.isinf(limit) or not processes:
        return {}
    resident = {pid: usage.resident_bytes for pid, usage in tree_usages(processes.values()).items() if usage}
    if sum(resident.values()) <= limit:
        return {}
    if not (PROC / "self" / "smaps_rollup").exists():
        return {trial: resident.get(pid, 0) for trial, pid in processes.items()}
    return {trial: _size(tree_members(pid)).all for trial, pid in processes.items()}


def _not_counted(files: Mapping[FileId, int], mapped: Iterable[FileId], shared: int) -> int:
    """Bytes of files that are not in a set size of which `shared` are shared memory: pages of a mapped file are there
    once they were touched."""
    mapped = set(mapped)
    in_maps = sum(size for file, size in files.items() if file in mapped)
    return sum(files.values()) - in_maps + max(in_maps - shared, 0)


def _size(members: Iterable[int]) -> Size:
    sizes = [_size_of(pid) for pid in members]
    return Size(sum(size.all for size in sizes), sum(size.shared for size in sizes))


def _size_of(pid: int) -> Size:
    """Of one process; nothing if it has ended."""
    try:
        lines = Path(f"{PROC}/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return Size()
    amounts = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    return Size(*(1024 * int(amounts.get(name, "0 kB").split()[0]) for name in ("Pss", "Pss_Shmem")))


def _open_files(pids: Iterable[int]) -> dict[FileId, int]:
    """Files in memory that processes have open, with their bytes."""
    found = {}
    device = _device()
    for pid in pids:
        folder = f"{PROC}/{pid}/fd"
        with suppress(OSError):
            for name in os.listdir(folder):
                with suppress(OSError):
                    stat = os.stat(f"{folder}/{name}")
                    if stat.st_dev == device or os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                        found[FileId(stat.st_dev, stat.st_ino)] = stat.st_blocks * BLOCK
    return found


def _mapped(pids: Iterable[int]) -> Iterator[FileId]:
    """All files that processes have mapped."""
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"{PROC}/{pid}/maps").read_bytes().splitlines():
                _, _, _, device, number, *_ = line.split(None, 5)
                if number != b"0":
                    major, _, minor = device.partition(b":")
                    yield FileId(os.makedev(int(major, 16), int(minor, 16)), int(number))


def _written(since: float) -> dict[FileId, int]:
    """Files in memory of this user that were written since then."""
    found = {}
    for folder, _, names in os.walk(SHARED):
        for name in names:
            with suppress(OSError):
                stat = os.lstat(f"{folder}/{name}")
                if stat.st_uid == os.getuid() and max(stat.st_mtime, stat.st_ctime) >= since:
                    found[FileId(stat.st_dev, stat.st_ino)] = stat.st_blocks * BLOCK
    return found


def _device() -> int:
    """That of files in memory; -1 if there is none."""
    try:
        return os.stat(SHARED).st_dev
    except OSError:
        return -1
