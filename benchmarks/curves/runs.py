"""Runs of benchmarks on learners that train in steps: who searches, on which curves, with which budget and seed.

Finished runs, and what is known of a task of LCBench, lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.children import Child
from benchmarks.common.environments import digest, ensure, requirements
from benchmarks.common.fingerprints import code_hash, fingerprint, module_file
from benchmarks.common.kept_runs import Files, Runner, once
from benchmarks.curves.methods import Method
from benchmarks.curves.peers.sources import LCBENCH
from benchmarks.curves.sets import set_named

Array = NDArray[np.float64]

LIMIT_SECONDS = 3_600.0  # of one run
SEEDS_APART = 1_000_000
# No default was chosen on these:
LCBENCH_TASKS = (3945, 7593, 126026, 126029, 146212, 167104, 167152, 167161, 167181, 167184, 167190, 167200)
SAMPLE, SAMPLE_SEED = 10_000, 2024  # random configurations that a task of LCBench is known by


@dataclass(frozen=True)
class Problem:
    """Curves to search in: those of a recorded set, `sgd/digits`, or those of a task of LCBench, `lcbench/3945`.

    `folder` is that of the surrogate of LCBench; a recorded set has none.
    """

    name: str
    folder: Path | None = None

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]

    @property
    def data(self) -> str:
        return self.name.partition("/")[2]

    @property
    def number(self) -> int:
        """Of its own, below SEEDS_APART."""
        return int(self.data) if self.kind == LCBENCH else zlib.crc32(self.name.encode()) % SEEDS_APART

    @property
    def facts(self) -> Facts:
        return _lcbench_facts(self.folder, self.data) if self.folder else _recorded_facts(self.name)

    @property
    def code(self) -> str:
        """A hash of the curves."""
        return _surrogate_code(self.folder) if self.folder else _recorded_code(self.name)


def lcbench(folder: Path, task: int | str) -> Problem:
    return Problem(f"{LCBENCH}/{task}", folder)


# -- what is known of a problem ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """From random configurations: the mean cost of a training, the median value, and the lowest value.

    LCBench: the median of last values of a fixed sample. Recorded sets: the median of the best values of all that is
    listed, a failure being worse than any value.
    """

    cost: float
    median: float
    lowest: float


@cache
def _surrogate_code(folder: Path) -> str:
    files = [folder / name for name in ("model.onnx", "config_space.json", "encoding.json", "schema.json")]
    code = code_hash(map(module_file, ("curves.peers.surrogate", "common.lcbench")))
    return digest(*files, requirements("lcbench")) + code


@cache
def _lcbench_facts(folder: Path, task: str) -> Facts:
    """Measured once, then kept."""
    asked = {"task": task, "count": SAMPLE, "seed": SAMPLE_SEED}

    def drawn() -> dict[str, Any]:
        print(f"drawing {SAMPLE} trainings of task {task}", flush=True)
        with Child("lcbench", "curves.peers.surrogate", [folder], LIMIT_SECONDS) as child:
            return child.ask(asked)

    return Facts(**once(f"lcbench-task-{task}", [asked, _surrogate_code(folder)], drawn))


@cache
def _recorded_code(name: str) -> str:
    recorded = set_named(name)
    joined = hashlib.sha256(json.dumps([recorded.space, recorded.configs]).encode())
    for array in (recorded.values, recorded.seconds):
        joined.update(array.tobytes())
    return joined.hexdigest()[:16] + code_hash(map(module_file, ("curves.sets", "common.described_spaces")))


@cache
def _recorded_facts(name: str) -> Facts:
    recorded = set_named(name)
    if not recorded.lowest < recorded.median < np.inf:
        raise ValueError(f"{name}: the median of its best values is {recorded.median}, the lowest {recorded.lowest}")
    return Facts(recorded.cost, recorded.median, recorded.lowest)


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """`multiple` is the budget in mean costs of a training, `longest` the largest that the same is asked with."""

    problem: Problem
    method: Method
    multiple: float
    seed: int
    longest: float

    @property
    def budget(self) -> float:
        return self.multiple * self.problem.facts.cost

    @property
    def searched(self) -> float:
        """The multiple that is searched with: who does not know the budget does the longest only, and is cut."""
        return self.multiple if self.method.knows_budget else self.longest

    @property
    def task(self) -> dict[str, Any]:
        return {
            "task": self.problem.name,
            "method": self.method.name if self.method.kind == "peer" else "policy",
            "policy": json.loads(self.method.policy),
            "seed": self.seed * SEEDS_APART + self.problem.number,  # the same for all methods, others on other problems
            "budget": self.searched * self.problem.facts.cost,
        }

    def __str__(self) -> str:
        return f"{self.problem.name} x{self.multiple:g} {self.method.name} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Result:
    """What a run trained within its budget, step by step."""

    spent: Array  # (n,) cost by the end of each step
    own: Array  # (n,) CPU seconds that the method itself had needed by then
    best: Array  # (n,) lowest value by then; NaN before there is one
    trials: NDArray[np.int64]  # (n,) the training of each step
    plans: list[list[Any]]
    versions: dict[str, str]

    @classmethod
    def of(cls, answer: dict[str, Any], budget: float) -> Result:
        spent = np.cumsum(answer["costs"])
        count = int(np.searchsorted(spent, budget * (1 + 1e-9), side="right"))
        values, own = (np.array(answer[name], float)[:count] for name in ("values", "own"))
        trials = np.array(answer["trials"], int)[:count]
        return cls(spent[:count], own, np.fmin.accumulate(values), trials, answer["plans"], answer["versions"])

    @property
    def charged(self) -> Result:
        """With the method's own seconds as a part of what was spent, also past the budget."""
        return replace(self, spent=self.spent + self.own)

    @property
    def seconds(self) -> float:
        """Of the method itself."""
        return float(self.own[-1]) if len(self.own) else 0.0

    def trainings(self, budget: float = np.inf) -> int:
        """How many were begun within a budget."""
        return len(set(self.trials[: np.searchsorted(self.spent, budget * (1 + 1e-9), side="right")].tolist()))

    def best_at(self, costs: Array, at_most: float) -> Array:
        """The lowest value (k,) that each of the costs (k,) had bought, or `at_most` where there was none so low."""
        best = np.fmin(np.append(at_most, self.best), at_most)
        return best[np.searchsorted(self.spent, costs * (1 + 1e-9), side="right")]


# -- doing them --------------------------------------------------------------------------------------------------------


def _name(run: Run) -> str:
    return f"curves-{run.problem.kind}-{run.problem.data}-{run.method.name}-{run.searched:g}-{run.seed}"


def _code(run: Run) -> str:
    modules = (run.method.module, "curves.peers.task", "curves.peers.sources", "curves.peers.parameters")
    return run.problem.code + fingerprint(run.method.system, modules)


def _shown(run: Run, result: Result) -> str:
    facts = run.problem.facts
    last = result.best_at(np.array([run.budget]), facts.median)[0]
    regret = (last - facts.lowest) / (facts.median - facts.lowest)
    counts = f"{result.trainings()} trainings, {len(result.spent)} steps"
    return f"value {last:.4g}, regret {regret:.3f}, {counts} in {result.seconds:.1f} s"


FILES = Files(_name, _code, lambda run, answer: Result.of(answer, run.budget))


def runner(files: Files[Run, Any], shown: Any, runs: Sequence[Run]) -> Runner[Run, Any]:
    """What does these runs; the surrogate of LCBench is there for its children if any run needs it."""
    folder = next((run.problem.folder for run in runs if run.problem.folder), None)
    for problem in dict.fromkeys(run.problem for run in runs):
        problem.facts  # noqa: B018 - said on the screen before the runs, where it has to be measured
    arguments = (ensure("lcbench"), folder) if folder else ()
    return Runner(files, shown, lambda run: arguments, LIMIT_SECONDS)


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    return runner(FILES, _shown, runs).measure(runs, workers)
