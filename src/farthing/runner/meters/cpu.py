"""The meter "cpu": CPU seconds of a process and its descendants."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from farthing.runner.process_tree import PROC, require_process_usage, tree_usage


@dataclass(frozen=True)
class Cpu:
    """CPU seconds of a process and all its descendants, in `compute_seconds`: two busy threads spend two a second."""

    proc: Path = PROC
    unit: str = field(default="compute_seconds", init=False)

    def __post_init__(self) -> None:
        require_process_usage(self.proc)

    def begin(self, pid: int) -> CpuGauge:
        return CpuGauge(pid, self.proc)


class CpuGauge:
    """Adds up the growth of a process tree's CPU time. When a descendant vanishes, nothing is subtracted."""

    def __init__(self, pid: int, proc: Path) -> None:
        self._pid, self._proc, self._total = pid, proc, 0.0
        self._last = tree_usage(pid, proc)

    def spent(self) -> float:
        if self._last is not None:
            now = tree_usage(self._pid, self._proc)
            if now is None or now.started != self._last.started:  # it ended, and its number may have been reused
                self._last = None
            else:
                self._total += max(now.cpu_seconds - self._last.cpu_seconds, 0.0)
                self._last = now
        return self._total
