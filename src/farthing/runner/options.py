"""How to run, as the user says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from farthing import checks
from farthing.budget import Budget
from farthing.errors import InvalidArgument
from farthing.numerics import late_scipy
from farthing.policies import rows_of
from farthing.runner.available_memory import available_bytes
from farthing.runner.background import start_thread
from farthing.runner.clock import Clock, is_timed
from farthing.runner.executors import Executor, InProcess
from farthing.runner.failing import MAX_FAILURES
from farthing.runner.interrupts import Interrupts
from farthing.runner.kept_checkpoints import KeepCheckpoints, checked_keep
from farthing.runner.limits import TrialLimits, read_bytes
from farthing.runner.meters import MeterLike, Meters, meters_for
from farthing.runner.pool import ProcessPool
from farthing.runner.process_tree import require_process_usage
from farthing.runner.worker_process import CannotIsolate, NoProcesses, WorkerSetup
from farthing.session import Session
from farthing.text.plain import warn
from farthing.trial import Objective

CHECKED_BETWEEN = "then the budget is checked only between evaluations and steps"
SPAWN = "spawn"  # worker processes, each a new one: none is forked
PAUSED_LIMIT = 32  # more paused learners hardly ever get their turn again
PAUSED_SHARE = 0.25  # of the memory that is available when the run begins: the rest is for what runs, and for others


@runtime_checkable
class Cluster(Protocol):
    """Machines that evaluations run on, as `workers=` may name them: it makes the executor of a run."""

    @property
    def n(self) -> int:
        """The most evaluations side by side."""
        ...

    def meters(self, budget: Budget, meter: MeterLike) -> Meters:
        """What measures them."""
        ...

    def executor(
        self, options: RunOptions, session: Session, objective: Objective, interrupts: Interrupts, patience: float,
        meters: Meters,
    ) -> Executor:  # fmt: skip
        """What runs them, within `patience` seconds. Raises CannotIsolate if the objective cannot be sent."""
        ...


@dataclass(frozen=True)
class RunOptions:
    """The options of `Study.run`, checked."""

    workers: int | Cluster = 1
    isolate: bool | str | None = None
    trial_seconds: float | str | None = None
    trial_memory: float | str | None = None
    paused_limit: int = PAUSED_LIMIT
    paused_memory: float | str | None = None
    keep_checkpoints: KeepCheckpoints = "best"
    max_failures: int | None = MAX_FAILURES
    meter: MeterLike = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        checks.settle(
            self,
            workers=self.cluster or checks.whole_number("workers", self.workers, least=1),
            isolate=_isolation(self.isolate),
            paused_limit=checks.whole_number("paused_limit", self.paused_limit),
            keep_checkpoints=checked_keep(self.keep_checkpoints),
            max_failures=checks.optional(checks.whole_number, "max_failures", self.max_failures, least=1),
            progress=checks.optional(checks.switch, "progress", self.progress),
        )
        if not math.isinf(self.limits.bytes) or (self.paused_memory is not None and self.paused_bytes()):
            require_process_usage()
        if self.isolate is False and self.cluster is not None:
            raise InvalidArgument("isolate=False: on a cluster evaluations run in processes of their own")
        if self.isolate is False and self._needs_processes:
            raise InvalidArgument("isolate=False: several workers, trial_seconds and trial_memory need processes")

    @property
    def limits(self) -> TrialLimits:
        return TrialLimits.of(self.trial_seconds, self.trial_memory)

    def paused_bytes(self) -> float:
        """The most memory that the processes of paused learners may hold: as given, or a share of what is available
        now."""
        if self.paused_memory is None:
            return PAUSED_SHARE * available_bytes()
        return read_bytes("paused_memory", self.paused_memory)

    @cached_property
    def cluster(self) -> Cluster | None:
        """The machines to run on, if it is not only this one."""
        return self.workers if isinstance(self.workers, Cluster) else None

    @cached_property
    def most(self) -> int:
        """How many evaluations may run side by side."""
        return self.workers.n if isinstance(self.workers, Cluster) else self.workers

    @property
    def reuse(self) -> bool:
        """Whether a process serves several evaluations: memory that one leaves behind is not the next one's."""
        return math.isinf(self.limits.bytes)

    @property
    def _needs_processes(self) -> bool:
        return self.most > 1 or bool(self.limits)

    def meters(self, budget: Budget) -> Meters:
        """What measures the evaluations."""
        return meters_for(budget, self.meter) if self.cluster is None else self.cluster.meters(budget, self.meter)

    def executor(
        self, session: Session, objective: Objective, interrupts: Interrupts, clock: Clock, meters: Meters
    ) -> Executor:  # fmt: skip
        """The cluster that is given. Else worker processes where they are needed or wanted, else this process. An
        objective that cannot run in a process of its own is refused, if that is known before the budget is over."""
        if self.cluster is not None:
            _load_models(session)
            try:
                with clock.starting():
                    patience = clock.seconds_left()
                    return self.cluster.executor(self, session, objective, interrupts, patience, meters)
            except CannotIsolate as error:
                raise InvalidArgument(f"the objective cannot run on the cluster: {error}") from error
        here = InProcess(objective, interrupts)
        is_needed = bool(self.isolate) or self._needs_processes
        if self.isolate is False or not (is_needed or is_timed(session.ledger.budget)):
            return here
        try:
            with clock.starting():
                setup = WorkerSetup.of(objective, session.space, self.most, forks=self.isolate != SPAWN)
                pool = ProcessPool(setup, session.space.store_config, self.most, interrupts, self.reuse)
                _load_models(session)
                return pool.started(clock.seconds_left())
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


def _load_models(session: Session) -> None:
    """Import what the models of its policy need, while the first worker starts: half a second that is free. The program
    waits for that thread at its end, because Python must not end inside an import."""
    if rows_of(session.policy, session.history) is not None:
        start_thread("farthing-loading", late_scipy.load, daemon=False)


def _isolation(given: Any) -> bool | str | None:
    if given is None or (isinstance(given, str) and given == SPAWN):
        return given
    if not isinstance(given, bool | np.bool_):
        checks.refuse("isolate", f"True, False, {SPAWN!r} or None", given)
    return bool(given)


def checked_callbacks(callbacks: Any) -> list[Callable[..., Any]]:
    """Functions of a study and a trial."""
    if not isinstance(callbacks, Iterable):
        checks.refuse("callbacks", "a list of functions of a study and a trial", callbacks)
    return [checks.function("callbacks", callback, of="functions of a study and a trial") for callback in callbacks]
