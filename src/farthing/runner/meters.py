"""What an evaluation spent, measured around it."""

from __future__ import annotations

import time


class Stopwatch:
    """Wall-clock seconds since the last lap, from a clock that never goes backwards."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
