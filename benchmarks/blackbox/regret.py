"""What the runs of the black-box benchmark say: regret, rank, cost saving, with intervals.

r         normalised regret, (best - optimum) / (median - optimum) of the table: 0 is the table's optimum, 1 its median
share     of the budget, from 0 to 1

Regret counts as at most 1, and as 1 before the first evaluation has ended: without anything better one can take a
configuration blindly. (Losses of FCNet reach a million times the median, and would be all that a mean speaks of.)
Ranks and cost savings compare values as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.blackbox.runs import INITIAL, Method, Result, Run
from benchmarks.common.statistics import Interval, interval, resampled
from benchmarks.common.tables import table_of

Array = NDArray[np.float64]

RESAMPLES = 5_000
NEVER = np.inf


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
        firsts = [result.spent[INITIAL - 1 : INITIAL] for result in self.results(self.methods[0])]
        ended = [len(spent) > 0 and spent[0] < share for spent in firsts]
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


# -- cost saving -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saving:
    """How much less of the budget a method needs than a peer to reach the peer's final value, in three readings.

    of_budget   share at which the peer first had its final value, less the share at which the method had one as good;
                median over tables and seeds
    of_need     the same, relative to what the peer needed
    of_curve    with the median curves over seeds: the part of the budget that is left when the method's curve reaches
                the end of the peer's (the other way round and negative when it never does); median over tables
    reached     how often the method has a value as good within the budget; where it has not, its need counts as all
    """

    of_budget: float
    of_need: float
    of_curve: float
    reached: float


def first_at(result: Result, value: float) -> float:
    """The share of the budget at which a run first had a value as good."""
    good = np.flatnonzero(np.array(result.best) <= value)
    return result.spent[good[0]] if len(good) else NEVER


def saving(found: Findings, method: Method, peer: Method) -> Saving:
    """Over all tables and seeds of the findings."""
    needs = []
    for ours, theirs in zip(found.results(method), found.results(peer), strict=True):
        if theirs.best:  # else the first configuration, the same for both, took the whole budget
            needs.append((first_at(ours, theirs.best[-1]), first_at(theirs, theirs.best[-1])))
    ours_need, theirs_need = np.array(needs).T
    counted = np.minimum(ours_need, 1.0)
    curves = [_curve_saving(found.on([table]), method, peer) for table in found.tables]
    return Saving(
        float(np.median(theirs_need - counted)),
        float(np.median(1.0 - counted / theirs_need)),
        float(np.median(curves)),
        float(np.mean(ours_need < NEVER)),
    )


def _curve_saving(found: Findings, method: Method, peer: Method) -> float:
    shares = np.linspace(0.005, 1.0, 200)
    ours, theirs = (np.array([np.median(found.best(m, share)) for share in shares]) for m in (method, peer))
    if ours[-1] <= theirs[-1]:
        return float(1.0 - shares[np.argmax(ours <= theirs[-1])])
    return float(shares[np.argmax(theirs <= ours[-1])] - 1.0)
