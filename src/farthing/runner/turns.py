"""The turns of a run: propose, evaluate, record, until the study ends.

An executor (executors.py) runs evaluations in this process or in worker processes. Whenever there is room for one more
it gets the next proposal, which knows of all that is running. In worker processes limits are kept (enforcement.py): an
evaluation that would exceed one is told to end, has a moment to do so, is killed, and what it spent is charged. What
somebody who looks at the study asks for is answered between two evaluations (control.py).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from farthing.checks import read_value
from farthing.errors import StorageError, StudyEnded
from farthing.history import History
from farthing.policies.protocol import require_whole
from farthing.runner.active import Active, Advancing, Doom
from farthing.runner.charging import Charging
from farthing.runner.checkpoint_folders import with_checkpoint_dir
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.control import Control
from farthing.runner.displays import Progress, error_text
from farthing.runner.enforcement import Enforcement
from farthing.runner.executors import Assignment, Executor
from farthing.runner.failing import FirstFailures
from farthing.runner.heartbeat import Heartbeat
from farthing.runner.interrupts import Interrupts
from farthing.runner.kept_checkpoints import KeptCheckpoints
from farthing.runner.limits import TrialLimits
from farthing.runner.messages import Answer, AnswerKind
from farthing.runner.meters import Gauges, Meters
from farthing.runner.options import RunOptions
from farthing.runner.paused import PausedLearners
from farthing.runner.progress import SHOWN_ANYWAY
from farthing.runner.thinker import Thinker, going_on
from farthing.session import Session
from farthing.trial import Decision, EndedBy, Outcome, Proposal, Report, Status, Trial

logger = logging.getLogger("farthing")


@dataclass(eq=False)
class Turns:
    """Evaluations side by side."""

    session: Session
    executor: Executor
    paused: PausedLearners
    clock: Clock
    heartbeat: Heartbeat
    meters: Meters
    progress: Progress
    interrupts: Interrupts
    options: RunOptions
    callbacks: Sequence[Callable[[Trial], Any]]
    failures: FirstFailures
    control: Control
    thinker: Thinker | None = None  # None where asks are made in turn
    active: Advancing = field(default_factory=Advancing)
    held: dict[int, Active] = field(default_factory=dict)  # learners that wait until the study is resumed
    seconds: dict[int, float] = field(default_factory=dict)  # of paused trials, so far
    refused: History | None = None  # for which there was no proposal

    def __post_init__(self) -> None:
        session, clock, meters = self.session, self.clock, self.meters
        self.charging = Charging(session, clock, self.heartbeat, meters, not self.executor.can_kill)
        self.enforcement = Enforcement(
            session, self.executor, clock, meters, self.interrupts, self.options.limits, self.active
        )
        self.kept = KeptCheckpoints(self.session, self.options.keep_checkpoints)

    def take(self) -> None:
        """All of them."""
        try:
            while self._turn():
                pass
        except BaseException:
            self._abandon()
            raise

    def _turn(self) -> bool:
        """Start evaluations, wait, record what came of them; False when there is nothing more to do."""
        self._give_out()
        if self.active:
            self.clock.wait()
        elif self._is_resting:
            self.clock.rest()
            self.progress.rested()
        else:
            return not self.interrupts.any and self._hear(at_once=True)
        with going_on(self.thinker):
            happened = self.executor.wait(self._patience())
        self.clock.work()
        self.interrupts.clear_wakeups()
        for number, answer in happened:
            if number in self.held:  # its process is gone
                self._take_back(number)
            if number in self.active:
                self._take_in(number, answer)
            else:
                self.paused.lose(number)
        for number in self.enforcement.overdue():
            self._condemn(number, self._age(number))
        return True

    def _patience(self) -> float | None:
        """Seconds until something may have to be done, or somebody may have asked for something; None: for ever."""
        seconds = self.enforcement.patience()
        most = min(math.inf if seconds is None else seconds, self.control.patience)
        return None if math.isinf(most) else most

    # -- requests ----------------------------------------------------------------------------------------------------

    def _hear(self, *, at_once: bool = False) -> bool:
        """Answer what somebody who looks at the study asks for; returns whether there was something."""
        some = self.control.look(at_once=at_once)
        if some:
            self.refused = None
            self._widen_limits()
        if self.held and not self._is_resting:
            for number in list(self.held):
                self._go_on(number)
        return some

    @property
    def _is_resting(self) -> bool:
        """Whether somebody has paused the study, which has not ended."""
        return self.session.is_paused and not self.interrupts.any and self.session.ended is None

    def _widen_limits(self) -> None:
        """With more budget, what runs may take longer."""
        for number, active in self.active.items():
            wider = self._limits_of(self.session.history.trials[number].predicted_cost, active.before)
            if wider.seconds > active.limits.seconds:
                active.limits = wider

    def _go_on(self, number: int) -> None:
        """A learner that was held after a step trains the next one."""
        self._take_back(number)
        if self.interrupts.any:
            self._finish(number, Outcome(Status.INTERRUPTED, error="interrupted"), 0.0)
        else:
            self._step(number)

    def _take_back(self, number: int) -> None:
        """Its time passes again."""
        active = self.held.pop(number)
        active.began = self.clock.read()
        self.active.add(number, active)

    # -- giving out --------------------------------------------------------------------------------------------------

    def _give_out(self) -> None:
        """Start evaluations while there is room."""
        while self._may_begin():
            if self.refused is self.session.history or not self._has_room() or self._is_too_late():
                return
            known = self.session.results.count()
            try:
                (proposal,) = self._proposed()
            except StudyEnded:
                self.refused = self.session.history
                return
            self._start(proposal, proposal.trial >= known)
            if self.thinker is not None:
                self.thinker.think()
            self.progress.trial_began(proposal)

    def _may_begin(self) -> bool:
        """Whether somebody may want one more."""
        self._hear()
        is_held_up = self.session.stop_requested or self.session.is_paused or self.interrupts.any
        return not is_held_up and len(self.active) < self.options.most

    def _proposed(self) -> list[Proposal]:
        seconds = self._seconds_to_think()
        prepared = () if self.thinker is None else self.thinker.prepared(seconds)
        return self.session.propose(1, self.clock.overhead, seconds, prepared=prepared)

    def _has_room(self) -> bool:
        """Only while nothing is running can we afford to wait for a worker."""
        if self.executor.has_room(0.0) or self.paused.can_give_place:
            return True
        if self.active:
            return False
        with self.clock.starting():
            return self.executor.has_room(self.enforcement.seconds_left)

    def _seconds_to_think(self) -> float:
        return self.clock.seconds_to_think(self.enforcement.ages)

    def _is_too_late(self) -> bool:
        """Whether the time that passed since the last event has used up the budget: what began now would be killed."""
        if self.enforcement.seconds_left > 0.0:
            return False
        if not self.active:
            self.session.charge(self.clock.overhead())
        return self.session.ended is None

    def _start(self, proposal: Proposal, new: bool) -> None:
        number = proposal.trial
        alive = self.paused.resume(number)
        folder = self.paused.folder(number, new)
        checkpoints = Checkpoints(folder) if alive is None else alive
        before = self.seconds.pop(number, 0.0)
        limits = self._limits_of(proposal.predicted_cost, before)
        self.active.add(number, Active(checkpoints, self.clock.read(), before, limits=limits))
        if alive is not None:
            self._step(number)
        else:
            self.paused.give_place()
            self.executor.reserve(number)
            self._measure(number)
            self.executor.begin(self._assignment(proposal, folder), proposal.config)

    def _limits_of(self, predicted: float | None, before: float) -> TrialLimits:
        """Where time uses up the budget, a multiple of the predicted cost is a limit too."""
        speed = self.clock.speed(self.session.ledger.unit)
        if predicted is None or speed == 0.0:
            return self.enforcement.limits
        return self.enforcement.limits.with_runaway_limit(before, predicted / speed, self.clock.left(0.0) / speed)

    def _age(self, number: int) -> float:
        """Seconds of an evaluation that were not charged yet."""
        return self.active[number].age(self.clock.read())

    def _step(self, number: int) -> None:
        self._measure(number)
        self.executor.step(number)

    def _measure(self, number: int) -> None:
        """From here on time and all that meters count is this evaluation's."""
        self.kept.before_step(number)
        self.active.begin(number, self.clock.read())
        gauges = self.active[number].gauges = self.meters.begin(self.executor.process_of(number))
        self.heartbeat.advances(number, gauges)

    def _assignment(self, proposal: Proposal, folder: Path) -> Assignment:
        number = proposal.trial

        def left() -> float:
            return self.clock.left(self._age(number) if number in self.active else 0.0)

        def reported(answer: Answer) -> Decision:
            return self._reported(number, answer)

        speed = self.clock.speed(self.session.ledger.unit)
        return Assignment(number, proposal.start_step, folder, left, speed, reported)

    # -- taking in ---------------------------------------------------------------------------------------------------

    def _reported(self, number: int, answer: Answer) -> Decision:
        """Take in a step from inside an objective that runs in this process, and so cannot be paused."""
        self.clock.work()
        self._take_in(number, answer, can_pause=False)
        if number not in self.active:
            return Decision.STOP
        self.clock.wait()
        return Decision.CONTINUE

    def _take_in(self, number: int, answer: Answer, can_pause: bool = True) -> None:
        active, age = self.active[number], self._age(number)
        seconds = age if answer.seconds is None else min(max(answer.seconds, 0.0), age)  # its clock may be altered
        verdict = self.enforcement.verdict_on(number, answer, seconds)
        if verdict is not None:
            if active.doom is None:
                self.active.doom(number, Doom(self.clock.read(), verdict))
            self._condemn(number, age)
            return
        if answer.told_by and active.doom is None and self.interrupts.is_preempted:
            self._finish(number, Outcome(Status.INTERRUPTED, error=self.interrupts.how_terminated), seconds)
            return
        outcome = answer.outcome
        match answer.kind:
            case AnswerKind.INTERRUPTED:
                raise KeyboardInterrupt
            case AnswerKind.DIED:
                self._died(number, answer.reason, seconds)
            case AnswerKind.LOST:
                self._lost(number, answer.reason, seconds)
            case AnswerKind.TERMINATED:
                self._died(number, f"was told to end by {answer.reason}, and not by the run", seconds)
            case AnswerKind.ENDED:
                self._finish(number, self._ended(number), seconds)
            case _ if outcome is None or outcome.value is None:
                self._finish(number, outcome or Outcome(Status.FAILED), seconds)
            case AnswerKind.RETURNED:
                require_whole(self.session.policy)
                self._finish(number, outcome, seconds)
            case _:
                self._stepped(number, active, outcome, seconds, can_pause)

    def _ended(self, number: int) -> Outcome:
        if len(self.session.history.trials[number].curve):
            return Outcome(Status.COMPLETE)
        return Outcome(Status.FAILED, error="the objective returned an iterator that yielded nothing")

    def _died(self, number: int, reason: str, seconds: float) -> None:
        if self.active[number].doom is not None:
            self._condemn(number, seconds)
        else:
            self._finish(number, Outcome(Status.FAILED, error=f"the objective {reason}"), seconds)

    def _lost(self, number: int, reason: str, seconds: float) -> None:
        """Where it ran is gone: it runs again, from its checkpoint if it wrote one."""
        if self.active[number].doom is not None:
            self._condemn(number, seconds)
        else:
            self._finish(number, Outcome(Status.INTERRUPTED, error=f"interrupted: {reason}"), seconds)

    def _stepped(self, number: int, active: Active, step: Outcome, seconds: float, can_pause: bool) -> None:
        spent, cost = self.charging.spent(number, active.gauges.spent(), seconds, step.cost)
        assert step.value is not None
        rest = dict(step.attributes)
        trained = rest.pop("train_value", None)
        if trained is not None:
            trained = read_value(trained).value
        report = Report(step.value, cost, trained, active.checkpoints.written(), rest)
        decision = self.session.step(number, report, spent, self.clock.overhead(), self._seconds_to_think(), can_pause)
        self.charging.require_cost(cost, number)
        active.before, active.gauges = active.before + seconds, Gauges()  # what they show is charged
        if decision is Decision.CONTINUE and not self.interrupts.any:
            self.progress.stepped()
            if can_pause and self._is_resting:
                self.held[number] = self.active.pop(number)
            else:
                self._step(number)
        elif decision is Decision.CONTINUE:
            self._finish(number, Outcome(Status.INTERRUPTED, error="interrupted"), 0.0)
        elif decision is Decision.PAUSE:
            self.seconds[number] = self.active.pop(number).before
            self.paused.pause(number, active.checkpoints)
            self._announce(number)
        else:
            self.active.pop(number)
            self.paused.close([number])
            self._announce(number)

    def _finish(self, number: int, outcome: Outcome, seconds: float) -> None:
        """An evaluation has ended; the process of one that was told to end may be harmed, and is not used again."""
        active = self.active.pop(number)
        shown = active.gauges.spent()  # while its process is there
        if active.doom is not None:
            self.executor.kill(number)
        else:
            self.paused.close([number])
        if self.thinker is not None:
            self.thinker.hear(active.before + seconds)
        spent, cost = self.charging.spent(number, shown, seconds, outcome.cost)
        self.session.end(number, replace(outcome, cost=cost), spent, self.clock.overhead())
        if outcome.status in (Status.COMPLETE, Status.FAILED):
            self.charging.require_cost(cost, number)
        self._announce(number)

    def _announce(self, number: int) -> None:
        """That a trial has ended, or is paused."""
        (trial,) = with_checkpoint_dir(self.session, self.session.results.trial(number))
        if trial.status in (Status.FAILED, Status.KILLED):
            logger.warning("trial %d %s", number, error_text(trial), extra=SHOWN_ANYWAY)
        self.progress.trial_ended(trial)
        for callback in self.callbacks:
            callback(trial)
        self.kept.ended(number)
        self.failures.hear(trial, self.session.results.best_value is not None)

    # -- ends that are not its own -----------------------------------------------------------------------------------

    def _condemn(self, number: int, seconds: float) -> None:
        """Record the end of an evaluation that was doomed; an iterative learner out of budget could go on with more."""
        doom = self.active[number].doom
        assert doom is not None
        verdict, trial = doom.verdict, self.session.history.trials[number]
        goes_on = verdict.ended_by is EndedBy.BUDGET and len(trial.curve) > 0
        status = Status.PAUSED if goes_on else verdict.status
        self._finish(number, Outcome(status, error=verdict.error, ended_by=verdict.ended_by), seconds)
        if goes_on:
            self.session.drop(number, trial.saved_step)

    def _abandon(self) -> None:
        """Something went wrong: what is running is ended and interrupted. If that cannot be written, the file shows it
        as running, which comes to the same."""
        self.clock.work()
        for number in list(self.held):
            self._take_back(number)
        for number in list(self.active):
            age, active = self._age(number), self.active.pop(number)
            shown = active.gauges.spent()
            self.executor.kill(number)
            spent, cost = self.charging.spent(number, shown, age, None)
            if not self.session.is_running(number):
                continue
            with suppress(StorageError):
                outcome = Outcome(Status.INTERRUPTED, cost=cost, error="interrupted")
                self.session.end(number, outcome, spent, self.clock.overhead())
