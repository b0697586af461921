"""The run: ask, evaluate, tell, until the study ends. Serial, in this process.

All wall-clock time between the first line and the last goes to the ledger: what was spent inside the objective is
evaluation (or failed, or interrupted), all the rest is the optimiser's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from farthing.budget import Budget, Charges
from farthing.errors import InvalidArgument, InvalidBudget, StudyEnded
from farthing.runner.evaluate import Evaluation, evaluate
from farthing.runner.interrupts import Interrupts
from farthing.runner.meters import Stopwatch
from farthing.runner.progress import Progress, progress_for
from farthing.study import Callback, Objective, Study
from farthing.trial import Outcome, Proposal, Status, Trial

logger = logging.getLogger("farthing")

SILENT = 20  # trials in a row that may end without a cost in a unit that only the objective can tell


def run(study: Study, objective: Objective, *, progress: bool | None, callbacks: Sequence[Callback]) -> None:
    """Run until the budget is spent, the target reached, the space exhausted, `study.stop()` or Ctrl-C."""
    if not callable(objective):
        raise InvalidArgument(f"objective: expected a function of a config, got {type(objective).__name__}")
    watch = Stopwatch()
    study.begin_run()
    with progress_for(study, progress) as shown, Interrupts() as interrupts:
        try:
            while not study.stop_requested:
                _one_trial(study, objective, watch, shown, callbacks, interrupts)
                interrupts.raise_if_any()
        except StudyEnded as end:
            logger.info("ended: %s", end)
        except KeyboardInterrupt:
            where = f"; Study.resume({study.storage!r}) goes on" if study.storage else ""
            message = f"interrupted after {study.count()} trials{where}"
            logger.warning(message)
            shown.ended(message)
        study.charge(_overhead(study.ledger.budget, watch))


def _one_trial(
    study: Study,
    objective: Objective,
    watch: Stopwatch,
    shown: Progress,
    callbacks: Sequence[Callback],
    interrupts: Interrupts,
) -> None:
    budget = study.ledger.budget
    (proposal,) = study.propose(1, lambda: _overhead(budget, watch))
    shown.asked(proposal)
    overhead = _overhead(budget, watch)
    try:
        with interrupts.at_once():
            evaluation = evaluate(study, objective, proposal.config)
    except BaseException:
        evaluation = Evaluation(Outcome(Status.INTERRUPTED, error="interrupted"))
        _record(study, proposal, evaluation, watch.lap(), overhead)
        raise
    trial = _record(study, proposal, evaluation, watch.lap(), overhead)
    if trial.status is Status.FAILED:
        logger.warning("trial %d failed: %s", trial.number, (trial.error or "").splitlines()[-1])
    shown.told(trial)
    for callback in callbacks:
        callback(study, trial)


def _overhead(budget: Budget, watch: Stopwatch) -> Charges:
    return {"optimiser": budget.priced(watch.lap())}


def _record(study: Study, proposal: Proposal, evaluation: Evaluation, seconds: float, overhead: Charges) -> Trial:
    unit = study.ledger.unit
    spent = {**study.ledger.budget.priced(seconds), "compute_seconds": seconds}
    if evaluation.cost is not None:
        spent[unit] = evaluation.cost
    trial = study.record(proposal.trial, evaluation.outcome, spent.get(unit), evaluation.attributes, spent, overhead)
    if unit not in spent and trial.status is not Status.INTERRUPTED and not _ever_charged(study):
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective{' or set usd_per_hour' if unit == 'usd' else ''}"
        )
    return trial


def _ever_charged(study: Study) -> bool:
    """Whether one of the last trials said what it cost. A failure cannot, so a few silent ones prove nothing."""
    last = study.trials[-SILENT:]
    if all(trial.status is Status.FAILED for trial in last) and len(last) < SILENT:
        return True
    return any(trial.cost is not None for trial in last)
