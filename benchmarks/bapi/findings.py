"""What the runs of the benchmark on iterative learners say: regrets, ranks, costs and what was predicted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.bapi.runs import Method, Result, Run, facts_of
from benchmarks.common.statistics import Interval, interval, resampled, resampled_interval

Array = NDArray[np.float64]

SHARES = (0.25, 0.5, 1.0)  # of a budget
GRID = np.linspace(0.02, 1.0, 50)  # of the figure
RESAMPLES = 2000
OUR_BEST = "bapi"


def regrets_of(results: Mapping[Run, Result], shares: Array) -> dict[Run, Array]:
    """Normalised regret at shares of each run's budget: 0 is the lowest value known of the task, 1 the random median.

    The lowest value is from the sample of the task and all results. A method without anything better has the median.
    """
    lowest: dict[int, float] = {}
    for run, result in results.items():
        known = lowest.get(run.openml_task, facts_of(run.folder, run.openml_task).lowest)
        lowest[run.openml_task] = float(min(known, *result.best[-1:]))
    found = {}
    for run, result in results.items():
        median, low = facts_of(run.folder, run.openml_task).median, lowest[run.openml_task]
        found[run] = (result.best_at(shares * run.budget, median) - low) / (median - low)
    return found


@dataclass(frozen=True)
class Findings:
    """One budget: regrets (pairs, shares) of each method, over the same pairs of task and seed."""

    multiple: float
    tasks: tuple[int, ...]
    regrets: Mapping[Method, Array]
    ranks: Mapping[Method, Array]
    curves: Mapping[Method, Array]  # (50,) mean regret against the share of the budget
    results: Mapping[Method, list[Result]]

    @property
    def methods(self) -> list[Method]:
        return list(self.regrets)

    def of(self, *kinds: str) -> list[Method]:
        return [method for method in self.regrets if method.kind in kinds]

    @property
    def bapi(self) -> Method | None:
        return next((method for method in self.regrets if method.name == OUR_BEST), None)

    def best(self, methods: Sequence[Method]) -> Method:
        """With the lowest mean regret at the end."""
        return min(methods, key=lambda method: float(self.regrets[method][:, -1].mean()))

    def interval(self, cells: Array) -> Interval:
        """Of the mean of one number per pair of task and seed."""
        return resampled_interval(cells, RESAMPLES)

    def ratio(self, one: Method, other: Method) -> Interval:
        """Of the mean regrets at the end."""
        ours, theirs = (self.regrets[method][:, -1] for method in (one, other))
        draws = resampled(len(ours), RESAMPLES)
        return interval(ours.mean() / theirs.mean(), ours[draws].mean(axis=1) / theirs[draws].mean(axis=1))


def ranked(regrets: Mapping[Method, Array]) -> dict[Method, Array]:
    """Ranks (pairs, shares) from 1, ties shared; versions of one policy are not ranked."""
    methods = [method for method in regrets if method.kind != "ablation"]
    if not methods:
        return {}
    ranks = rankdata(np.array([regrets[method] for method in methods]), axis=0)
    return dict(zip(methods, ranks, strict=True))


def findings(results: Mapping[Run, Result], runs: Sequence[Run]) -> tuple[dict[float, Findings], list[Method]]:
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
            tuple(sorted({run.openml_task for run in of[whole[0]]})),
            regrets,
            ranked(regrets),
            {method: np.mean([grid[run] for run in theirs], axis=0) for method, theirs in of.items()},
            {method: [done[run] for run in theirs] for method, theirs in of.items()},
        )
    return found, [method for method in planned if method not in whole]


def overall_ranks(found: Mapping[float, Findings]) -> dict[Method, Array]:
    """Mean rank over all pairs of all budgets (4,): at each share, and over the three."""
    methods = next(iter(found.values())).ranks
    means = {m: np.concatenate([part.ranks[m] for part in found.values()]).mean(axis=0) for m in methods}
    return {method: np.append(mean, mean.mean()) for method, mean in means.items()}


def plans_of(found: Mapping[float, Findings]) -> dict[str, Any] | None:
    """Cost over predicted cost of all proposals of `bapi` that the budget did not cut."""
    plans = [
        plan
        for part in found.values()
        if part.bapi is not None
        for result in part.results[part.bapi]
        for plan in result.plans
    ]
    told = [plan for plan in plans if plan[4] != "cut" and plan[0]]
    if not told:
        return None
    ratios = np.array([plan[1] / plan[0] for plan in told])
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {
        "proposals": len(plans),
        "predicted": len(told),
        "cut": sum(plan[4] == "cut" for plan in plans),
        "median": float(median),
        "low": float(low),
        "high": float(high),
        "above": float((ratios > 1.0).mean()),
        "above_twice": float((ratios > 2.0).mean()),
        "highest": float(ratios.max()),
        "total": float(sum(plan[1] for plan in told) / sum(plan[0] for plan in told)),
    }
