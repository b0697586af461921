"""One simulated study as a process of its own: what its run decides in a second, where the time goes, and its memory.

python -m benchmarks.cluster.runs --policy random --workers 1000 --trials 2000
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy

import farthing as ft
from benchmarks.cluster.simulated import faults, nodes_for, run_on, studied
from benchmarks.cluster.simulation import SimulatedCluster
from benchmarks.cluster.workload import Workload
from benchmarks.common.command import parser
from farthing.policies import Policy, policy_of

T = TypeVar("T")

MEMORY = Path("/dev/shm")  # what the disk takes is measured by `make bench-throughput`


@dataclass
class Stopwatch:
    """Processor seconds by who spent them, each call counted to the innermost one."""

    seconds: dict[str, float] = field(default_factory=dict)
    each: dict[str, list[float]] = field(default_factory=dict)  # call, all that it calls included
    _inner: float = 0.0

    def of(self, name: str, function: Callable[..., T]) -> Callable[..., T]:
        """A function that is timed."""

        def timed(*arguments: Any, **named: Any) -> T:
            outer, self._inner, began = self._inner, 0.0, time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                spent = time.thread_time() - began
                self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._inner
                self.each.setdefault(name, []).append(spent)
                self._inner = outer + spent

        return timed


class Timed:
    """A policy whose proposals and decisions are timed; all else is its own."""

    def __init__(self, own: Policy, watch: Stopwatch) -> None:
        self._own, self.propose = own, watch.of("proposals", own.propose)
        if hasattr(own, "decide"):
            self.decide = watch.of("decisions", own.decide)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def timed(study: ft.Study, cluster: SimulatedCluster, watch: Stopwatch) -> None:
    """Let a stopwatch say what the policy, the file and the simulation itself take."""
    session = study._session
    session.policy = Timed(session.policy, watch)  # type: ignore[assignment]
    log = session.record.log
    log.append = watch.of("file", log.append)  # type: ignore[method-assign]
    for function in ("has_room", "reserve", "begin", "step", "close", "wait", "tell_to_end", "kill"):
        setattr(cluster, function, watch.of("simulation", getattr(cluster, function)))


def measured(policy: str, workers: int, trials: int, steps: int, stays: float, seed: int) -> dict[str, Any]:
    """What a run did, and what it took."""
    workload, watch = Workload(seed, steps), Stopwatch()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None) as folder:
        storage = Path(folder) / "study.db"
        cluster = SimulatedCluster(workload, nodes_for(workers, stays), seed)
        with studied(policy_of(policy), trials, workload, seed, storage) as study:
            timed(study, cluster, watch)
            began = time.thread_time(), time.process_time(), time.perf_counter()
            run_on(cluster, study, workers)
            ended = time.thread_time(), time.process_time(), time.perf_counter()
            seconds, of_process, wall = (after - before for before, after in zip(began, ended, strict=True))
            found = faults(study, cluster)
            session, known, ledger = study._session, study.trials, study.ledger
            asks, events = session.history.asks, session.record.events
        again = ft.Study.open(storage)
        if again.ledger.accounts != ledger.accounts or again.trials != known:
            found.append("the file says something else than the run")
        size = storage.stat().st_size
    books, asked = cluster.books, watch.each["proposals"]
    return {
        "policy": policy, "workers": workers, "steps": steps, "trials": len(known), "asks": asks, "events": events,
        "seconds": seconds, "heartbeat": of_process - seconds, "wall": wall, "parts": watch.seconds,
        "ask": float(np.median(asked[-max(len(asked) // 10, 20) :])),
        "most": books.most, "lost": books.count("lost"), "failed": books.count("failed"), "late": books.count("late"),
        "killed": books.count("killed"), "nodes": dict(books.nodes), "simulated": cluster.now, "faults": found,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, "file_mb": size / 1e6,
        "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
    }  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--policy", required=True)
    for name, kind in (("workers", int), ("trials", int), ("steps", int), ("stays", float), ("seed", int)):
        arguments.add_argument(f"--{name}", type=kind, default=7_200.0 if name == "stays" else 0)
    given = arguments.parse_args()
    print(json.dumps(measured(given.policy, given.workers, given.trials, given.steps, given.stays, given.seed)))


if __name__ == "__main__":
    main()
