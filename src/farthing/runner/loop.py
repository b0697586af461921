"""The run: propose, evaluate, record, until the study ends.

Evaluations happen in a place (places.py): in this process, or in worker processes. Whenever one of them is free it gets
the next proposal, which knows of all that is running. All wall-clock time between the first line and the last goes to
the ledger (clock.py). In worker processes limits are kept: an evaluation that would go past one is told, given a moment
and killed, and what it spent is charged.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from farthing.current import Run
from farthing.errors import InvalidArgument, InvalidBudget, StorageError, StudyEnded, TargetReached
from farthing.lock import exclusive
from farthing.reading import read_value
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock, is_timed
from farthing.runner.evaluate import Evaluation
from farthing.runner.interrupts import TERMINATED, Interrupts, Terminated
from farthing.runner.limits import TrialLimits
from farthing.runner.live import LiveRuns
from farthing.runner.messages import Answer, Kind
from farthing.runner.meters import Gauges, Given, Meters, meters_for
from farthing.runner.places import CannotShip, Here, Place, Processes, shipped
from farthing.runner.processes import require, resident_bytes
from farthing.runner.progress import Progress, progress_for
from farthing.study import Callback, Objective, Study
from farthing.trial import OUT_OF_BUDGET, Decision, Outcome, Proposal, Report, Status

logger = logging.getLogger("farthing")

SILENT = 20  # trials in a row that may end without a cost in a unit that only the objective can tell
GRACE = 0.2  # seconds between telling an evaluation to end and killing it
PREEMPTED_GRACE = 5.0  # seconds for a training step to come to its end when the machine is taken away
MEMORY_POLL = 0.05  # seconds between two looks at the memory of evaluations
METER_POLL = 0.2  # and at their meters


@dataclass(frozen=True)
class Options:
    """How to run, as the user says it; checked."""

    workers: int = 1
    isolate: bool | None = None
    paused_limit: int = 32
    trial_seconds: float | str | None = None
    trial_memory: float | str | None = None
    meter: Given = None

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("paused_limit", 0)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < least:
                raise InvalidArgument(f"{name}: expected a whole number of at least {least}, got {given!r}")
        if self.isolate not in (None, True, False):
            raise InvalidArgument(f"isolate: expected True, False or None, got {self.isolate!r}")
        if not math.isinf(self.limits.bytes):
            require()
        if self.isolate is False and self._needs_processes:
            raise InvalidArgument("isolate=False: several workers, trial_seconds and trial_memory need processes")

    @property
    def limits(self) -> TrialLimits:
        return TrialLimits.of(self.trial_seconds, self.trial_memory)

    @property
    def _needs_processes(self) -> bool:
        return self.workers > 1 or bool(self.limits)

    def place(self, study: Study, objective: Objective, interrupts: Interrupts) -> Place:
        """Worker processes where they are needed or wanted and the objective can be shipped, else this process."""
        here = Here(objective, study.maximize, interrupts)
        if self.isolate is False or not (self.isolate or self._needs_processes or is_timed(study.ledger.budget)):
            return here
        try:
            load = shipped(objective, study.maximize)
            processes = Processes(load, self.workers, interrupts, reuse=math.isinf(self.limits.bytes))
            return processes.started()
        except CannotShip as error:
            if self.isolate or self._needs_processes:
                raise InvalidArgument(f"the objective cannot run in a process of its own: {error}") from error
            logger.warning(
                "the budget is checked only between evaluations and steps: the objective cannot run in a process of "
                "its own, for %s", error,
            )  # fmt: skip
            return here


def run(
    study: Study, objective: Objective, began: float, *,
    progress: bool | None, callbacks: Sequence[Callback], options: Options,
) -> None:  # fmt: skip
    """Run until the budget is spent, the target reached, the space exhausted, `study.stop()` or a signal."""
    if not callable(objective):
        raise InvalidArgument(f"objective: expected a function of a config, got {type(objective).__name__}")
    meters = meters_for(study.ledger.budget, options.meter)
    clock = Clock(study, began, meters.units)
    study.begin_run()
    with exclusive(study.storage), progress_for(study, progress) as shown, Interrupts() as interrupts:
        try:
            with (
                options.place(study, objective, interrupts) as place,
                LiveRuns(study, place, options.paused_limit) as live,
            ):
                _Loop(study, place, live, clock, meters, shown, interrupts, options, callbacks).run()
        except (KeyboardInterrupt, Terminated):
            interrupts.interrupted += 1  # an objective may raise it too
        if interrupts.interrupted or interrupts.terminated:
            where = f"; Study.resume({study.storage!r}) goes on" if study.storage else ""
            message = f"interrupted after {study.count()} trials{where}"
            logger.warning(message)
            shown.ended(message)
        study.course.charge(clock.overhead())
    if interrupts.terminated:
        raise SystemExit(TERMINATED)


@dataclass
class _Doom:
    """That an evaluation will be killed: when, and how that is recorded."""

    kill_at: float
    status: Status
    reason: str


@dataclass
class _Active:
    """An evaluation that is advancing."""

    run: Run
    checkpoints: Checkpoints
    began: float  # of the action that is being waited for
    before: float = 0.0  # seconds of the actions before it, since the run began
    gauges: Gauges = field(default_factory=Gauges)
    doom: _Doom | None = None

    @property
    def age(self) -> float:
        """Seconds that were not charged yet."""
        return time.perf_counter() - self.began


@dataclass(eq=False)
class _Loop:
    """Evaluations side by side."""

    study: Study
    place: Place
    live: LiveRuns
    clock: Clock
    meters: Meters
    shown: Progress
    interrupts: Interrupts
    options: Options
    callbacks: Sequence[Callback]
    active: dict[int, _Active] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)  # of paused trials, so far

    def run(self) -> None:
        self._limits = self.options.limits
        try:
            while self._turns():
                pass
        except BaseException:
            self._abandon()
            raise

    def _turns(self) -> bool:
        """One turn: give out work, wait, take in what came of it; False when there is nothing more to do."""
        self._give_out()
        if not self.active:
            return False
        self.clock.wait()
        happened = self.place.wait(self._patience())
        self.clock.work()
        self.interrupts.heard()
        for number, answer in happened:
            self._take_in(number, answer)
        self._enforce()
        return True

    # -- giving out --------------------------------------------------------------------------------------------------

    @property
    def _closing(self) -> bool:
        return self.study.stop_requested or self.interrupts.interrupted > 0 or self.interrupts.terminated

    def _give_out(self) -> None:
        while len(self.active) < self.options.workers and not self._closing:
            known = self.study.count()
            try:
                (proposal,) = self.study.course.propose(1, self.clock.overhead)
            except StudyEnded as end:
                if not self.active:
                    logger.info("ended: %s", end)
                return
            self.shown.asked(proposal)
            self._start(proposal, proposal.trial >= known)

    def _start(self, proposal: Proposal, new: bool) -> None:
        number = proposal.trial
        alive = self.live.resume(number)
        if alive is not None:
            run = self._run_of(number, proposal.start_step, False)
            self.active[number] = _Active(run, alive, time.perf_counter(), self.seconds.pop(number, 0.0))
            self._step(number)
            return
        run = self._run_of(number, proposal.start_step, new)
        self.active[number] = _Active(run, Checkpoints(run.folder), time.perf_counter(), self.seconds.pop(number, 0.0))
        self.place.begin(run, proposal.config)
        self._measure(number)

    def _step(self, number: int) -> None:
        self._measure(number)
        self.place.step(number)

    def _measure(self, number: int) -> None:
        """From here on time and all that meters count is this evaluation's."""
        active = self.active[number]
        active.began, active.gauges = time.perf_counter(), self.meters.begin(self.place.process_of(number))

    def _run_of(self, number: int, step: int, new: bool) -> Run:
        def left() -> float:
            return self.clock.left(self.active[number].age if number in self.active else 0.0)

        return Run(number, step, self.live.folder(number, new), left, self.clock.speed(self.study.ledger.unit))

    # -- taking in ---------------------------------------------------------------------------------------------------

    def _take_in(self, number: int, answer: Answer) -> None:
        active = self.active[number]
        seconds = answer.seconds if answer.seconds is not None else active.age
        evaluation = answer.evaluation
        match answer.kind:
            case Kind.INTERRUPTED:
                raise KeyboardInterrupt
            case Kind.DIED:
                self._died(number, active, answer.reason, seconds)
            case Kind.ENDED:
                self._finish(number, self._ended(number), seconds)
            case _ if evaluation is None or evaluation.outcome.value is None:
                self._finish(number, evaluation or Evaluation(Outcome(Status.FAILED)), seconds)
            case Kind.RETURNED:
                self._require_iterative()
                self._finish(number, evaluation, seconds)
            case _:
                self._stepped(number, active, evaluation, seconds)

    def _require_iterative(self) -> None:
        if hasattr(self.study.policy, "decide"):
            raise InvalidArgument(
                f"policy {self.study.policy.name!r} is for learners that train step by step: the objective must yield "
                "a value after every step; for one that returns a value use policy='auto'"
            )

    def _ended(self, number: int) -> Evaluation:
        if len(self.study.trial(number).curve):
            return Evaluation(Outcome(Status.COMPLETE))
        return Evaluation(Outcome(Status.FAILED, error="the objective returned an iterator that yielded nothing"))

    def _died(self, number: int, active: _Active, reason: str, seconds: float) -> None:
        if active.doom is not None:
            self._condemn(number, active, seconds)
        else:
            self._finish(number, Evaluation(Outcome(Status.FAILED, error=f"the objective {reason}")), seconds)

    def _stepped(self, number: int, active: _Active, step: Evaluation, seconds: float) -> None:
        spent, cost = self._spent(active, seconds, step.cost)
        assert step.outcome.value is not None
        rest = dict(step.attributes)
        trained = rest.pop("train_value", None)
        if trained is not None:
            trained = read_value(trained, self.study.maximize).value
        report = Report(step.outcome.value, cost, trained, active.checkpoints.written(), rest)
        decision = self.study.course.record_step(number, report, spent, self.clock.overhead())
        self._require_cost(cost, number)
        active.before += seconds
        if decision is Decision.CONTINUE and not self._interrupting:
            self.shown.stepped()
            self._step(number)
        elif decision is Decision.CONTINUE:
            self._finish(number, Evaluation(Outcome(Status.INTERRUPTED, error="interrupted")), 0.0)
        elif decision is Decision.PAUSE:
            self.seconds[number] = self.active.pop(number).before
            self.live.pause(number, active.checkpoints)
            self._told(number)
        else:
            del self.active[number]
            self.place.close(number)
            self._told(number)

    @property
    def _interrupting(self) -> bool:
        return self.interrupts.interrupted > 0 or self.interrupts.terminated

    def _finish(self, number: int, evaluation: Evaluation, seconds: float, is_harmed: bool = False) -> None:
        """An evaluation has ended; the process of one that failed may be harmed, and is not used again."""
        spent, cost = self._spent(self.active.pop(number), seconds, evaluation.cost)
        is_harmed = is_harmed or evaluation.outcome.status is Status.FAILED
        (self.place.kill if is_harmed else self.place.close)(number)
        outcome = evaluation.outcome
        self.study.course.record(number, outcome, cost, evaluation.attributes, spent, self.clock.overhead())
        if outcome.status in (Status.COMPLETE, Status.FAILED):
            self._require_cost(cost, number)
        self._told(number)

    def _told(self, number: int) -> None:
        trial = self.study.trial(number)
        if trial.status in (Status.FAILED, Status.KILLED):
            logger.warning("trial %d %s: %s", number, trial.status.value, (trial.error or "").splitlines()[-1])
        self.shown.told(trial)
        for callback in self.callbacks:
            callback(self.study, trial)

    # -- what it cost ------------------------------------------------------------------------------------------------

    def _spent(
        self, active: _Active, seconds: float, reported: float | None
    ) -> tuple[dict[str, float], float | None]:  # fmt: skip
        """What an action of so many seconds spent, and its cost in the budget's unit: as the objective reported it, or
        as measured. Wall-clock seconds are those that passed, however many evaluations they served."""
        ledger, waited = self.study.ledger, self.clock.waited()
        own = waited if not self.place.can_kill else seconds
        spent = {**ledger.budget.priced(own), "compute_seconds": own, **active.gauges.spent()}
        cost = spent.get(ledger.unit) if reported is None else reported
        if "seconds" not in self.meters.units:
            spent["seconds"] = waited
        return (spent if reported is None else {**spent, ledger.unit: reported}), cost

    def _require_cost(self, cost: float | None, number: int) -> None:
        study, unit = self.study, self.study.ledger.unit
        if cost is not None or study.trial(number).cost is not None or _ever_charged(study):
            return
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective{' or set usd_per_hour' if unit == 'usd' else ''}"
            f"{f' ({self.meters.missing})' if self.meters.missing else ''}"
        )

    # -- keeping limits ----------------------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """Seconds until something may have to be ended; None: for ever."""
        if not self.place.can_kill:
            return None
        now, undoomed = time.perf_counter(), [a for a in self.active.values() if a.doom is None]
        until = [active.doom.kill_at - now for active in self.active.values() if active.doom is not None]
        until += [self._limits.seconds - active.before - active.age for active in undoomed]
        if undoomed:
            until.append(self.clock.seconds_left([active.age for active in self.active.values()]))
            if self._limits.bytes < math.inf:
                until.append(MEMORY_POLL)
            if self.meters.units:
                until.append(METER_POLL)
        soonest = min(until, default=math.inf)
        return None if math.isinf(soonest) else max(soonest, 0.0)

    def _enforce(self) -> None:
        """End what is past a limit, and what the end of the study or a signal leaves no time for."""
        if not self.place.can_kill or not self.active:
            return
        self._doom_all()
        for number, active in list(self.active.items()):
            if active.doom is None and active.before + active.age >= self._limits.seconds:
                self._doom(number, GRACE, Status.KILLED, self._limits.seconds_text)
            if active.doom is None and self._holds_too_much(number):
                self._doom(number, 0.0, Status.KILLED, self._limits.bytes_text)
            if active.doom is not None and time.perf_counter() >= active.doom.kill_at:
                self._condemn(number, active, active.age)

    def _holds_too_much(self, number: int) -> bool:
        limit = self._limits.bytes
        return limit < math.inf and resident_bytes(self.place.process_of(number)) > limit

    def _doom_all(self) -> None:
        ended = self.study.ended
        if self.interrupts.interrupted > 1:
            everyone = (0.0, Status.INTERRUPTED, "interrupted")
        elif self.interrupts.terminated:
            everyone = (PREEMPTED_GRACE, Status.INTERRUPTED, "interrupted by SIGTERM")
        elif isinstance(ended, TargetReached):
            everyone = (GRACE, Status.INTERRUPTED, str(ended))
        elif self.clock.seconds_left([a.age for a in self.active.values()]) <= 0.0 or self._is_spent:
            everyone = (GRACE, Status.KILLED, OUT_OF_BUDGET)
        else:
            return
        for number, active in self.active.items():
            if active.doom is None or everyone[0] == 0.0:
                self._doom(number, *everyone)

    @property
    def _is_spent(self) -> bool:
        """Whether a limit is reached that goes on to be spent, by what meters show now too: not that of the number of
        evaluations."""
        ledger = self.study.ledger
        if not self.meters.units:
            return ledger.reached not in (None, "evaluations")
        shown = [active.gauges.spent() for active in self.active.values()]
        now = ledger.charged({"evaluation": {unit: sum(s[unit] for s in shown) for unit in self.meters.units}})
        return now.reached not in (None, "evaluations")

    def _doom(self, number: int, grace: float, status: Status, reason: str) -> None:
        """Tell an evaluation to end. A training step is only waited for where it has time: it may end by itself."""
        self.active[number].doom = _Doom(time.perf_counter() + grace, status, reason)
        is_training = len(self.study.trial(number).curve) > 0
        if grace < PREEMPTED_GRACE or not is_training:
            self.place.tell_to_end(number)

    def _condemn(self, number: int, active: _Active, seconds: float) -> None:
        """Record the end of an evaluation that was doomed; an iterative learner out of budget could go on with more."""
        assert active.doom is not None
        status, reason = active.doom.status, active.doom.reason
        trial = self.study.trial(number)
        goes_on = reason == OUT_OF_BUDGET and len(trial.curve) > 0
        outcome = Outcome(Status.PAUSED if goes_on else status, error=reason)
        self._finish(number, Evaluation(outcome), seconds, is_harmed=True)
        if goes_on:
            self.study.course.drop(number, trial.saved_step)

    def _abandon(self) -> None:
        """Something went wrong: what is running is ended and interrupted. If that cannot be written, the file shows it
        as running, which comes to the same."""
        self.clock.work()
        for number in list(self.active):
            active = self.active.pop(number)
            spent, cost = self._spent(active, active.age, None)
            self.place.kill(number)
            if not self.study.course.is_running(number):
                continue
            with suppress(StorageError):
                outcome = Outcome(Status.INTERRUPTED, error="interrupted")
                self.study.course.record(number, outcome, cost, {}, spent, self.clock.overhead())


def _ever_charged(study: Study) -> bool:
    """Whether one of the last trials said what it cost. A failure cannot, so a few silent ones prove nothing."""
    last: Sequence[Any] = study.course.history.trials[-SILENT:]
    if all(trial.status is Status.FAILED for trial in last) and len(last) < SILENT:
        return True
    return any(trial.cost is not None for trial in last)
