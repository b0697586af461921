"""Time per suggestion with many evaluations running, compared with none: black boxes, and learners that yield."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.cluster.workload import SECONDS, SPACE, Workload
from farthing.record.events import Asked, Ended, Reported
from farthing.trial import Outcome, Proposal, Report, Status

STEPS = 20  # of a complete training
TRAINED = 4  # steps that those which are known have done
STOP = 8  # the step at which those that run will be paused


def known_study(policy: str, known: int, running: int, steps: int) -> ft.Study:
    """A study with results, a fifth of whose budget is spent, and with running evaluations, none of which was asked of
    the policy."""
    workload, rng = Workload(0, steps), np.random.default_rng(0)
    costs = [workload._seconds(i, SPACE.decode(u), Random(i)) for i, u in enumerate(rng.random((known, len(SPACE))))]
    share = TRAINED / steps if steps else 1.0
    budget = ft.Budget(compute_seconds=5.0 * share * sum(costs) + 2.0 * SECONDS * running)
    study, rng = ft.Study(SPACE, budget, policy=policy, seed=0, max_steps=steps or None), np.random.default_rng(0)
    record = study._session.record
    for trial in range(known + running):
        config = SPACE.decode(rng.random(len(SPACE)))
        proposal = Proposal(trial, config, SECONDS * share, until_step=STOP if steps else None)
        record.write(Asked(trial, proposal, record.ledger.as_json()))
        if trial < known:
            _tell(study, workload, trial, config, costs[trial])
    return study


def _tell(study: ft.Study, workload: Workload, trial: int, config: dict[str, Any], cost: float) -> None:
    record, steps = study._session.record, workload.steps
    if not steps:
        charges = {"evaluation": {"compute_seconds": cost, "evaluations": 1.0}}
        record.write(Ended(trial, Outcome(Status.COMPLETE, workload._value(config, 1), cost), charges))
        return
    for step in range(1, TRAINED + 1):
        report = Report(workload._value(config, step), cost / steps)
        record.write(Reported(trial, report, {"evaluation": {"compute_seconds": cost / steps}}))
    record.write(Ended(trial, Outcome(Status.PAUSED), {"evaluation": {"evaluations": 1.0}}))


def pending_seconds(policy: str, known: int, running: Sequence[int], steps: int, repetitions: int) -> dict[str, float]:
    """Median processor seconds of an ask by the number that is running, in turn; the first one fits from nothing and
    does not count."""
    studies = {count: known_study(policy, known, count, steps) for count in running}
    seconds: dict[int, list[float]] = {count: [] for count in running}
    for _ in range(repetitions + 1):
        for count, study in studies.items():
            began = time.process_time()
            proposal = study.ask()
            seconds[count].append(time.process_time() - began)
            study.forget(proposal)
    return {str(count): statistics.median(taken[1:]) for count, taken in seconds.items()}
