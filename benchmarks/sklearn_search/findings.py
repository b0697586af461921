"""What the searches found: scores, ranks, and when they had what random search ended with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.common.statistics import ENDS, resampled
from benchmarks.sklearn_search.runs import FARTHING, METHODS, RANDOM, Array, Method, Result, Run

SHARES = (0.25, 0.5, 1.0)  # of a budget
RESAMPLES = 2000


@dataclass(frozen=True)
class Findings:
    """All methods that have all of their runs, over the same tasks and seeds."""

    budget: float
    tasks: tuple[str, ...]
    seeds: int
    results: Mapping[tuple[str, Method], list[Result]]  # one per seed

    def methods(self, task: str) -> list[Method]:
        return [method for method in METHODS if (task, method) in self.results]

    def lasts(self, task: str, method: Method) -> Array:
        return np.array([result.last for result in self.results[task, method]])

    def stronger(self, task: str, name: str) -> Method:
        """Of a method's two spaces the one that ended better on the task, in its favour."""
        versions = [method for method in self.methods(task) if method.name == name]
        return max(versions, key=lambda method: float(self.lasts(task, method).mean()))

    @cached_property
    def ranked(self) -> list[str]:
        """Names of ours and of the peers."""
        everywhere = [m for m in METHODS if all((task, m) in self.results for task in self.tasks)]
        return [method.name for method in everywhere if method.kind != "ablation" and not method.searched]

    @cached_property
    def ranks(self) -> dict[str, Array]:
        """Of the scores (seeds, tasks, shares), from 1, ties shared."""
        moments = np.array(SHARES) * self.budget
        scores = np.array([
            [[result.at(moments) for result in self.results[task, self.stronger(task, name)]] for task in self.tasks]
            for name in self.ranked
        ])  # fmt: skip  # (methods, tasks, seeds, shares)
        return dict(zip(self.ranked, rankdata(-scores, axis=0).swapaxes(1, 2), strict=True))

    @cached_property
    def reached(self) -> Array:
        """Share of the budget (seeds, tasks) by which ours had what random search ended with; infinite if never."""
        return self.shares_of(next(method for method in METHODS if method.name == FARTHING))

    def shares_of(self, ours: Method, tasks: Sequence[str] | None = None) -> Array:
        shares = []
        for task in tasks or self.tasks:
            rivals = self.results[task, self.stronger(task, RANDOM)]
            pairs = zip(self.results[task, ours], rivals, strict=True)
            shares.append([mine.reached(rival.last) / self.budget for mine, rival in pairs])
        return np.array(shares).T

    def interval(self, cells: Array, statistic: Any = np.mean) -> tuple[float, float]:
        """Of a statistic of cells (seeds, ...), over resampled seeds."""
        drawn = cells[resampled(self.seeds, RESAMPLES)]
        values = statistic(drawn.reshape(RESAMPLES, -1), axis=1)
        # Shares may be infinite: then an end of the interval is a value that was drawn, not one between two.
        low, high = np.percentile(values, ENDS, method="nearest")
        return float(low), float(high)


def findings(results: Mapping[Run, Result], runs: Sequence[Run]) -> tuple[Findings | None, list[str]]:
    """What is complete, and the names of what is not."""
    cells: dict[tuple[str, Method], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.estimator, run.method), []).append(run)
    whole = {
        cell: [results[run] for run in theirs] for cell, theirs in cells.items() if all(r in results for r in theirs)
    }
    missing = [f"{method.title} on {task}" for task, method in cells if (task, method) not in whole]
    if not whole:
        return None, missing
    tasks = tuple(dict.fromkeys(task for task, _ in whole))
    return Findings(runs[0].budget, tasks, len(next(iter(whole.values()))), whole), missing
