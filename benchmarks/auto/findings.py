"""What the runs of the benchmark of `auto` say: regret and rank, with intervals.

r         normalised regret, (best - lowest) / (median - lowest): 0 is the lowest value known of a problem, 1 its
          median, and live the error of always guessing the most frequent class. At most 1, and 1 before the first
          evaluation.
share     of the budget, from 0 to 1

A part is some problems and a field of methods: with what is known to be cheap told to those who can be told, or not.
Methods that have at least half of the seeds on each problem are compared with each other on the seeds that all of
them have; the others are compared one by one, on the runs that they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.auto.methods import Method, named
from benchmarks.auto.runs import Result, Run
from benchmarks.common.statistics import Interval, interval, resampled

Array = NDArray[np.float64]

SHARES = (0.1, 0.25, 0.5, 1.0)
RESAMPLES = 5_000
MOST_RATIO = 1_000.0
DIGITS = 8

Kept = Mapping[str, Any]  # docs/data/auto-bench.json


def kept(results: Mapping[Run, Result]) -> dict[str, Any]:
    """What is kept of runs, from which everything else follows: when each improved, and to what."""
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    versions: dict[str, dict[str, str]] = {}
    for run, result in results.items():
        of_problem = runs.setdefault(run.problem.name, {})
        of_problem.setdefault(run.searcher.name, {})[str(run.seed)] = _kept_run(result)
        versions[run.searcher.library] = dict(result.versions)
    problems = {run.problem for run in results}
    facts = {
        problem.name: {
            "group": problem.group, "is_held_out": problem.is_held_out, "has_cheap": bool(problem.cheap),
            "median": problem.median, "lowest": problem.lowest, "budget": problem.budget,
        }
        for problem in sorted(problems, key=lambda problem: problem.place)
    }  # fmt: skip
    return {"problems": facts, "versions": versions, "runs": runs}


def _kept_run(result: Result) -> dict[str, Any]:
    improved = np.flatnonzero(np.diff(np.array(result.best), prepend=np.inf) < 0)
    return {
        "shares": [float(f"{result.spent[i]:.5g}") for i in improved],
        "values": [float(f"{result.best[i]:.{DIGITS}g}") for i in improved],
        "evaluations": result.evaluations,
        "seconds": float(f"{result.seconds:.3g}"),
    }


# -- parts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """Some problems and a field of methods. Arrays are (problems, seeds)."""

    data: Kept
    problems: tuple[str, ...]
    field: tuple[Method, ...]

    def _has(self, method: Method, problem: str, seed: int) -> bool:
        return str(seed) in self.data["runs"].get(problem, {}).get(method.name, {})

    @cached_property
    def planned(self) -> int:
        """The seeds that any method has."""
        every = (runs for problem in self.problems for runs in self.data["runs"][problem].values())
        return 1 + max(int(seed) for runs in every for seed in runs)

    def seeds_of(self, method: Method) -> list[int]:
        """Those that it has on all problems."""
        return [s for s in range(self.planned) if all(self._has(method, problem, s) for problem in self.problems)]

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """Those that are compared with each other."""
        return tuple(method for method in self.field if 2 * len(self.seeds_of(method)) >= self.planned)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Those that all of them have."""
        common = set(range(self.planned)).intersection(*(self.seeds_of(method) for method in self.methods))
        return tuple(sorted(common))

    @property
    def pairs(self) -> list[tuple[str, int]]:
        return [(problem, seed) for problem in self.problems for seed in self.seeds]

    def best_at(self, method: Method, problem: str, seed: int, share: float) -> float:
        """The lowest value by then, infinite before the first."""
        run = self.data["runs"][problem][method.name][str(seed)]
        count = int(np.searchsorted(run["shares"], share * (1 + 1e-9), side="right"))
        return float(run["values"][count - 1]) if count else np.inf

    def best(self, method: Method, share: float) -> Array:
        found = [self.best_at(method, problem, seed, share) for problem, seed in self.pairs]
        return np.array(found).reshape(len(self.problems), len(self.seeds))

    @cached_property
    def _scales(self) -> dict[str, tuple[float, float]]:
        """The lowest value known of each problem, also from the runs, and how far its median is above."""
        scales = {}
        for problem in self.problems:
            runs = (run for runs in self.data["runs"][problem].values() for run in runs.values())
            found = min((run["values"][-1] for run in runs if run["values"]), default=np.inf)
            facts = self.data["problems"][problem]
            lowest = min(found, np.inf if facts["lowest"] is None else facts["lowest"])
            scales[problem] = (lowest, facts["median"] - lowest)
        return scales

    def regret_at(self, method: Method, problem: str, seed: int, share: float) -> float:
        lowest, above = self._scales[problem]
        return float(np.clip((self.best_at(method, problem, seed, share) - lowest) / above, 0.0, 1.0))

    def regret(self, method: Method, share: float) -> Array:
        found = [self.regret_at(method, problem, seed, share) for problem, seed in self.pairs]
        return np.array(found).reshape(len(self.problems), len(self.seeds))

    def mean_regret(self, method: Method, share: float) -> float:
        return float(self.regret(method, share).mean())

    def places(self, share: float) -> dict[Method, Array]:
        """The place of each method in each run, 1 for the best; ties share theirs."""
        best = np.stack([self.best(method, share) for method in self.methods])
        return dict(zip(self.methods, rankdata(best, axis=0), strict=True))

    def mean_number(self, method: Method, what: str) -> float:
        """The mean of `evaluations` or `seconds` of its runs."""
        return float(np.mean([self.data["runs"][p][method.name][str(s)][what] for p, s in self.pairs]))

    @property
    def subject(self) -> Method | None:
        """Farthing, if it has the runs."""
        return next((method for method in self.methods if method.is_farthing), None)

    @property
    def peers(self) -> list[Method]:
        return [method for method in self.methods if not method.is_farthing]

    def best_peer(self, share: float) -> Method:
        """The one of least mean regret."""
        return min(self.peers, key=lambda method: self.mean_regret(method, share))

    @property
    def behind(self) -> list[Method]:
        """Those with some runs, too few to be compared with the others."""
        runs = self.data["runs"]
        return [m for m in self.field if m not in self.methods and any(m.name in runs[p] for p in self.problems)]

    def pairs_of(self, *methods: Method) -> list[tuple[str, int]]:
        """The runs that all of some methods have."""
        every = ((problem, seed) for problem in self.problems for seed in range(self.planned))
        return [(p, s) for p, s in every if all(self._has(method, p, s) for method in methods)]


def part_of(data: Kept, group: str, is_informed: bool = True, held_out: bool = False) -> Part | None:
    """A group of problems; None if nothing of it was run. `held_out`: only what no default was chosen on."""
    listed = {name: facts for name, facts in data["problems"].items() if facts["group"] == group}
    problems = tuple(name for name, facts in listed.items() if facts["is_held_out"] or not held_out)
    ran = {name for problem in problems for name in data["runs"].get(problem, {})}
    field = fielded([named(name) for name in ran], is_informed)
    return Part(data, problems, field) if problems and field else None


def fielded(methods: Sequence[Method], is_informed: bool) -> tuple[Method, ...]:
    """One of each pair: the method that is told what is cheap, or the one that is not."""
    twins = {(method.library, method.policy) for method in methods if method.knows_cheap}
    chosen = [
        method for method in methods
        if (method.library, method.policy) not in twins or method.knows_cheap == is_informed
    ]  # fmt: skip
    return tuple(sorted(chosen, key=lambda method: method.place))


CURVE_SHARES = tuple(round(0.02 + 0.014 * i, 3) for i in range(71))  # to the end of the budget


def curves(data: Kept) -> dict[str, Any]:
    """What the figure draws: the mean regret of each method at CURVE_SHARES, part by part."""
    parts = {group: part for group in "abc" if (part := part_of(data, group)) is not None}
    drawn = {
        group: {m.title: [float(f"{part.mean_regret(m, share):.4g}") for share in CURVE_SHARES] for m in part.methods}
        for group, part in parts.items()
    }
    peers = list(dict.fromkeys(peer.title for part in parts.values() for peer in part.peers))
    return {"curve_shares": CURVE_SHARES, "peers": peers, "curves": drawn}


# -- intervals ---------------------------------------------------------------------------------------------------------


def resampled_means(cells: Array) -> Array:
    """Means of cells (problems, seeds), problems drawn again and their seeds too; equal shapes get equal draws."""
    problems, seeds = cells.shape
    rows = resampled(problems, RESAMPLES)[:, :, None]  # (draws, problems, 1)
    drawn: Array = cells[rows, resampled(seeds, RESAMPLES, problems, seed=1)]
    return np.asarray(drawn.mean(axis=(1, 2)))


def mean_interval(cells: Array) -> Interval:
    return interval(cells.mean(), resampled_means(cells))


def ratio(above: Array, below: Array) -> Interval:
    """One mean regret over another, with the paired interval; at most MOST_RATIO, and 1 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.append(resampled_means(above), above.mean()) / np.append(resampled_means(below), below.mean())
    *draws, value = np.minimum(np.where(np.isnan(means), 1.0, means), MOST_RATIO)
    return interval(value, np.array(draws))
