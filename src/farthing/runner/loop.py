"""The run: ask, evaluate, tell, until the study ends. Serial, in this process.

All wall-clock time between the first line and the last goes to the ledger: what was spent inside the objective is
evaluation (or failed, or interrupted), all the rest is the optimiser's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from farthing.budget import Budget, Charges
from farthing.errors import InvalidBudget, StudyEnded
from farthing.runner.evaluate import Evaluation, evaluate
from farthing.runner.meters import Stopwatch
from farthing.runner.progress import Progress, progress_for
from farthing.study import Callback, Objective, Study
from farthing.trial import Outcome, Proposal, Status, Trial

logger = logging.getLogger("farthing")


def run(study: Study, objective: Objective, *, progress: bool | None, callbacks: Sequence[Callback]) -> None:
    """Run until the budget is spent, the target reached, the space exhausted, `study.stop()` or Ctrl-C."""
    watch = Stopwatch()
    study.begin_run()
    with progress_for(study, progress) as shown:
        try:
            while not study.stop_requested:
                _one_trial(study, objective, watch, shown, callbacks)
        except StudyEnded as end:
            logger.info("ended: %s", end)
        except KeyboardInterrupt:
            where = f"; Study.resume({study.storage!r}) goes on" if study.storage else ""
            logger.warning("interrupted after %d trials%s", len(study.trials), where)


def _one_trial(
    study: Study, objective: Objective, watch: Stopwatch, shown: Progress, callbacks: Sequence[Callback]
) -> None:
    budget = study.ledger.budget
    (proposal,) = study.propose(1, lambda: _overhead(budget, watch))
    shown.asked(proposal)
    overhead = _overhead(budget, watch)
    try:
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
    if unit not in spent and trial.status is Status.COMPLETE:
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective{' or set usd_per_hour' if unit == 'usd' else ''}"
        )
    return trial
