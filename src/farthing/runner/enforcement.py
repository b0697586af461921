"""Keeping limits: which evaluations have to end, when, and how that is recorded.

An evaluation that reaches a limit is doomed: it is told to end, has a moment to do so, and is killed by the run when
that is over. Limits are those of the budget, of one trial, and what a signal or the end of the study leaves time for.
Whatever an evaluation answers after a limit, or after it was told to end, does not count: an objective may catch the
exception, or native code swallow it, and what it returns then is the value of half a training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from farthing.errors import TargetReached
from farthing.runner.active import Advancing, Doom, Verdict
from farthing.runner.clock import Ages, Clock
from farthing.runner.executors import Executor
from farthing.runner.interrupts import Interrupts
from farthing.runner.limits import TrialLimits
from farthing.runner.memory import MemoryWatch
from farthing.runner.messages import Answer, AnswerKind
from farthing.runner.meters import Meters
from farthing.session import Session
from farthing.trial import EndedBy, Status

GRACE = 0.2  # seconds between telling an evaluation to end and killing it: budgets are kept to half a second
PREEMPTED_GRACE = 5.0  # seconds for a training step to end after SIGTERM: clusters kill 10 to 30 seconds after it
MEMORY_POLL = 0.05  # seconds between two looks at memory: at 10 GB/s a process allocates half a GB between them
METER_POLL = 0.2  # seconds between two looks at meters: reading them for many processes takes milliseconds
DELAY = 0.05  # seconds that a worker's clock may be behind the run's: a message takes a few milliseconds to be read
LIMITS = (EndedBy.BUDGET, EndedBy.TRIAL_LIMIT)


OUT_OF_BUDGET = Verdict(GRACE, Status.KILLED, EndedBy.BUDGET, "killed: the budget is spent")


@dataclass(eq=False)
class Enforcement:
    """Over the evaluations of a run, where its executor can kill them; elsewhere it has no means."""

    session: Session
    executor: Executor
    clock: Clock
    meters: Meters
    interrupts: Interrupts
    limits: TrialLimits
    active: Advancing
    _next_memory: float = 0.0  # when to look
    _next_meters: float = 0.0

    def __post_init__(self) -> None:
        self._memory = MemoryWatch(self.limits.bytes)

    def patience(self) -> float | None:
        """Seconds until something may have to be done; None: for ever."""
        if not self.executor.can_kill:
            return None
        now = self.clock.read()
        until = [self.active.next_due() - now]
        if not self.active.are_doomed:
            until.append(self.seconds_left)
            if self.limits.bytes < math.inf:
                until.append(self._next_memory - now)
            if self.meters.units:
                until.append(self._next_meters - now)
        soonest = min(until)
        return None if math.isinf(soonest) else max(soonest, 0.0)

    def overdue(self) -> Iterator[int]:
        """Doom what is past a limit; the numbers of those whose moment has passed, each of which is ended before the
        next one is looked for."""
        if not self.executor.can_kill or not self.active:
            return
        self._doom_all()
        self._doom_large()
        for number in self.active.due(self.clock.read()):
            active = self.active[number]
            if active.doom is not None:
                yield number
            else:
                self._doom(number, _at_limit(GRACE, active.limits.seconds_text))

    @property
    def seconds_left(self) -> float:
        """Until a limit of the budget that time uses up is reached, if all goes on as it does."""
        return self.clock.seconds_left(self.ages)

    @property
    def ages(self) -> Ages:
        """Of all evaluations together."""
        return self.active.ages(self.clock.read())

    def verdict_on(self, number: int, answer: Answer, seconds: float) -> Verdict | None:
        """Why an answer does not count, if it does not; by the worker's clock the action took that many seconds. An
        answer that was on its way when a limit was noticed counts if the evaluation had ended before the limit. If it
        has its own handler of signals, only the clock says so."""
        active = self.active[number]
        doom, ended = active.doom, active.began + seconds
        if answer.kind is AnswerKind.LARGE:
            return _at_limit(0.0, self.limits.bytes_text) if doom is None else doom.verdict
        if doom is not None and (answer.told_by or (doom.verdict.ended_by in LIMITS and ended + DELAY >= doom.since)):
            return doom.verdict
        if not self.executor.can_kill or answer.seconds is None:
            return None
        if active.before + seconds >= active.limits.seconds:
            return _at_limit(GRACE, active.limits.seconds_text)
        now = self.clock.read()
        ages = self.active.ages(now).with_one(seconds, instead_of=active.age(now))
        left_when_it_ended = self.clock.seconds_ahead(ages) + active.age(now) - seconds
        return OUT_OF_BUDGET if left_when_it_ended < 0.0 else None

    def _doom_all(self) -> None:
        """Where the budget, the study or a signal leaves no time for anybody."""
        verdict = self._verdict_on_all()
        if verdict is None or (self.active.are_doomed and verdict.grace > 0.0):
            return
        for number, active in self.active.items():
            if active.doom is None or verdict.grace == 0.0:
                self._doom(number, verdict)

    def _verdict_on_all(self) -> Verdict | None:
        if self.interrupts.interrupted > 1:
            return Verdict(0.0, Status.INTERRUPTED, EndedBy.INTERRUPT, "interrupted")
        if self.interrupts.terminated:
            return Verdict(PREEMPTED_GRACE, Status.INTERRUPTED, EndedBy.INTERRUPT, self.interrupts.how_terminated)
        ended = self.session.ended
        if isinstance(ended, TargetReached):
            return Verdict(GRACE, Status.INTERRUPTED, EndedBy.TARGET, str(ended))
        return OUT_OF_BUDGET if self.seconds_left <= 0.0 or self._is_spent() else None

    def _is_spent(self) -> bool:
        """Whether a limit is reached that running evaluations go on to use up, by what meters show now too; the number
        of evaluations is not one of these."""
        ledger, now = self.session.ledger, self.clock.read()
        if self.meters.units and now >= self._next_meters:
            self._next_meters = now + METER_POLL
            shown = [active.gauges.spent() for active in self.active.values()]
            due = {unit: sum(amounts.get(unit, 0.0) for amounts in shown) for unit in self.meters.units}
            if self.meters.held is not None:
                due["usd"] += self.meters.held.idle_usd()
            ledger = ledger.charged({"evaluation": due})
        return ledger.reached not in (None, "evaluations")

    def _doom_large(self) -> None:
        if self.limits.bytes == math.inf or self.clock.read() < self._next_memory:
            return
        for number in self._memory.above({number: self.executor.process_of(number) for number in self.active}):
            if self.active[number].doom is None:
                self._doom(number, _at_limit(0.0, self.limits.bytes_text))
        self._next_memory = self.clock.read() + MEMORY_POLL

    def _doom(self, number: int, verdict: Verdict) -> None:
        """Tell an evaluation to end. A training step that has time to come to its end by itself is only waited for."""
        self.active.doom(number, Doom(self.clock.read() + verdict.grace, verdict))
        is_training = len(self.session.history.trials[number].curve) > 0
        if verdict.grace < PREEMPTED_GRACE or not is_training:
            self.executor.tell_to_end(number)


def _at_limit(grace: float, error: str) -> Verdict:
    return Verdict(grace, Status.KILLED, EndedBy.TRIAL_LIMIT, error)
