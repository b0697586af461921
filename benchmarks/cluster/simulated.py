"""One study on a simulated cluster, through the same run as any other; and whether its ledger and trials are exact."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from os import PathLike
from typing import Any

import farthing as ft
from benchmarks.cluster.simulation import Books, Nodes, SimulatedCluster
from benchmarks.cluster.workload import SPACE, Workload
from farthing.policies import Policy
from farthing.runner.executors import Executor
from farthing.runner.interrupts import Interrupts
from farthing.runner.loop import run
from farthing.runner.meters import Meters, meters_for
from farthing.runner.options import RunOptions
from farthing.session import Session
from farthing.trial import Config, Objective, Status

UNIT = "compute_seconds"


@dataclass(frozen=True)
class Simulated:
    """What `workers=` is given: machines that are simulated."""

    cluster: SimulatedCluster
    n: int

    def meters(self, budget: ft.Budget, meter: Any) -> Meters:
        return meters_for(budget, meter)

    def executor(
        self, options: RunOptions, session: Session, objective: Objective, interrupts: Interrupts, patience: float,
        meters: Meters,
    ) -> Executor:  # fmt: skip
        return self.cluster


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions):
    """Simulated learners hold no memory."""

    def paused_bytes(self) -> float:
        return math.inf


def not_called(config: Config) -> float:
    raise AssertionError("evaluations are simulated")


def studied(
    policy: str | Policy, trials: int, workload: Workload, seed: int = 0, storage: str | PathLike[str] | None = None
) -> ft.Study:
    """A study whose budget of computing time is enough for about that many evaluations."""
    budget = ft.Budget(compute_seconds=trials * workload.mean_seconds)
    return ft.Study(SPACE, budget, policy=policy, seed=seed, storage=storage, max_steps=workload.steps or None)


def run_on(cluster: SimulatedCluster, study: ft.Study, workers: int) -> None:
    """Run a study to the end of its budget."""
    options = Options(workers=Simulated(cluster, workers), progress=False, max_failures=None)
    run(study._session, not_called, cluster.now, options, (), cluster.timer)


def nodes_for(workers: int, stays: float = 7_200.0) -> Nodes:
    """As many nodes as that many evaluations need, and a tenth more: some are away."""
    places = 8 if workers >= 100 else 2
    return Nodes(math.ceil(1.1 * workers / places), places, stays)


# -- exactness ---------------------------------------------------------------------------------------------------------

CLOSE = 1e-9  # relative: amounts are sums of floating-point numbers


def faults(study: ft.Study, cluster: SimulatedCluster) -> list[str]:
    """What of a study is not as the cluster's books have it; empty if all is exact."""
    books, ledger = cluster.books, study.ledger
    ended = Counter(trial.status for trial in study.trials)
    found = [
        _fault("seconds in the ledger", ledger.total(UNIT), books.total),
        _fault("evaluations in the ledger", ledger.total("evaluations"), _counted(study)),
        _fault("trials", len(study.trials), len(books.begun)),
        _fault("trials that are running", ended[Status.RUNNING], 0),
        _fault("evaluations running in the ledger", ledger.running, 0),
        _fault("places that are held", cluster.held, 0),
    ]
    if not cluster.has_steps:
        found += [
            _fault("complete trials", ended[Status.COMPLETE], books.count("returned")),
            _fault("failed trials", ended[Status.FAILED], books.count("failed")),
            _fault("seconds of complete trials", ledger.account("evaluation"), math.fsum(books.of("returned"))),
            _fault("seconds of failed trials", ledger.account("failed"), math.fsum(books.of("failed"))),
        ]
    found += [_fault(f"seconds of trial {trial.number}", *_seconds(trial, books)) for trial in study.trials]
    return [fault for fault in found if fault]


def _seconds(trial: ft.Trial, books: Books) -> tuple[float, float]:
    """What a trial has cost, and what it should have: of a learner all its steps, of a black box the last evaluation,
    since those that were lost before are no part of what it costs."""
    actions = books.by_trial.get(trial.number, [0.0])
    return trial.cost or 0.0, math.fsum(actions) if len(trial.curve) else actions[-1]


def _counted(study: ft.Study) -> int:
    return sum(trial.counted for trial in study._session.history.trials)


def _fault(what: str, found: float, expected: float) -> str:
    if abs(found - expected) <= CLOSE * max(abs(expected), 1.0):
        return ""
    return f"{what}: {found!r}, and {expected!r} in the books"
