"""The run: ask, evaluate, tell, until the study ends. Serial, in this process.

All wall-clock time between the first line and the last goes to the ledger: what was spent inside the objective is
evaluation (or failed, or interrupted), all the rest is the optimiser's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farthing.current import inside
from farthing.errors import InvalidArgument, InvalidBudget, StudyEnded
from farthing.reading import read_value
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Clock
from farthing.runner.evaluate import Evaluation, evaluate, failure, read
from farthing.runner.interrupts import Interrupts
from farthing.runner.live import LiveRuns, Training
from farthing.runner.progress import Progress, progress_for
from farthing.study import Callback, Objective, Study
from farthing.trial import Decision, Outcome, Proposal, Report, Status, Trial

logger = logging.getLogger("farthing")

SILENT = 20  # trials in a row that may end without a cost in a unit that only the objective can tell


def run(
    study: Study, objective: Objective, *, progress: bool | None, callbacks: Sequence[Callback], keep_paused: int
) -> None:
    """Run until the budget is spent, the target reached, the space exhausted, `study.stop()` or Ctrl-C."""
    if not callable(objective):
        raise InvalidArgument(f"objective: expected a function of a config, got {type(objective).__name__}")
    if isinstance(keep_paused, bool) or not isinstance(keep_paused, int) or keep_paused < 0:
        raise InvalidArgument(f"keep_paused: expected a whole number of at least 0, got {keep_paused!r}")
    clock = Clock(study)
    study.begin_run()
    with progress_for(study, progress) as shown, Interrupts() as interrupts:
        with LiveRuns(study, keep_paused, clock.left) as live:
            trials = _Trials(study, objective, clock, shown, interrupts, live)
            try:
                while not study.stop_requested:
                    trial = trials.next()
                    for callback in callbacks:
                        callback(study, trial)
                    interrupts.raise_if_any()
            except StudyEnded as end:
                logger.info("ended: %s", end)
            except KeyboardInterrupt:
                where = f"; Study.resume({study.storage!r}) goes on" if study.storage else ""
                message = f"interrupted after {study.count()} trials{where}"
                logger.warning(message)
                shown.ended(message)
        study.course.charge(clock.overhead())


@dataclass(frozen=True, eq=False)
class _Trials:
    """One trial after another, metered."""

    study: Study
    objective: Objective
    clock: Clock
    shown: Progress
    interrupts: Interrupts
    live: LiveRuns

    def next(self) -> Trial:
        """Ask, evaluate, tell; for an iterative learner until it ends or is paused."""
        known = self.study.count()
        (proposal,) = self.study.course.propose(1, self.clock.overhead)
        self.shown.asked(proposal)
        self.clock.begin()
        try:
            begun = self.live.resume(proposal.trial) or self._begun(proposal, proposal.trial >= known)
            trial = self._recorded(proposal.trial, begun) if isinstance(begun, Evaluation) else self._trained(begun)
        except BaseException:
            if self.study.course.is_running(proposal.trial):
                self._recorded(proposal.trial, Evaluation(Outcome(Status.INTERRUPTED, error="interrupted")))
            raise
        if trial.status is Status.FAILED:
            logger.warning("trial %d failed: %s", trial.number, (trial.error or "").splitlines()[-1])
        self.shown.told(trial)
        return trial

    def _begun(self, proposal: Proposal, new: bool) -> Evaluation | Training:
        """What the objective makes of a configuration: an outcome, or a training that can be stepped through."""
        run = self.live.run_of(proposal.trial, proposal.start_step, new)
        checkpoints = Checkpoints(run.folder)
        with self.interrupts.at_once(), inside(run):
            called = evaluate(self.study, self.objective, proposal.config)
        if isinstance(called, Evaluation) and called.outcome.value is not None and hasattr(self.study.policy, "decide"):
            raise InvalidArgument(
                f"policy {self.study.policy.name!r} is for learners that train step by step: the objective must yield "
                "a value after every step; for one that returns a value use policy='auto'"
            )
        return called if isinstance(called, Evaluation) else Training(called, run, checkpoints)

    def _trained(self, training: Training) -> Trial:
        """Step after step, until the learner ends or the study says so; if anything goes wrong it is closed."""
        try:
            return self._stepped(training)
        except BaseException:
            training.close()
            raise

    def _stepped(self, training: Training) -> Trial:
        number = training.run.trial
        while True:
            try:
                with self.interrupts.at_once(), inside(training.run):
                    returned = next(training.steps)
            except StopIteration:
                training.close()
                return self._recorded(number, self._ended(number))
            except (Exception, SystemExit) as error:
                step = failure(error)
            else:
                step = read(self.study, returned)
            if step.outcome.value is None:
                training.close()
                return self._recorded(number, step)
            decision = self._reported(number, step, training.checkpoints.written())
            if decision is Decision.PAUSE:
                self.live.pause(training)
            elif decision is Decision.STOP:
                training.close()
            if decision is not Decision.CONTINUE:
                return self.study.trial(number)
            self.shown.stepped()
            self.clock.begin()

    def _ended(self, number: int) -> Evaluation:
        if len(self.study.trial(number).curve):
            return Evaluation(Outcome(Status.COMPLETE))
        return Evaluation(Outcome(Status.FAILED, error="the objective returned an iterator that yielded nothing"))

    def _reported(self, number: int, step: Evaluation, saved: bool) -> Decision:
        spent, unit = self.clock.spent(step.cost), self.study.ledger.unit
        assert step.outcome.value is not None
        rest = dict(step.attributes)
        trained = rest.pop("train_value", None)
        if trained is not None:
            trained = read_value(trained, self.study.maximize).value
        report = Report(step.outcome.value, spent.get(unit), trained, saved, rest)
        decision = self.study.course.record_step(number, report, spent, self.clock.due())
        self._require_cost(spent, number)
        return decision

    def _recorded(self, number: int, evaluation: Evaluation) -> Trial:
        spent, unit = self.clock.spent(evaluation.cost), self.study.ledger.unit
        self.study.course.record(
            number, evaluation.outcome, spent.get(unit), evaluation.attributes, spent, self.clock.due()
        )
        if evaluation.outcome.status is not Status.INTERRUPTED:
            self._require_cost(spent, number)
        return self.study.trial(number)

    def _require_cost(self, spent: Mapping[str, float], number: int) -> None:
        unit = self.study.ledger.unit
        if unit in spent or self.study.trial(number).cost is not None or _ever_charged(self.study):
            return
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective{' or set usd_per_hour' if unit == 'usd' else ''}"
        )


def _ever_charged(study: Study) -> bool:
    """Whether one of the last trials said what it cost. A failure cannot, so a few silent ones prove nothing."""
    last = study.trials[-SILENT:]
    if all(trial.status is Status.FAILED for trial in last) and len(last) < SILENT:
        return True
    return any(trial.cost is not None for trial in last)
