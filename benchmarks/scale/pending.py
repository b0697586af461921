"""Time per suggestion with many evaluations running, compared with none: ratios within one process."""

from __future__ import annotations

import statistics
import time
from collections import deque

import numpy as np

import farthing as ft
from benchmarks.scale.peers.task import cost_of, value_of

DIMENSIONS = 7


def studied(policy: str, n: int) -> ft.Study:
    """A study of n observations, which have used a sixth of its budget, that has asked with models once."""
    space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(DIMENSIONS)})
    X = np.random.default_rng(0).random((n, DIMENSIONS))
    costs = [cost_of(x) for x in X]
    study = ft.Study(space, ft.Budget(cost=6.0 * sum(costs)), policy=policy, seed=0)
    for x, cost in zip(X, costs, strict=True):
        study.add(space.decode(x), value=value_of(x), cost=cost)
    told(study, study.ask())
    return study


def told(study: ft.Study, proposal: ft.Proposal) -> None:
    x = np.array(list(proposal.config.values()))
    study.tell(proposal, value=value_of(x), cost=cost_of(x))


def pending_times(policy: str, n: int, pending: int, repetitions: int) -> dict[str, float]:
    """Median processor seconds of an ask with none pending and with `pending`, in turn."""
    alone, busy = studied(policy, n), studied(policy, n)
    running = deque(busy.ask() for _ in range(pending))
    seconds: dict[str, list[float]] = {"none": [], "many": []}
    for _ in range(repetitions):
        began = time.process_time()
        proposal = alone.ask()
        seconds["none"].append(time.process_time() - began)
        told(alone, proposal)
        began = time.process_time()
        running.append(busy.ask())
        seconds["many"].append(time.process_time() - began)
        told(busy, running.popleft())
    return {which: statistics.median(taken) for which, taken in seconds.items()}
