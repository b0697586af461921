"""A function of wall-clock seconds as a meter: for amounts that follow from how long an evaluation takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timed:
    """Spends `amount(seconds)` in `unit`, for an evaluation that has taken `seconds` of wall-clock time."""

    amount: Callable[[float], float]
    unit: str

    def begin(self, pid: int) -> TimedGauge:
        return TimedGauge(self.amount, time.perf_counter())


@dataclass(frozen=True)
class TimedGauge:
    amount: Callable[[float], float]
    began: float

    def spent(self) -> float:
        return float(self.amount(max(time.perf_counter() - self.began, 0.0)))
