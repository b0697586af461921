"""What the runs of the black-box benchmark say: regret and rank, with intervals.

r         normalised regret, (best - optimum) / (median - optimum) of the table: 0 is the table's optimum, 1 its median
share     of the budget, from 0 to 1

Regret counts as at most 1, and as 1 before the first evaluation has ended: without anything better one can take a
configuration blindly. (Losses of FCNet reach a million times the median, and would be all that a mean speaks of.)
Ranks and cost savings (`savings.py`) compare values as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.blackbox.runs import Method, Result, Run
from benchmarks.common.statistics import Interval, interval, resampled
from benchmarks.common.tables import table_of

Array = NDArray[np.float64]

RESAMPLES = 5_000


class Findings:
    """Results by method, table, seed and batch size."""

    def __init__(self, results: Mapping[Run, Result], tables: Sequence[str], methods: Sequence[Method]) -> None:
        self.tables, self.methods = tuple(tables), tuple(methods)
        self.seeds = 1 + max(run.seed for run in results)
        self._found = {(r.method, r.table, r.seed, r.batch): result for r, result in results.items()}

    def on(self, tables: Sequence[str]) -> Findings:
        """The same, of some tables only."""
        part = object.__new__(Findings)
        part.tables, part.methods, part.seeds, part._found = tuple(tables), self.methods, self.seeds, self._found
        return part

    def result(self, method: Method, table: str, seed: int, batch: int = 1) -> Result:
        return self._found[method, table, seed, batch]

    def results(self, method: Method, batch: int = 1) -> list[Result]:
        return [self.result(method, table, seed, batch) for table in self.tables for seed in range(self.seeds)]

    def best(self, method: Method, share: float, batch: int = 1) -> Array:  # (tables, seeds)
        found = [result.best_at(share) for result in self.results(method, batch)]
        return np.array(found).reshape(len(self.tables), self.seeds)

    def regret(self, method: Method, share: float, batch: int = 1) -> Array:  # (tables, seeds)
        normalised = [
            regret(table, best) for table, best in zip(self.tables, self.best(method, share, batch), strict=True)
        ]
        return np.minimum(np.array(normalised), 1.0)

    def had_a_choice(self, share: float) -> Array:  # (tables, seeds), true where
        """Which runs had ended the first configurations, the same for all methods, at that share of the budget."""
        ended = [result.chosen_from < share for result in self.results(self.methods[0])]
        return np.array(ended).reshape(len(self.tables), self.seeds)

    def mean_regret(self, method: Method, share: float, batch: int = 1) -> float:
        return float(self.regret(method, share, batch).mean())

    def ranks(self, share: float) -> dict[Method, float]:
        """The mean place among the methods, 1 for the best; ties share theirs."""
        best = np.stack([self.best(method, share) for method in self.methods])  # (methods, tables, seeds)
        places = rankdata(best, axis=0).mean(axis=(1, 2))
        return dict(zip(self.methods, map(float, places), strict=True))

    def leader(self, methods: Sequence[Method], share: float) -> Method:
        """The method of least mean regret."""
        return min(methods, key=lambda method: self.mean_regret(method, share))

    def versions(self) -> dict[str, dict[str, str]]:
        """The libraries behind each of the systems."""
        return {
            method.module.rpartition(".")[2].split("_")[0]: dict(self.results(method)[0].versions)
            for method in self.methods
        }


def regret(table: str, best: Array) -> Array:
    """Normalised regret of values, not limited."""
    facts = table_of(table)
    return (best - facts.optimum) / (facts.median - facts.optimum)


# -- intervals ---------------------------------------------------------------------------------------------------------


def resampled_means(cells: Array) -> Array:
    """Means of cells (tables, seeds) with the seeds of every table drawn again; equal shapes get equal draws."""
    tables, seeds = cells.shape
    return np.take_along_axis(cells[None], resampled(seeds, RESAMPLES, tables), axis=2).mean(axis=(1, 2))


def mean_interval(cells: Array) -> Interval:
    """The mean of cells (tables, seeds) with its bootstrap interval."""
    return interval(cells.mean(), resampled_means(cells))


def ratio(above: Array, below: Array) -> Interval:
    """One mean regret over another, with the paired bootstrap interval."""
    return interval(above.mean() / below.mean(), resampled_means(above) / resampled_means(below))
