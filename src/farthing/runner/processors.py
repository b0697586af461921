"""Processors that this process may use, as the kernel and the container say."""

from __future__ import annotations

import math
import os
from pathlib import Path

QUOTAS = (  # of the container, in cgroup v2 and v1: microseconds of processors in each period, and the period
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


def processor_count(quotas: tuple[tuple[str, ...], ...] = QUOTAS) -> int:
    """At least 1. Of a quota that ends with half a processor, the half counts as a whole one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = (share for files in quotas if (share := _quota(files)) is not None)
    return max(min([allowed, *(math.ceil(share) for share in shares)]), 1)


def _quota(files: tuple[str, ...]) -> float | None:
    """Processors that a quota allows; None if there is none."""
    try:
        quota, period = map(int, " ".join(Path(file).read_text() for file in files).split())
    except (OSError, ValueError):  # "max" says that there is none
        return None
    return quota / period if quota > 0 and period > 0 else None
