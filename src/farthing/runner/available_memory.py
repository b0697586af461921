"""How much memory this process and those it starts may still take: of the machine, and of its container.

A container is a control group with a limit (cgroups(7), versions 1 and 2). What the kernel keeps of files in memory
and would give back counts as available, as it does in the kernel's own estimate for the machine (MemAvailable).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from farthing.runner.process_tree import PROC

CGROUPS = Path("/sys/fs/cgroup")


class _Version(NamedTuple):
    """Where a version of control groups keeps what."""

    root: str
    limit: str
    used: str
    reclaimable: str  # in memory.stat


ONE = _Version("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
TWO = _Version("", "memory.max", "memory.current", "inactive_file")


def available_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> float:
    """Infinite where nothing says it, as elsewhere than on Linux.

    >>> available_bytes() > 1_000_000
    True
    """
    return min([_of_machine(proc), *_of_groups(proc, cgroups)])


def _of_machine(proc: Path) -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return math.inf


def _of_groups(proc: Path, cgroups: Path) -> Iterator[float]:
    """What is left in each control group around this process that has a limit."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number != "0" and "memory" not in controllers.split(","):
            continue
        version = TWO if number == "0" else ONE
        inner = PurePosixPath(path)
        for group in (inner, *inner.parents):  # from inside a container, only the outermost may be there
            yield _of_group(cgroups / version.root / str(group).lstrip("/"), version)


def _of_group(folder: Path, version: _Version) -> float:
    """Infinite if it has no limit."""
    with suppress(OSError, ValueError):
        limit, used = (int((folder / name).read_text()) for name in (version.limit, version.used))
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(limit - used + int(statistics.get(version.reclaimable, 0)), 0.0)
    return math.inf
