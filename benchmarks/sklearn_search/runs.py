"""The runs of the benchmark of searches in scikit-learn: who searches, on which task, with which seed.

Finished runs lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.environments import digest, requirements
from benchmarks.common.fingerprints import NOT_RUN, code_hash, farthing_code, module_file
from benchmarks.common.kept_runs import Files, Runner

Array = NDArray[np.float64]

SYSTEM, PEER = "sklearn", "sklearn_search.peers.search_peer"
LIMIT_SECONDS = 600.0  # of one run
TASKS = ("pipeline", "boosting", "network", "regressor")
FIRST_SEED = 30  # those below were measured with earlier states, and some of them chosen on
ITERATIVE = ("boosting", "network")
FARTHING, RANDOM = "farthing", "random"


@dataclass(frozen=True)
class Method:
    """A way to search. `searched`: with the number of iterations in its space."""

    name: str
    title: str
    kind: str  # "ours", "peer" or "ablation"
    searched: bool = False
    system: str = SYSTEM
    module: str = PEER

    @property
    def key(self) -> str:
        return f"{self.name}-searched" if self.searched else self.name

    def is_for(self, task: str) -> bool:
        """Ablations of iterations have nothing to say where there are none."""
        return task in ITERATIVE or not (self.searched or self.name == "farthing-whole")


METHODS = (
    Method(FARTHING, "FarthingSearchCV", "ours"),
    Method(RANDOM, "RandomizedSearchCV", "peer"),
    Method("halving", "HalvingRandomSearchCV", "peer"),
    Method("optuna", "OptunaSearchCV", "peer"),
    Method(RANDOM, "RandomizedSearchCV, iterations searched", "peer", searched=True),
    Method("optuna", "OptunaSearchCV, iterations searched", "peer", searched=True),
    Method("farthing-skip", "FarthingSearchCV(skip_folds=True)", "ablation"),
    Method("farthing-whole", "FarthingSearchCV(iterative=False)", "ablation"),
)


@dataclass(frozen=True)
class Run:
    """One search. The seed is that of the data, of their split, of the folds and of the search."""

    estimator: str  # that is searched for, one of TASKS
    method: Method
    seed: int
    budget: float

    @property
    def task(self) -> dict[str, Any]:
        return {
            "task": self.estimator, "method": self.method.name, "searched": self.method.searched, "seed": self.seed,
            "budget": self.budget,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.estimator} {self.method.key} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Result:
    """The best mean scores (n,) over the folds, when each was known, and what the last is worth on rows held out."""

    seconds: Array
    scores: Array
    candidates: int
    configs: int
    held_out: float
    ended: float  # seconds
    versions: dict[str, str]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Result:
        seconds, scores = np.array(answer["improved"], float).reshape(-1, 2).T
        held_out = np.nan if answer["held_out"] is None else answer["held_out"]
        counts = (answer["candidates"], answer["configs"])
        return cls(seconds, scores, *counts, held_out, answer["ended"], answer["versions"])

    def at(self, moments: Array) -> Array:
        """The best score known at moments (k,); minus infinity where there was none."""
        return np.append(-np.inf, self.scores)[np.searchsorted(self.seconds, moments, side="right")]

    @property
    def last(self) -> float:
        return float(self.scores[-1]) if len(self.scores) else -np.inf

    def reached(self, score: float) -> float:
        """Seconds until a score was reached, infinite if it was not."""
        reached = np.flatnonzero(self.scores >= score)
        return float(self.seconds[reached[0]]) if len(reached) else np.inf


def planned(tasks: Sequence[str], methods: Sequence[Method], seeds: Sequence[int], budget: float) -> list[Run]:
    """Seed by seed, so that an interrupted benchmark has all methods of the first seeds."""
    return [
        Run(task, method, seed, budget)
        for seed, task, method in product(seeds, tasks, methods)
        if method.is_for(task)
    ]  # fmt: skip


def _name(run: Run) -> str:
    return f"sklearn-{run.estimator}-{run.method.key}-{run.budget:g}-{run.seed}"


def _code(run: Run) -> str:
    own = "" if run.method.kind == "peer" else farthing_code(NOT_RUN)
    return digest(requirements(SYSTEM)) + code_hash(map(module_file, (PEER, "sklearn_search.peers.task"))) + own


def _shown(run: Run, result: Result) -> str:
    counts = f"{result.configs} configurations, {result.candidates} scores"
    return f"{result.last:.4f}, held out {result.held_out:.4f}, {counts} in {result.ended:.1f} s"


FILES = Files(_name, _code, lambda _, answer: Result.of(answer))


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    return Runner(FILES, _shown, limit_seconds=LIMIT_SECONDS).measure(runs, workers)
