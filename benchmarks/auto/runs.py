"""The runs of the benchmark of `auto`: who searches, what, with which seed; done once and kept.

Finished runs lie in benchmarks/cache, see common/kept_runs.py. Those of peers do not depend on Farthing's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto.methods import Method
from benchmarks.auto.problems import SEEDS_APART, Problem, arguments
from benchmarks.common.fingerprints import NOT_ASKED, NOT_RUN, fingerprint
from benchmarks.common.kept_runs import Files, Runner

MOST = {"farthing": 1_000, "peer": 5_000}  # evaluations of one run on tables
LIVE_MOST = 1_000_000
LIMIT_SECONDS = 3_600.0  # of one run

SHARED = ("auto.peers.task", "auto.peers.spaces")
TRANSLATING = {"optuna": ("curves.peers.optuna_peer",), "smac": ("curves.peers.parameters",)}
LIVE_CODE = ("auto.peers.live", "auto.peers.models")


@dataclass(frozen=True)
class Asked:
    """A method in the environment that it has for a problem."""

    name: str
    system: str
    module: str


@dataclass(frozen=True)
class Run:
    problem: Problem
    searcher: Method
    seed: int

    @property
    def method(self) -> Asked:
        return Asked(self.searcher.name, self.searcher.system(self.problem), self.searcher.module)

    @property
    def task(self) -> dict[str, Any]:
        most = LIVE_MOST if self.problem.is_live else MOST["farthing" if self.searcher.is_farthing else "peer"]
        return {
            "problem": self.problem.name,
            "method": self.searcher.policy,
            "seed": self.seed * SEEDS_APART + self.problem.number,  # the same for all methods, others on other problems
            "budget": self.problem.budget,
            "cheap": dict(self.searcher.told(self.problem)),
            "most": most,
        }

    def __str__(self) -> str:
        return f"{self.problem.name} {self.searcher.name} seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """What a run found: the lowest value so far after each evaluation, and the share of the budget spent by then."""

    spent: tuple[float, ...]
    best: tuple[float, ...]
    seconds: float  # of CPU, the method's own
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Result:
        spent = np.array(answer["spent"]) / run.problem.budget
        best = np.minimum.accumulate(np.array(answer["values"], float))
        seconds = answer["own"][-1] if answer["own"] else 0.0
        return cls(tuple(spent.tolist()), tuple(best.tolist()), seconds, tuple(answer["versions"].items()))

    @property
    def evaluations(self) -> int:
        return len(self.spent)

    def best_at(self, share: float) -> float:
        """The lowest value found with a share of the budget, infinite before the first evaluation has ended."""
        known = int(np.searchsorted(self.spent, share * (1 + 1e-12), side="right"))
        return self.best[known - 1] if known else np.inf


def _name(run: Run) -> str:
    return f"auto-{run.problem.name.replace('/', '-')}-{run.searcher.policy}-{run.seed}"


def _code(run: Run) -> str:
    live = LIVE_CODE if run.problem.is_live else ()
    modules = (run.method.module, *SHARED, *TRANSLATING.get(run.searcher.library, ()), *live)
    without = NOT_RUN if run.problem.is_live else NOT_ASKED
    return run.problem.code + fingerprint(run.method.system, modules, without)


def _shown(run: Run, result: Result) -> str:
    return f"{result.best_at(1.0):.5g}, {result.evaluations} evaluations in {result.seconds:.1f} s"


FILES = Files(_name, _code, Result.of)


def measure(runs: Sequence[Run], workers: int, data: Path | None) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    given = arguments(data)
    return Runner(FILES, _shown, lambda run: given, LIMIT_SECONDS).measure(runs, workers)
