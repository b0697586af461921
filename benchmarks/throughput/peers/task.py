"""The throughput task that every system is given: many trials of an objective of one millisecond, kept in a file.

A peer runs one study. It writes {"ready": versions}, then waits for a number on stdin, runs that many more trials,
writes {"seconds": s, "cpu_seconds": c} for them, and waits again, so that a driver can let several studies take turns.
The waiting happens between two trials of one run, and is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

OBJECTIVE_SECONDS = 0.001
WARM_UP_TRIALS = 20


def objective(x: float, y: float, rate: float, depth: int, kind: str) -> float:
    """A bowl that takes a millisecond of work: to sleep so briefly takes longer, and how much depends on the system."""
    end = time.perf_counter() + OBJECTIVE_SECONDS
    while time.perf_counter() < end:
        pass
    return (x - 2.0) ** 2 + y + rate + 0.1 * depth + (kind == "a")


class Turns:
    """Trials in turns that the driver asks for."""

    def __init__(self, versions: dict[str, str]) -> None:
        emit({"ready": versions})
        self._left = 0

    def begin(self) -> bool:
        """Wait for the next turn; False when there is none."""
        line = sys.stdin.readline()
        self._left = int(line) if line else 0
        self._since = clocks()
        return self._left > 0

    def go_on(self) -> bool:
        """To be asked after every trial: whether there is to be another one."""
        self._left -= 1
        if self._left > 0:
            return True
        seconds, cpu_seconds = (now - then for now, then in zip(clocks(), self._since, strict=True))
        emit({"seconds": seconds, "cpu_seconds": cpu_seconds})
        return self.begin()


def clocks() -> tuple[float, float]:
    """Wall and CPU seconds of this process so far."""
    return time.perf_counter(), time.process_time()


def emit(event: dict[str, Any]) -> None:
    """Write one JSON line for the driver."""
    print(json.dumps(event), flush=True)
