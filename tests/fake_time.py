"""A clock that passes only where a test says so: what takes seconds takes none, however busy the machine is."""

from __future__ import annotations

import time

import pytest

TICK = 2.0**-20  # seconds between two looks at the clock: what the optimiser seems to spend, about a microsecond


class FakeTime:
    """Stands in for `time.perf_counter` and `time.sleep` of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "perf_counter", self.perf_counter)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def perf_counter(self) -> float:
        self.now += TICK
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
