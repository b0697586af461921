"""How to run, as the user says it."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from farthing.errors import InvalidArgument
from farthing.runner.clock import is_timed
from farthing.runner.executors import Here, Place
from farthing.runner.interrupts import Interrupts
from farthing.runner.limits import TrialLimits
from farthing.runner.meters import MeterLike
from farthing.runner.pool import ProcessPool
from farthing.runner.process_tree import require_process_usage
from farthing.runner.worker_process import CannotIsolate, WorkerSetup
from farthing.study import Objective, Study

logger = logging.getLogger("farthing")


@dataclass(frozen=True)
class Options:
    """Checked."""

    workers: int = 1
    isolate: bool | None = None
    paused_limit: int = 32
    trial_seconds: float | str | None = None
    trial_memory: float | str | None = None
    meter: MeterLike = None

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("paused_limit", 0)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < least:
                raise InvalidArgument(f"{name}: expected a whole number of at least {least}, got {given!r}")
        if self.isolate not in (None, True, False):
            raise InvalidArgument(f"isolate: expected True, False or None, got {self.isolate!r}")
        if not math.isinf(self.limits.bytes):
            require_process_usage()
        if self.isolate is False and self._needs_processes:
            raise InvalidArgument("isolate=False: several workers, trial_seconds and trial_memory need processes")

    @property
    def limits(self) -> TrialLimits:
        return TrialLimits.of(self.trial_seconds, self.trial_memory)

    @property
    def _needs_processes(self) -> bool:
        return self.workers > 1 or bool(self.limits)

    def place(self, study: Study, objective: Objective, interrupts: Interrupts, patience: float) -> Place:
        """Worker processes where they are needed or wanted and the objective can be shipped, which is known within so
        many seconds, else this process."""
        here = Here(objective, study.maximize, interrupts)
        if self.isolate is False or not (self.isolate or self._needs_processes or is_timed(study.ledger.budget)):
            return here
        try:
            setup = WorkerSetup.of(objective, study.space, study.maximize, self.workers)
            reuse = math.isinf(self.limits.bytes)  # memory that an evaluation leaves behind is not the next one's
            return ProcessPool(setup, study.space, self.workers, interrupts, reuse).started(patience)
        except CannotIsolate as error:
            if self.isolate or self._needs_processes:
                raise InvalidArgument(f"the objective cannot run in a process of its own: {error}") from error
            logger.warning(
                "the budget is checked only between evaluations and steps: the objective cannot run in a process of "
                "its own, for %s", error,
            )  # fmt: skip
            return here
