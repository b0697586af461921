"""Keeping limits: which evaluations have to end, when, and how that is recorded.

An evaluation that reaches a limit is doomed: told to end, given a moment, and then overdue, which is when the run kills
it. Limits are those of the budget, of one trial, and what a signal or the end of the study leaves time for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from farthing.errors import TargetReached
from farthing.run_context import Run
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.executors import Place
from farthing.runner.interrupts import Interrupts
from farthing.runner.limits import TrialLimits
from farthing.runner.meters import Gauges, Meters
from farthing.runner.process_tree import tree_usages
from farthing.study import Study
from farthing.trial import OUT_OF_BUDGET, Status

GRACE = 0.2  # seconds between telling an evaluation to end and killing it
PREEMPTED_GRACE = 5.0  # seconds for a training step to come to its end when the machine is taken away
MEMORY_POLL = 0.05  # seconds between two looks at the memory of evaluations
METER_POLL = 0.2  # and at their meters


@dataclass(frozen=True)
class Doom:
    """That an evaluation will be killed: when, and how that is recorded."""

    kill_at: float
    status: Status
    reason: str


@dataclass
class Active:
    """An evaluation that is advancing."""

    run: Run
    checkpoints: Checkpoints
    began: float  # of the action that is being waited for
    before: float = 0.0  # seconds of the actions before it, since the run began
    gauges: Gauges = field(default_factory=Gauges)
    limits: TrialLimits = field(default_factory=TrialLimits)  # of its seconds, those before included
    doom: Doom | None = None

    @property
    def age(self) -> float:
        """Seconds that were not charged yet."""
        return time.perf_counter() - self.began


@dataclass(eq=False)
class Enforcement:
    """Over the evaluations of a run in a place where they can be killed; elsewhere it has no means."""

    study: Study
    place: Place
    clock: Clock
    meters: Meters
    interrupts: Interrupts
    limits: TrialLimits
    active: Mapping[int, Active]
    _next_memory: float = 0.0  # when to look
    _next_meters: float = 0.0

    def patience(self) -> float | None:
        """Seconds until something may have to be done; None: for ever."""
        if not self.place.can_kill:
            return None
        now, undoomed = time.perf_counter(), [a for a in self.active.values() if a.doom is None]
        until = [active.doom.kill_at - now for active in self.active.values() if active.doom is not None]
        until += [active.limits.seconds - active.before - active.age for active in undoomed]
        if undoomed:
            until.append(self.seconds_left)
            if self.limits.bytes < math.inf:
                until.append(self._next_memory - now)
            if self.meters.units:
                until.append(self._next_meters - now)
        soonest = min(until, default=math.inf)
        return None if math.isinf(soonest) else max(soonest, 0.0)

    def overdue(self) -> list[int]:
        """Doom what is past a limit; the numbers of those whose moment has passed."""
        if not self.place.can_kill or not self.active:
            return []
        self._doom_all()
        self._doom_slow()
        self._doom_large()
        now = time.perf_counter()
        return [number for number, a in self.active.items() if a.doom is not None and now >= a.doom.kill_at]

    @property
    def seconds_left(self) -> float:
        """Until a limit of the budget that passes by with time is reached, if all goes on as it does."""
        return self.clock.seconds_left([active.age for active in self.active.values()])

    def _doom_all(self) -> None:
        """Where the budget, the study or a signal leaves no time for anybody."""
        ended = self.study.ended
        if self.interrupts.interrupted > 1:
            everyone = (0.0, Status.INTERRUPTED, "interrupted")
        elif self.interrupts.terminated:
            everyone = (PREEMPTED_GRACE, Status.INTERRUPTED, "interrupted by SIGTERM")
        elif isinstance(ended, TargetReached):
            everyone = (GRACE, Status.INTERRUPTED, str(ended))
        elif self.seconds_left <= 0.0 or self._is_spent():
            everyone = (GRACE, Status.KILLED, OUT_OF_BUDGET)
        else:
            return
        for number, active in self.active.items():
            if active.doom is None or everyone[0] == 0.0:
                self._doom(number, *everyone)

    def _is_spent(self) -> bool:
        """Whether a limit is reached that goes on to be spent, by what meters show now too: not that of the number of
        evaluations."""
        ledger, now = self.study.ledger, time.perf_counter()
        if self.meters.units and now >= self._next_meters:
            self._next_meters = now + METER_POLL
            shown = [active.gauges.spent() for active in self.active.values()]
            due = {unit: sum(amounts.get(unit, 0.0) for amounts in shown) for unit in self.meters.units}
            ledger = ledger.charged({"evaluation": due})
        return ledger.reached not in (None, "evaluations")

    def _doom_slow(self) -> None:
        for number, active in self.active.items():
            if active.doom is None and active.before + active.age >= active.limits.seconds:
                self._doom(number, GRACE, Status.KILLED, active.limits.seconds_text)

    def _doom_large(self) -> None:
        if self.limits.bytes == math.inf or time.perf_counter() < self._next_memory:
            return
        held = tree_usages([self.place.process_of(number) for number in self.active])
        for number, active in self.active.items():
            used = held[self.place.process_of(number)]
            if active.doom is None and used is not None and used.resident_bytes > self.limits.bytes:
                self._doom(number, 0.0, Status.KILLED, self.limits.bytes_text)
        self._next_memory = time.perf_counter() + MEMORY_POLL

    def _doom(self, number: int, grace: float, status: Status, reason: str) -> None:
        """Tell an evaluation to end. A training step is only waited for where it has time: it may end by itself."""
        self.active[number].doom = Doom(time.perf_counter() + grace, status, reason)
        is_training = len(self.study.trial(number).curve) > 0
        if grace < PREEMPTED_GRACE or not is_training:
            self.place.tell_to_end(number)
