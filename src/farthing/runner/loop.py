"""The run: ask, evaluate, tell, until the study ends. Serial, in this process.

All wall-clock time between the first line and the last goes to the ledger: what was spent inside the objective is
evaluation (or failed, or interrupted), all the rest is the optimiser's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.budget import Budget, Charges
from farthing.current import Run, inside
from farthing.errors import InvalidArgument, InvalidBudget, StudyEnded
from farthing.reading import read_value
from farthing.runner.evaluate import Evaluation, evaluate, failure, read
from farthing.runner.interrupts import Interrupts
from farthing.runner.live import LiveRuns, close, stamp
from farthing.runner.meters import Stopwatch
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
    watch = Stopwatch()
    study.begin_run()
    with progress_for(study, progress) as shown, Interrupts() as interrupts:
        with LiveRuns(study, keep_paused) as live:
            trials = _Trials(study, objective, watch, shown, interrupts, live)
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
        study.charge(_overhead(study.ledger.budget, watch))


@dataclass(frozen=True, eq=False)
class _Trials:
    """One trial after another, metered."""

    study: Study
    objective: Objective
    watch: Stopwatch
    shown: Progress
    interrupts: Interrupts
    live: LiveRuns

    def next(self) -> Trial:
        """Ask, evaluate, tell; for an iterative learner until it ends or is paused."""
        (proposal,) = self.study.propose(1, self._overhead)
        self.shown.asked(proposal)
        overhead = self._overhead()
        run = self.live.run_of(proposal.trial, proposal.start_step)
        try:
            started = self.live.resume(proposal.trial) or self._called(proposal, run)
            if isinstance(started, Evaluation):
                trial = self._recorded(proposal, started, overhead)
            else:
                trial = self._trained(proposal, run, started, overhead)
        except BaseException:
            if self.study.is_running(proposal.trial):
                self._recorded(proposal, Evaluation(Outcome(Status.INTERRUPTED, error="interrupted")), overhead)
            raise
        if trial.status is Status.FAILED:
            logger.warning("trial %d failed: %s", trial.number, (trial.error or "").splitlines()[-1])
        self.shown.told(trial)
        return trial

    def _called(self, proposal: Proposal, run: Run) -> Evaluation | Iterator[Any]:
        with self.interrupts.at_once(), inside(run):
            return evaluate(self.study, self.objective, proposal.config)

    def _trained(self, proposal: Proposal, run: Run, steps: Iterator[Any], overhead: Charges) -> Trial:
        """Step after step, until the learner ends or the study says so."""
        number, seen = proposal.trial, stamp(run.folder)
        while True:
            try:
                with self.interrupts.at_once(), inside(run):
                    returned = next(steps)
            except StopIteration:
                return self._recorded(proposal, self._ended(number), overhead)
            except (Exception, SystemExit) as error:
                return self._recorded(proposal, failure(error), overhead)
            step = read(self.study, returned)
            if step.outcome.value is None:
                close(steps)
                return self._recorded(proposal, step, overhead)
            before, seen = seen, stamp(run.folder)
            decision = self._reported(proposal, step, overhead, seen != before)
            if decision is Decision.PAUSE:
                self.live.pause(number, steps)
            elif decision is Decision.STOP:
                close(steps)
            if decision is not Decision.CONTINUE:
                return self.study.trial(number)
            overhead = self._overhead()

    def _ended(self, number: int) -> Evaluation:
        if len(self.study.trial(number).curve):
            return Evaluation(Outcome(Status.COMPLETE))
        return Evaluation(Outcome(Status.FAILED, error="the objective returned an iterator that yielded nothing"))

    def _reported(self, proposal: Proposal, step: Evaluation, overhead: Charges, saved: bool) -> Decision:
        spent, unit = self._spent(step), self.study.ledger.unit
        assert step.outcome.value is not None
        rest = dict(step.attributes)
        trained = rest.pop("train_value", None)
        if trained is not None:
            trained = read_value(trained, self.study.maximize).value
        report = Report(step.outcome.value, spent.get(unit), trained, saved, rest)
        decision = self.study.record_step(proposal.trial, report, spent, overhead)
        self._require_cost(spent, proposal.trial)
        return decision

    def _recorded(self, proposal: Proposal, evaluation: Evaluation, overhead: Charges) -> Trial:
        spent, unit = self._spent(evaluation), self.study.ledger.unit
        trial = self.study.record(
            proposal.trial, evaluation.outcome, spent.get(unit), evaluation.attributes, spent, overhead
        )
        if trial.status is not Status.INTERRUPTED:
            self._require_cost(spent, proposal.trial)
        return trial

    def _spent(self, evaluation: Evaluation) -> dict[str, float]:
        """The time since the last lap, and the cost that the objective reported in place of it."""
        budget, seconds = self.study.ledger.budget, self.watch.lap()
        spent = {**budget.priced(seconds), "compute_seconds": seconds}
        return spent if evaluation.cost is None else {**spent, self.study.ledger.unit: evaluation.cost}

    def _require_cost(self, spent: Mapping[str, float], number: int) -> None:
        unit = self.study.ledger.unit
        if unit in spent or self.study.trial(number).cost is not None or _ever_charged(self.study):
            return
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective{' or set usd_per_hour' if unit == 'usd' else ''}"
        )

    def _overhead(self) -> Charges:
        return _overhead(self.study.ledger.budget, self.watch)


def _overhead(budget: Budget, watch: Stopwatch) -> Charges:
    return {"optimiser": budget.priced(watch.lap())}


def _ever_charged(study: Study) -> bool:
    """Whether one of the last trials said what it cost. A failure cannot, so a few silent ones prove nothing."""
    last = study.trials[-SILENT:]
    if all(trial.status is Status.FAILED for trial in last) and len(last) < SILENT:
        return True
    return any(trial.cost is not None for trial in last)
