"""The runs of the benchmark on iterative learners: who searches, on which task of LCBench, with which budget and seed.

Finished runs lie in benchmarks/cache under a hash of the task, of the surrogate and of the code that did it, so a
benchmark that was interrupted continues; comments and docstrings do not count. Of Farthing's code what a policy and the
models of cost import counts, directly or not. What is known of a task lies there too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bopt_synthetic_runs import CACHE, COSTS, PEERS, SOURCE, code_of, sources
from children import Child
from environments import digest, ensure, requirements
from kept_runs import Files, Runner, write

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
    """A way to search. `system` is its environment, `script` the peer; `policy` is Farthing's, as JSON."""

    name: str
    title: str
    kind: str  # "bapi": what the page is about; "ablation": with other options; "own": others of ours; "peer"
    system: str
    script: str
    policy: str = "{}"

    @property
    def knows_budget(self) -> bool:
        """Whether another budget may make another run, and not only a longer one."""
        return self.system == "farthing"

    @property
    def roots(self) -> tuple[str, ...]:
        """The modules of Farthing it runs on."""
        if self.system != "farthing":
            return ()
        name = json.loads(self.policy)["name"]
        return (f"policies.{MODULES.get(name, name)}", *sorted(COSTS))


MODULES = {"eipu": "ei_alpha", "ei_cool": "ei_alpha", "random": "sampling", "sobol": "sampling"}


def own(name: str, kind: str = "own", title: str | None = None, /, **policy: Any) -> Method:
    """A policy of Farthing's, with options."""
    described = json.dumps(policy or {"name": name}, sort_keys=True)
    return Method(name, title or f"`{name}`", kind, "farthing", "bapi_farthing_peer.py", described)


METHODS = (
    own("bapi", "bapi"),
    own("bapi-last", "ablation", '`BAPI(points="last")`', name="bapi", points="last"),
    own("bapi-plain", "ablation", "`BAPI(monotone=False)`", name="bapi", monotone=False),
    own("bopt"),
    own("ei"),
    own("eipu"),
    Method("random", "random search", "peer", "blackbox", "bapi_optuna_peer.py"),
    Method("hyperband", "Hyperband", "peer", "bohb", "bapi_bohb_peer.py"),
    Method("bohb", "BOHB", "peer", "bohb", "bapi_bohb_peer.py"),
    Method("tpe-median", "TPE, median pruner", "peer", "blackbox", "bapi_optuna_peer.py"),
    Method("tpe-hyperband", "TPE, Hyperband pruner", "peer", "blackbox", "bapi_optuna_peer.py"),
    Method("smac", "SMAC3, multi-fidelity", "peer", "blackbox", "bapi_smac_peer.py"),
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
    code = "".join(code_of(PEERS / name) for name in ("bapi_surrogate.py", "lcbench_curves.py"))
    return digest(*files, requirements("lcbench")) + hashlib.sha256(code.encode()).hexdigest()[:16]


@cache
def facts_of(folder: Path, task: int) -> Facts:
    """Measured once, then kept."""
    asked = {"task": str(task), "count": SAMPLE, "seed": SAMPLE_SEED}
    path = CACHE / f"bapi-task-{task}-{_short([asked, _surrogate_code(folder)])}.json"
    if not path.exists():
        print(f"drawing {SAMPLE} trainings of task {task}", flush=True)
        with Child("lcbench", [str(folder)], LIMIT_SECONDS, "bapi_surrogate.py") as child:
            write(path, child.ask(asked))
    return Facts(**json.loads(path.read_text()))


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """`multiple` is the budget in mean costs of a training."""

    folder: Path
    task: int
    method: Method
    multiple: float
    seed: int

    @property
    def budget(self) -> float:
        return self.multiple * facts_of(self.folder, self.task).cost

    @property
    def searched(self) -> float:
        """The multiple that is searched with: who does not know the budget does the widest only, and is cut."""
        is_longer = self.task in WIDE and not self.method.knows_budget
        return max(self.multiple, *MULTIPLES) if is_longer else self.multiple

    @property
    def described(self) -> dict[str, Any]:
        return {
            "task": str(self.task),
            "method": self.method.name if self.method.kind == "peer" else "policy",
            "policy": json.loads(self.method.policy),
            "seed": self.seed * SEEDS_APART + self.task,  # the same for all methods, another one on every task
            "budget": self.searched * facts_of(self.folder, self.task).cost,
        }

    def __str__(self) -> str:
        return f"{self.task} x{self.multiple:g} {self.method.name} seed {self.seed}"


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


# -- what is kept ------------------------------------------------------------------------------------------------------


def _short(key: object) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _fingerprint(method: Method) -> str:
    own_files = [PEERS / name for name in (method.script, "bapi_task.py")]
    code = "".join(map(code_of, (*own_files, *sources(method.roots))))
    return digest(requirements(method.system)) + hashlib.sha256(code.encode()).hexdigest()[:16]


def _path(run: Run) -> Path:
    short = _short([run.described, _surrogate_code(run.folder), _fingerprint(run.method)])
    return CACHE / f"bapi-{run.task}-{run.method.name}-{run.searched:g}-{run.seed}-{short}.json"


FILES = Files(_path, lambda run, answer: Result.of(answer, run.budget))
kept = FILES.kept


def exists(method: Method) -> bool:
    """Whether the code of a method is there."""
    return all(SOURCE.joinpath(*root.split(".")).with_suffix(".py").exists() for root in method.roots)


# -- doing them --------------------------------------------------------------------------------------------------------


def _begun(run: Run) -> Child:
    return Child(run.method.system, [str(ensure("lcbench")), str(run.folder)], LIMIT_SECONDS, run.method.script)


def _said(run: Run, result: Result) -> str:
    facts = facts_of(run.folder, run.task)
    last = result.best_at(np.array([run.budget]), facts.median)[0]
    regret = (last - facts.lowest) / (facts.median - facts.lowest)
    counts = f"{result.trainings} trainings, {len(result.spent)} steps"
    return f"error {last:.4g}, regret {regret:.3f}, {counts} in {result.seconds:.1f} s"


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    ensure("lcbench")
    for folder, task in sorted({(run.folder, run.task) for run in runs}):
        facts_of(folder, task)
    return Runner(FILES, _begun, lambda run: run.described, _said).measure(runs, workers)
