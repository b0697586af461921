"""The runs of the benchmark on functions of two levels: who searches, on which function, with which seed.

Finished runs lie in benchmarks/cache under a hash of the task and of the code that did it, so a benchmark that was
interrupted continues; comments and docstrings do not count. Of Farthing's code what a policy imports counts, directly
or not, for policies are pure: the study around them carries what they choose, records hold what became of it, and cost
models have nothing to say here.
"""

from __future__ import annotations

import ast
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

from children import Child
from environments import BENCHMARKS, ROOT, digest, requirements
from farthing.designs.nested import nested_latin_hypercube
from farthing.policies.bopt.policy import PAPER
from kept_runs import Files, Runner
from peers.bopt_functions import FUNCTIONS, Function

Array = NDArray[np.float64]

CACHE = BENCHMARKS / "cache"
PEERS = BENCHMARKS / "peers"
SOURCE = ROOT / "src" / "farthing"
LIMIT_SECONDS = 1_800.0  # of one run
CHEAP, COMPLETE = 0.2, 1.0
CONTINUED = COMPLETE - CHEAP
RECORDS = frozenset({"budget", "description", "errors", "events", "history", "trial"})
COSTS = frozenset({"cost_knowledge", "surrogates.cost_choice", "surrogates.transfer", "policies.costs"})


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `script` the peer, `roots` the modules of Farthing it runs on."""

    name: str
    title: str
    kind: str  # "bopt": ours; "paper": the same with the options of the paper; "rival"
    system: str
    script: str
    levels: int  # that it uses
    policy: tuple[tuple[str, str], ...] = ()
    roots: tuple[str, ...] = ()


def _bopt(surrogate: str, is_default: bool) -> Method:
    title = f"{surrogate.upper()}-BOPT" + ("" if is_default else ", as in the paper")
    options = () if is_default else tuple(PAPER.items())
    policy = (("name", "bopt"), ("surrogate", surrogate), *options)
    name, kind = (surrogate, "bopt") if is_default else (f"{surrogate}-paper", "paper")
    return Method(name, title, kind, "farthing", "bopt_farthing_peer.py", 2, policy, ("policies.bopt",))


EI = Method("ei", "`ei`", "rival", "farthing", "bopt_farthing_peer.py", 1, (("name", "ei"),), ("policies.ei",))
EQIE_ROOTS = ("surrogates.two_fidelity", "acquisitions.maximize")
EQIE = Method("eqie", "EQIE", "rival", "farthing", "bopt_eqie_peer.py", 2, (), EQIE_ROOTS)
METHODS = (
    *(_bopt(surrogate, is_default) for is_default in (True, False) for surrogate in ("tgp", "dgp")),
    EQIE,
    EI,
    Method("random", "random search", "rival", "blackbox", "bopt_optuna_peer.py", 1),
    Method("tpe", "Optuna TPE", "rival", "blackbox", "bopt_optuna_peer.py", 1),
    Method("bohb", "BOHB", "rival", "bohb", "bopt_bohb_peer.py", 2),
    Method("smac", "SMAC3", "rival", "blackbox", "bopt_smac_peer.py", 1),
)


# -- runs --------------------------------------------------------------------------------------------------------------


@cache
def design(name: str, seed: int) -> list[list[float]]:
    """The nested design of a seed, as policy `bopt` draws it."""
    function = FUNCTIONS[name]
    rng = np.random.default_rng(seed)
    return nested_latin_hypercube(function.initial, 2 * function.initial, function.p, rng).tolist()


def initial_cost(function: Function, continued: float = CONTINUED) -> float:
    """What the nested design costs."""
    return 2 * function.initial * CHEAP + function.initial * continued


@dataclass(frozen=True)
class Run:
    function: str
    method: Method
    seed: int

    @property
    def task(self) -> dict[str, Any]:
        name = self.function
        if self.method.levels == 1:  # the cheap version does not matter to who never asks for it: done once
            name = next(f.name for f in FUNCTIONS.values() if f.complete is FUNCTIONS[name].complete)
        return {
            "function": name,
            "method": self.method.name,
            "policy": dict(self.method.policy),
            "seed": self.seed,
            "budget": FUNCTIONS[name].budget,
            "design": design(name, self.seed),
        }

    def __str__(self) -> str:
        return f"{self.function} {self.method.name} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Result:
    """The evaluations of a run, cut ones left out."""

    levels: Array  # (n,) 0 cheap, 1 complete
    values: Array
    costs: Array
    seconds: float
    versions: dict[str, str]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Result:
        done = [i for i, value in enumerate(answer["values"]) if value is not None]
        columns = (np.array([answer[name][i] for i in done], float) for name in ("levels", "values", "costs"))
        return cls(*columns, answer["seconds"], answer["versions"])

    def steps(self, optimum: float, continued: float = CONTINUED) -> tuple[Array, Array]:
        """Where the best complete value improved: the cost spent by then, and the regret from there on.

        `continued` is what a complete run costs after a cheap one of the same point.
        """
        is_continued = (self.levels == 1) & (self.costs < COMPLETE - 1e-6)
        spent = np.round(np.cumsum(np.where(is_continued, continued, self.costs)), 6)
        spent, values = spent[self.levels == 1], self.values[self.levels == 1]
        best = np.minimum.accumulate(values)
        improved = np.flatnonzero(np.diff(best, prepend=np.inf) < 0)
        return spent[improved], np.maximum(best[improved] - optimum, 0.0)

    def regret_at(self, costs: Array, optimum: float, continued: float = CONTINUED) -> Array:
        """Simple regret (k,) after each of the costs (k,), infinite before the first complete run."""
        spent, regrets = self.steps(optimum, continued)
        return np.append(np.inf, regrets)[np.searchsorted(spent, costs + 1e-6, side="right")]


# -- what is kept ------------------------------------------------------------------------------------------------------


def _file_of(module: str) -> Path:
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


def _imported(path: Path) -> set[str]:
    """The modules of Farthing that a file imports, without their `farthing.`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("farthing."):
            module = (node.module or "").removeprefix("farthing.")
            below = {f"{module}.{alias.name}" for alias in node.names}
            found |= {name for name in below if _file_of(name).exists()} or {module}
        elif isinstance(node, ast.ImportFrom) and node.module == "farthing":
            found |= {alias.name for alias in node.names}
    return {name for name in found - RECORDS - COSTS if _file_of(name).exists()}


def sources(roots: Sequence[str]) -> list[Path]:
    """The files of the modules and of all that they import from Farthing."""
    seen, waiting = set[str](), set(roots)
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting |= _imported(_file_of(module)) - seen
    return sorted(_file_of(module) for module in seen)


def code_of(path: Path) -> str:
    """What a file does: comments, docstrings and layout left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        match node:
            case ast.AST(body=[ast.Expr(value=ast.Constant()), *rest]):
                node.body = rest or [ast.Pass()]
    return ast.dump(tree)


@cache
def _fingerprint(method: Method) -> str:
    own = [PEERS / name for name in (method.script, "bopt_task.py", "bopt_functions.py")]
    code = "".join(map(code_of, (*own, *sources(method.roots))))
    return digest(requirements(method.system)) + hashlib.sha256(code.encode()).hexdigest()[:16]


def _path(run: Run) -> Path:
    key = json.dumps([run.task, _fingerprint(run.method)], sort_keys=True)
    short = hashlib.sha256(key.encode()).hexdigest()[:16]
    return CACHE / f"bopt-synthetic-{run.task['function']}-{run.method.name}-{run.seed}-{short}.json"


FILES = Files(_path, lambda _, answer: Result.of(answer))
kept = FILES.kept


# -- doing them --------------------------------------------------------------------------------------------------------


def _begun(run: Run) -> Child:
    return Child(run.method.system, [], LIMIT_SECONDS, run.method.script)


def _said(run: Run, result: Result) -> str:
    _, regrets = result.steps(FUNCTIONS[run.function].optimum)
    return f"regret {regrets[-1]:.3g}, {len(result.values)} runs in {result.seconds:.1f} s"


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    return Runner(FILES, _begun, lambda run: run.task, _said).measure(runs, workers)


def planned(seeds: int, functions: Sequence[str], methods: Sequence[Method]) -> list[Run]:
    """Every method on every function, one method after the other."""
    return [Run(function, method, seed) for method, seed, function in product(methods, range(seeds), functions)]
