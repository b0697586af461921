"""When this process began: the time its interpreter and its imports take is part of a budget too."""

from __future__ import annotations

import os
import time
from pathlib import Path

from farthing.runner.processes import stat_line

STARTING_SECONDS = 3.0  # from the start of an interpreter to the first import: milliseconds, seconds on a slow disk


def process_start(imported: float, stat: Path = Path("/proc/self/stat")) -> float:
    """When this process began, by `time.perf_counter()`; `imported`, when this package was, if that cannot be known.

    The kernel's number is that of the whole process. In one that a shell began and replaced by this program much later
    (`exec farthing run ...`) it is not the program's.

    >>> process_start(5.0, Path("/nowhere"))
    5.0
    """
    try:
        ticks = int(stat_line(str(stat)).split()[19])  # field 22 of proc(5); the line begins with the third
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return imported
    began = time.perf_counter() - age
    return began if imported - STARTING_SECONDS <= began <= imported else imported
