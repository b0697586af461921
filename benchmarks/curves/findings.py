"""What runs on learners that train in steps say: regrets and ranks at shares of the budget.

Kinds of problems count alike, however many problems each has: a mean is that of the means of the kinds, and a bootstrap
sample draws pairs of problem and seed within each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.common.statistics import Interval, interval, resampled
from benchmarks.curves.methods import Method
from benchmarks.curves.runs import Problem, Result, Run

Array = NDArray[np.float64]

SHARES = (0.25, 0.5, 1.0)  # of a budget
GRID = np.linspace(0.02, 1.0, 50)  # of the figures
RESAMPLES = 2000
ROUNDED = 1e-6  # regret: less than this is left by rounding
MOST = 100.0  # a ratio of regrets is at most this, also to a method that has none


def regrets_of(results: Mapping[Run, Result], shares: Array) -> dict[Run, Array]:
    """Normalised regret at shares of each run's budget: 0 is the lowest value known of the problem, 1 the median.

    The lowest value is from what is known of the problem and all results. A method without anything better has the
    median.
    """
    lowest: dict[Problem, float] = {}
    for run, result in results.items():
        known = lowest.get(run.problem, run.problem.facts.lowest)
        lowest[run.problem] = float(np.nanmin([known, *result.best[-1:]]))
    found = {}
    for run, result in results.items():
        median, low = run.problem.facts.median, lowest[run.problem]
        regret = (result.best_at(shares * run.budget, median) - low) / (median - low)
        found[run] = np.where(regret < ROUNDED, 0.0, regret)
    return found


@dataclass(frozen=True, eq=False)
class Findings:
    """One budget, or the mean of several: regrets of each method, over the same pairs of problem and seed."""

    multiple: float | None  # None: of several
    pairs: tuple[tuple[Problem, int], ...]  # of problem and seed
    regrets: Mapping[Method, Array]  # (pairs, shares)
    ranks: Mapping[Method, Array]  # (pairs, shares), of the methods that are ranked
    curves: Mapping[Method, Array]  # (pairs, 50), regret against the share of the budget
    trainings: Mapping[Method, Array]  # (pairs,), begun
    seconds: Mapping[Method, Array]  # (pairs,), own
    results: Mapping[Method, Sequence[Result]]

    @property
    def methods(self) -> list[Method]:
        return list(self.regrets)

    def of(self, *kinds: str) -> list[Method]:
        return [method for method in self.regrets if method.kind in kinds]

    @property
    def subject(self) -> Method | None:
        """The method that the page is about."""
        return next(iter(self.of("subject")), None)

    @property
    def problems(self) -> list[Problem]:
        return list(dict.fromkeys(problem for problem, _ in self.pairs))

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(problem.kind for problem, _ in self.pairs))

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        """The pairs of each kind."""
        return [np.flatnonzero([problem.kind == kind for problem, _ in self.pairs]) for kind in self.kinds]

    @cached_property
    def _weights(self) -> Array:
        """(pairs,) summing to 1, the same sum for each kind."""
        weights = np.empty(len(self.pairs))
        for members in self._members:
            weights[members] = 1.0 / len(members) / len(self._members)
        return weights

    @cached_property
    def _draws(self) -> NDArray[np.int64]:
        """(RESAMPLES, pairs) bootstrap samples: each pair replaced by one of its kind."""
        draws = np.empty((RESAMPLES, len(self.pairs)), dtype=np.int64)
        for seed, members in enumerate(self._members):
            draws[:, members] = members[resampled(len(members), RESAMPLES, seed=seed)]
        return draws

    def mean(self, cells: Array) -> Array:
        """Of cells (pairs, ...)."""
        return np.tensordot(self._weights, cells, axes=1)

    def interval(self, cells: Array) -> Interval:
        """Of the mean of one number per pair."""
        return interval(float(self.mean(cells)), cells[self._draws] @ self._weights)

    def best(self, methods: Sequence[Method], share: int = -1) -> Method:
        """With the lowest mean regret, by default at the end."""
        return min(methods, key=lambda method: float(self.mean(self.regrets[method][:, share])))

    def ratio(self, one: Method, other: Method, share: int = -1) -> Interval:
        """Of the mean regrets, by default at the end."""
        ours, theirs = (self.regrets[method][:, share] for method in (one, other))
        draws = _ratio(ours[self._draws] @ self._weights, theirs[self._draws] @ self._weights)
        return interval(float(_ratio(self.mean(ours), self.mean(theirs))), draws)

    def only(self, kind: str) -> Findings:
        """Of the problems of one kind."""
        chosen = np.flatnonzero([problem.kind == kind for problem, _ in self.pairs])

        def part(cells: Mapping[Method, Array]) -> dict[Method, Array]:
            return {method: of[chosen] for method, of in cells.items()}

        return replace(
            self,
            pairs=tuple(self.pairs[i] for i in chosen),
            regrets=part(self.regrets),
            ranks=part(self.ranks),
            curves=part(self.curves),
            trainings=part(self.trainings),
            seconds=part(self.seconds),
            results={method: [of[i] for i in chosen.tolist()] for method, of in self.results.items() if of},
        )


def _ratio(ours: Array, theirs: Array) -> Array:
    return np.minimum(ours / np.maximum(theirs, ROUNDED), MOST)


def ranked(regrets: Mapping[Method, Array], unranked: Sequence[str]) -> dict[Method, Array]:
    """Ranks (pairs, shares) from 1, ties shared, without the methods of some kinds."""
    methods = [method for method in regrets if method.kind not in unranked]
    if not methods:
        return {}
    ranks = rankdata(np.array([regrets[method] for method in methods]), axis=0)
    return dict(zip(methods, ranks, strict=True))


def findings(
    results: Mapping[Run, Result], runs: Sequence[Run], unranked: Sequence[str] = ("ablation",)
) -> tuple[dict[float, Findings], list[Method]]:
    """By budget, of the methods that have all runs; and the others."""
    planned: dict[Method, list[Run]] = {}
    for run in runs:
        planned.setdefault(run.method, []).append(run)
    whole = [method for method, theirs in planned.items() if all(run in results for run in theirs)]
    done = {run: results[run] for method in whole for run in planned[method]}
    shares, grid = regrets_of(done, np.array(SHARES)), regrets_of(done, GRID)
    found = {}
    for multiple in sorted({run.multiple for run in done}):
        of = {method: [run for run in planned[method] if run.multiple == multiple] for method in whole}
        regrets = {method: np.array([shares[run] for run in theirs]) for method, theirs in of.items()}
        found[multiple] = Findings(
            multiple,
            tuple((run.problem, run.seed) for run in of[whole[0]]),
            regrets,
            ranked(regrets, unranked),
            {method: np.array([grid[run] for run in theirs]) for method, theirs in of.items()},
            {method: np.array([done[run].trainings(run.budget) for run in theirs]) for method, theirs in of.items()},
            {method: np.array([done[run].seconds for run in theirs]) for method, theirs in of.items()},
            {method: [done[run] for run in theirs] for method, theirs in of.items()},
        )
    return found, [method for method in planned if method not in whole]


def complete(results: Mapping[Run, Result], runs: Sequence[Run]) -> list[Run]:
    """Those of the planned runs whose seeds are done by every method that has one seed done; and all of the others.

    So a benchmark that was planned seed after seed, and interrupted, has a page with fewer seeds.
    """
    missing: dict[Method, set[int]] = {}
    for run in runs:
        missing.setdefault(run.method, set())
        if run not in results:
            missing[run.method].add(run.seed)
    seeds = {run.seed for run in runs}
    lacking = set().union(*(of for of in missing.values() if of != seeds))
    return [run for run in runs if run.seed not in lacking]


def pooled(found: Mapping[float, Findings]) -> Findings:
    """The mean over budgets that have the same pairs."""
    parts = list(found.values())

    def mean(name: str) -> dict[Method, Array]:
        return {m: np.mean([getattr(part, name)[m] for part in parts], axis=0) for m in getattr(parts[0], name)}

    names = ("regrets", "ranks", "curves", "trainings", "seconds")
    return replace(parts[0], multiple=None, results={}, **{name: mean(name) for name in names})
