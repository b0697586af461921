"""The runs of the benchmark on iterative learners: who searches, on which task of LCBench, with which budget and seed.

Finished runs, and what is known of a task, lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.children import Child
from benchmarks.common.environments import digest, ensure, requirements
from benchmarks.common.fingerprints import code_hash, fingerprint, module_file
from benchmarks.common.kept_runs import Files, Runner, once

Array = NDArray[np.float64]

LIMIT_SECONDS = 3_600.0  # of one run
SEEDS_APART = 1_000_000
SAMPLE, SAMPLE_SEED = 10_000, 2024  # random configurations that a task is known by

TASKS = (3945, 7593, 126026, 126029, 146212, 167104, 167152, 167161, 167181, 167184, 167190, 167200)
WIDE = TASKS[::3]  # with all three budgets
USUAL = 8.0  # mean costs of a training
MULTIPLES = (4.0, USUAL, 16.0)


# -- methods -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `module` the peer; `policy` is Farthing's, as JSON."""

    name: str
    title: str
    kind: str  # "bapi": what the page is about; "ablation": with other options; "own": others of ours; "peer"
    system: str
    module: str
    policy: str = "{}"

    @property
    def library(self) -> str:
        return self.module.rpartition(".")[2].removesuffix("_peer")

    @property
    def knows_budget(self) -> bool:
        """Whether another budget may make another run, and not only a longer one."""
        return self.system == "farthing"


def own(name: str, kind: str = "own", title: str | None = None, /, **policy: Any) -> Method:
    """A policy of Farthing's, with options."""
    described = json.dumps(policy or {"name": name}, sort_keys=True)
    return Method(name, title or f"`{name}`", kind, "farthing", "bapi.peers.farthing_peer", described)


METHODS = (
    own("bapi", "bapi"),
    own("bapi-last", "ablation", '`BAPI(points="last")`', name="bapi", points="last"),
    own("bapi-plain", "ablation", "`BAPI(monotone=False)`", name="bapi", monotone=False),
    own("bopt"),
    own("ei", "own", "`ei`", name="ei", end="ignored"),  # blind to cost, also at the end of the budget
    own("eipu"),
    Method("random", "random search", "peer", "blackbox", "bapi.peers.optuna_peer"),
    Method("hyperband", "Hyperband", "peer", "bohb", "bapi.peers.bohb_peer"),
    Method("bohb", "BOHB", "peer", "bohb", "bapi.peers.bohb_peer"),
    Method("tpe-median", "TPE, median pruner", "peer", "blackbox", "bapi.peers.optuna_peer"),
    Method("tpe-hyperband", "TPE, Hyperband pruner", "peer", "blackbox", "bapi.peers.optuna_peer"),
    Method("smac", "SMAC3, multi-fidelity", "peer", "blackbox", "bapi.peers.smac_peer"),
)


# -- what is known of a task -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """From a fixed sample of random configurations: mean cost of a training, median of last values, lowest value."""

    cost: float
    median: float
    lowest: float


@cache
def _surrogate_code(folder: Path) -> str:
    files = [folder / name for name in ("model.onnx", "config_space.json", "encoding.json", "schema.json")]
    code = code_hash(map(module_file, ("bapi.peers.surrogate", "common.lcbench")))
    return digest(*files, requirements("lcbench")) + code


@cache
def facts_of(folder: Path, task: int) -> Facts:
    """Measured once, then kept."""
    asked = {"task": str(task), "count": SAMPLE, "seed": SAMPLE_SEED}

    def drawn() -> dict[str, Any]:
        print(f"drawing {SAMPLE} trainings of task {task}", flush=True)
        with Child("lcbench", "bapi.peers.surrogate", [folder], LIMIT_SECONDS) as child:
            return child.ask(asked)

    return Facts(**once(f"bapi-task-{task}", [asked, _surrogate_code(folder)], drawn))


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """`multiple` is the budget in mean costs of a training."""

    folder: Path
    openml_task: int
    method: Method
    multiple: float
    seed: int

    @property
    def budget(self) -> float:
        return self.multiple * facts_of(self.folder, self.openml_task).cost

    @property
    def searched(self) -> float:
        """The multiple that is searched with: who does not know the budget does the widest only, and is cut."""
        is_longer = self.openml_task in WIDE and not self.method.knows_budget
        return max(self.multiple, *MULTIPLES) if is_longer else self.multiple

    @property
    def task(self) -> dict[str, Any]:
        return {
            "task": str(self.openml_task),
            "method": self.method.name if self.method.kind == "peer" else "policy",
            "policy": json.loads(self.method.policy),
            "seed": self.seed * SEEDS_APART + self.openml_task,  # the same for all methods, another one on every task
            "budget": self.searched * facts_of(self.folder, self.openml_task).cost,
        }

    def __str__(self) -> str:
        return f"{self.openml_task} x{self.multiple:g} {self.method.name} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Result:
    """What a run trained within its budget, step by step."""

    spent: Array  # (n,) cost by the end of each step
    best: Array  # (n,) lowest value by then
    trainings: int
    plans: list[list[Any]]
    seconds: float
    versions: dict[str, str]

    @classmethod
    def of(cls, answer: dict[str, Any], budget: float) -> Result:
        spent = np.cumsum(answer["costs"])
        count = int(np.searchsorted(spent, budget * (1 + 1e-9), side="right"))
        best = np.minimum.accumulate(np.array(answer["values"], float)[:count])
        trainings = len(set(answer["trials"][:count]))
        return cls(spent[:count], best, trainings, answer["plans"], answer["seconds"], answer["versions"])

    def best_at(self, costs: Array, at_most: float) -> Array:
        """The lowest value (k,) that each of the costs (k,) had bought, or `at_most` where there was none so low."""
        best = np.minimum(np.append(at_most, self.best), at_most)
        return best[np.searchsorted(self.spent, costs * (1 + 1e-9), side="right")]


# -- doing them --------------------------------------------------------------------------------------------------------


def _name(run: Run) -> str:
    return f"bapi-{run.openml_task}-{run.method.name}-{run.searched:g}-{run.seed}"


def _code(run: Run) -> str:
    modules = (run.method.module, "bapi.peers.task")
    return _surrogate_code(run.folder) + fingerprint(run.method.system, modules)


def _shown(run: Run, result: Result) -> str:
    facts = facts_of(run.folder, run.openml_task)
    last = result.best_at(np.array([run.budget]), facts.median)[0]
    regret = (last - facts.lowest) / (facts.median - facts.lowest)
    counts = f"{result.trainings} trainings, {len(result.spent)} steps"
    return f"error {last:.4g}, regret {regret:.3f}, {counts} in {result.seconds:.1f} s"


FILES = Files(_name, _code, lambda run, answer: Result.of(answer, run.budget))


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    ensure("lcbench")
    for folder, task in sorted({(run.folder, run.openml_task) for run in runs}):
        facts_of(folder, task)
    arguments = lambda run: (ensure("lcbench"), run.folder)  # noqa: E731
    return Runner(FILES, _shown, arguments, LIMIT_SECONDS).measure(runs, workers)
