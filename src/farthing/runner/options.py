"""How to run, as the user says it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing import checks
from farthing.errors import InvalidArgument
from farthing.plain import warn
from farthing.runner.clock import is_timed
from farthing.runner.executors import Executor, InProcess
from farthing.runner.failing import MAX_FAILURES
from farthing.runner.interrupts import Interrupts
from farthing.runner.limits import TrialLimits
from farthing.runner.meters import MeterLike
from farthing.runner.pool import ProcessPool
from farthing.runner.process_tree import require_process_usage
from farthing.runner.worker_process import CannotIsolate, NoProcesses, WorkerSetup
from farthing.session import Session
from farthing.trial import Objective

CHECKED_BETWEEN = "then the budget is checked only between evaluations and steps"
PAUSED_LIMIT = 32  # learners of some hundred MB each still fit into the memory of a workstation


@dataclass(frozen=True)
class RunOptions:
    """The options of `Study.run`, checked."""

    workers: int = 1
    isolate: bool | None = None
    paused_limit: int = PAUSED_LIMIT
    trial_seconds: float | str | None = None
    trial_memory: float | str | None = None
    max_failures: int | None = MAX_FAILURES
    meter: MeterLike = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        checks.settle(
            self,
            workers=checks.whole_number("workers", self.workers, least=1),
            isolate=checks.optional(checks.switch, "isolate", self.isolate),
            paused_limit=checks.whole_number("paused_limit", self.paused_limit),
            max_failures=checks.optional(checks.whole_number, "max_failures", self.max_failures, least=1),
            progress=checks.optional(checks.switch, "progress", self.progress),
        )
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

    def executor(self, session: Session, objective: Objective, interrupts: Interrupts, patience: float) -> Executor:
        """Worker processes where they are needed or wanted, else this process. Whether the objective can run in a
        process of its own is known within `patience` seconds; one that cannot is refused."""
        here = InProcess(objective, interrupts)
        is_needed = bool(self.isolate) or self._needs_processes
        if self.isolate is False or not (is_needed or is_timed(session.ledger.budget)):
            return here
        try:
            setup = WorkerSetup.of(objective, session.space, self.workers)
            reuse = math.isinf(self.limits.bytes)  # memory that an evaluation leaves behind is not the next one's
            return ProcessPool(setup, session.space, self.workers, interrupts, reuse).started(patience)
        except CannotIsolate as error:
            if is_needed:
                raise InvalidArgument(f"the objective cannot run in a process of its own: {error}") from error
            if not isinstance(error, NoProcesses):
                raise InvalidArgument(
                    f"the objective cannot run in a process of its own: {error}. A budget of time is kept by ending "
                    f"such a process. isolate=False runs the objective here; {CHECKED_BETWEEN}"
                ) from error
            warn(f"the objective runs in this process, and {CHECKED_BETWEEN}: {error}")
            return here
