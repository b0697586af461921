"""The runs of the benchmark of searches in scikit-learn: who searches, on which task, with which seed.

Finished runs lie in benchmarks/cache under a hash of the task and of the code that did it, so a benchmark that was
interrupted continues; comments and docstrings do not count. Of Farthing's own runs all of its code counts but what has
no part in a search.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bopt_synthetic_runs import CACHE, PEERS, SOURCE, code_of
from children import Child
from environments import digest, requirements
from kept_runs import Files, Runner

Array = NDArray[np.float64]

SYSTEM, SCRIPT = "sklearn", "sklearn_search_peer.py"
LIMIT_SECONDS = 600.0  # of one run
TASKS = ("pipeline", "boosting", "network", "regressor")
ITERATIVE = ("boosting", "network")
NO_PART = ("cli", "problems", "report")
FARTHING, RANDOM = "farthing", "random"


@dataclass(frozen=True)
class Method:
    """A way to search. `searched`: with the number of iterations in its space."""

    name: str
    title: str
    kind: str  # "ours", "peer" or "ablation"
    searched: bool = False
    system: str = SYSTEM
    script: str = SCRIPT

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

    task: str
    method: Method
    seed: int
    budget: float

    @property
    def described(self) -> dict[str, Any]:
        return {
            "task": self.task, "method": self.method.name, "searched": self.method.searched, "seed": self.seed,
            "budget": self.budget,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.task} {self.method.key} seed {self.seed}"


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


@cache
def _fingerprint(is_ours: bool) -> str:
    files = [PEERS / SCRIPT, PEERS / "sklearn_search_task.py"]
    if is_ours:
        own = sorted(SOURCE.rglob("*.py"))
        files += [path for path in own if not str(path.relative_to(SOURCE)).startswith(NO_PART)]
    code = "".join(map(code_of, files))
    return digest(requirements(SYSTEM)) + hashlib.sha256(code.encode()).hexdigest()[:16]


def _path(run: Run) -> Path:
    key = json.dumps([run.described, _fingerprint(run.method.kind != "peer")], sort_keys=True)
    short = hashlib.sha256(key.encode()).hexdigest()[:16]
    return CACHE / f"sklearn-{run.task}-{run.method.key}-{run.budget:g}-{run.seed}-{short}.json"


FILES = Files(_path, lambda _, answer: Result.of(answer))
kept = FILES.kept


def _said(run: Run, result: Result) -> str:
    counts = f"{result.configs} configurations, {result.candidates} scores"
    return f"{result.last:.4f}, held out {result.held_out:.4f}, {counts} in {result.ended:.1f} s"


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    begun = lambda run: Child(SYSTEM, [], LIMIT_SECONDS, SCRIPT)  # noqa: E731
    return Runner(FILES, begun, lambda run: run.described, _said).measure(runs, workers)
