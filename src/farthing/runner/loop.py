"""The run: propose, evaluate, record, until the study ends.

Evaluations happen in a place (places.py): in this process, or in worker processes. Whenever one of them is free it gets
the next proposal, which knows of all that is running. All wall-clock time between the first line and the last goes to
the ledger (clock.py). In worker processes limits are kept (enforcement.py): an evaluation that would go past one is
told, given a moment and killed, and what it spent is charged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from farthing.checks import read_value
from farthing.errors import InvalidArgument, InvalidBudget, StorageError, StudyEnded
from farthing.history import History
from farthing.record.lock import exclusive
from farthing.run_context import Run
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.enforcement import Active, Enforcement
from farthing.runner.evaluate import Evaluation
from farthing.runner.executors import Place
from farthing.runner.interrupts import SIGTERM_EXIT_CODE, Interrupts, Terminated
from farthing.runner.limits import TrialLimits
from farthing.runner.messages import Answer, AnswerKind
from farthing.runner.meters import Gauges, Meters, meters_for
from farthing.runner.options import Options as Options
from farthing.runner.paused import LiveRuns
from farthing.runner.progress import Progress, progress_for
from farthing.study import Callback, Objective, Study
from farthing.trial import OUT_OF_BUDGET, Decision, Outcome, Proposal, Report, Status

logger = logging.getLogger("farthing")

SILENT = 20  # trials in a row that may end without a cost in a unit that only the objective can tell
MOMENT = 0.1  # seconds within which a signal to all processes arrives


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
                options.place(study, objective, interrupts, clock.seconds_left([])) as place,
                LiveRuns(study, place, clock, options.paused_limit) as live,
            ):
                _Loop(study, place, live, clock, meters, shown, interrupts, options, callbacks).run()
        except (KeyboardInterrupt, Terminated):
            interrupts.interrupted += 1  # an objective may raise it too
        study.interrupted = interrupts.any
        if study.interrupted:
            where = f"; Study.resume({study.storage!r}) goes on" if study.storage else ""
            message = f"interrupted after {study.count()} trials{where}"
            logger.warning(message)
            shown.ended(message)
        study.course.charge(clock.overhead())
    if interrupts.terminated:
        raise SystemExit(SIGTERM_EXIT_CODE)


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
    active: dict[int, Active] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)  # of paused trials, so far
    refused: History | None = None  # for which there was no proposal

    def __post_init__(self) -> None:
        self.enforcement = Enforcement(
            self.study, self.place, self.clock, self.meters, self.interrupts, self.options.limits, self.active
        )

    def run(self) -> None:
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
        happened = self.place.wait(self.enforcement.patience())
        self.clock.work()
        self.interrupts.clear_wakeups()
        for number, answer in happened:
            if number in self.active:
                self._take_in(number, answer)
            else:
                self.live.lose(number)
        for number in self.enforcement.overdue():
            self._condemn(number, self.active[number].age)
        return True

    # -- giving out --------------------------------------------------------------------------------------------------

    def _give_out(self) -> None:
        """As long as somebody is free. Only while nothing is running can one afford to wait for that."""
        while len(self.active) < self.options.workers and not (self.study.stop_requested or self.interrupts.any):
            patience = 0.0 if self.active else self.enforcement.seconds_left
            if self.refused is self.study.course.history or not self.place.has_room(patience) or self._is_too_late():
                return
            known = self.study.count()
            try:
                (proposal,) = self.study.course.propose(1, self.clock.overhead)
            except StudyEnded as end:
                self.refused = self.study.course.history
                if not self.active:
                    logger.info("ended: %s", end)
                return
            self.shown.asked(proposal)
            self._start(proposal, proposal.trial >= known)

    def _is_too_late(self) -> bool:
        """Whether the time that passed since the last event has used up the budget: what began now would be killed."""
        if self.enforcement.seconds_left > 0.0:
            return False
        if not self.active:
            self.study.course.charge(self.clock.overhead())
        return self.study.ended is None

    def _start(self, proposal: Proposal, new: bool) -> None:
        number = proposal.trial
        alive = self.live.resume(number)
        run = self._run_of(number, proposal.start_step, new)
        checkpoints = Checkpoints(run.folder) if alive is None else alive
        before = self.seconds.pop(number, 0.0)
        limits = self._limits_of(proposal, before)
        self.active[number] = Active(run, checkpoints, time.perf_counter(), before, limits=limits)
        if alive is not None:
            self._step(number)
        else:
            self.place.reserve(number)
            self._measure(number)
            self.place.begin(run, proposal.config)

    def _limits_of(self, proposal: Proposal, before: float) -> TrialLimits:
        """Where cost passes by with time, what was predicted of it is a limit too."""
        speed, predicted = self.clock.speed(self.study.ledger.unit), proposal.predicted_cost
        if predicted is None or speed == 0.0:
            return self.enforcement.limits
        return self.enforcement.limits.with_runaway_limit(before, predicted / speed, self.clock.left(0.0) / speed)

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
            case AnswerKind.INTERRUPTED:
                raise KeyboardInterrupt
            case AnswerKind.DIED:
                self._died(number, answer.reason, seconds)
            case AnswerKind.TERMINATED:
                self._told_to_end(number, seconds)
            case AnswerKind.ENDED:
                self._finish(number, self._ended(number), seconds)
            case _ if evaluation is None or evaluation.outcome.value is None:
                self._finish(number, evaluation or Evaluation(Outcome(Status.FAILED)), seconds)
            case AnswerKind.RETURNED:
                self._require_iterative()
                self._finish(number, evaluation, seconds)
            case _:
                self._stepped(number, active, evaluation, seconds)

    def _require_iterative(self) -> None:
        policy = self.study.policy
        if hasattr(policy, "decide") and getattr(policy, "needs_steps", True):
            raise InvalidArgument(
                f"policy {policy.name!r} is for learners that train step by step: the objective must yield "
                "a value after every step; for one that returns a value use policy='auto'"
            )

    def _ended(self, number: int) -> Evaluation:
        if len(self.study.trial(number).curve):
            return Evaluation(Outcome(Status.COMPLETE))
        return Evaluation(Outcome(Status.FAILED, error="the objective returned an iterator that yielded nothing"))

    def _died(self, number: int, reason: str, seconds: float) -> None:
        if self.active[number].doom is not None:
            self._condemn(number, seconds)
        else:
            self._finish(number, Evaluation(Outcome(Status.FAILED, error=f"the objective {reason}")), seconds)

    def _told_to_end(self, number: int, seconds: float) -> None:
        """If not by us, then perhaps by the one who tells us too: schedulers of clusters signal all processes of a
        job, in any order."""
        if self.active[number].doom is None and not self.interrupts.terminated:
            time.sleep(MOMENT)
        if self.active[number].doom is None and self.interrupts.terminated:
            self._finish(number, Evaluation(Outcome(Status.INTERRUPTED, error="interrupted by SIGTERM")), seconds)
        else:
            self._died(number, "was told to end by SIGTERM, and not by the run", seconds)

    def _stepped(self, number: int, active: Active, step: Evaluation, seconds: float) -> None:
        spent, cost = self._spent(active, seconds, step.cost)
        assert step.outcome.value is not None
        rest = dict(step.attributes)
        trained = rest.pop("train_value", None)
        if trained is not None:
            trained = read_value(trained, self.study.maximize).value
        report = Report(step.outcome.value, cost, trained, active.checkpoints.written(), rest)
        decision = self.study.course.record_step(number, report, spent, self.clock.overhead())
        self._require_cost(cost, number)
        active.before, active.gauges = active.before + seconds, Gauges()  # what they show is charged
        if decision is Decision.CONTINUE and not self.interrupts.any:
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
            self.live.close([number])
            self._told(number)

    def _finish(self, number: int, evaluation: Evaluation, seconds: float) -> None:
        """An evaluation has ended; the process of one that failed or was told to end may be harmed, and is not used
        again."""
        active, outcome = self.active.pop(number), evaluation.outcome
        spent, cost = self._spent(active, seconds, evaluation.cost)
        if outcome.status is Status.FAILED or active.doom is not None:
            self.place.kill(number)
        else:
            self.live.close([number])
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
        self, active: Active, seconds: float, reported: float | None
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

    # -- ends that are not its own -----------------------------------------------------------------------------------

    def _condemn(self, number: int, seconds: float) -> None:
        """Record the end of an evaluation that was doomed; an iterative learner out of budget could go on with more."""
        doom = self.active[number].doom
        assert doom is not None
        status, reason = doom.status, doom.reason
        trial = self.study.trial(number)
        goes_on = reason == OUT_OF_BUDGET and len(trial.curve) > 0
        outcome = Outcome(Status.PAUSED if goes_on else status, error=reason)
        self._finish(number, Evaluation(outcome), seconds)
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
