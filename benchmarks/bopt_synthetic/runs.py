"""The runs of the benchmark on functions of two levels: who searches, on which function, with which seed.

Finished runs lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.fingerprints import fingerprint
from benchmarks.common.kept_runs import Files, Runner
from benchmarks.common.two_level_functions import FUNCTIONS, Function
from farthing import policies
from farthing.designs.nested import nested_latin_hypercube

Array = NDArray[np.float64]

LIMIT_SECONDS = 1_800.0  # of one run
CHEAP, COMPLETE = 0.2, 1.0
CONTINUED = COMPLETE - CHEAP


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `module` the peer."""

    name: str
    title: str
    kind: str  # "bopt": ours; "paper": the same with the options of the paper; "rival"
    system: str
    module: str
    levels: int  # that it uses
    policy: tuple[tuple[str, str], ...] = ()


def _bopt(surrogate: str, is_default: bool) -> Method:
    title = f"{surrogate.upper()}-BOPT" + ("" if is_default else ", as in the paper")
    options = () if is_default else tuple(policies.BOPT.PAPER.items())
    policy = (("name", "bopt"), ("surrogate", surrogate), *options)
    name, kind = (surrogate, "bopt") if is_default else (f"{surrogate}-paper", "paper")
    return Method(name, title, kind, "farthing", "bopt_synthetic.peers.farthing_peer", 2, policy)


EI = Method(
    "ei", "`ei`", "rival", "farthing", "bopt_synthetic.peers.farthing_peer", 1, (("name", "ei"), ("end", "ignored"))
)
EQIE = Method(
    "eqie", "EQIE", "rival", "farthing", "bopt_synthetic.peers.farthing_peer", 2,
    (("name", "eqie"), *policies.EQIE.PAPER.items()),
)  # fmt: skip
METHODS = (
    *(_bopt(surrogate, is_default) for is_default in (True, False) for surrogate in ("tgp", "dgp")),
    EQIE,
    EI,
    Method("random", "random search", "rival", "blackbox", "bopt_synthetic.peers.optuna_peer", 1),
    Method("tpe", "Optuna TPE", "rival", "blackbox", "bopt_synthetic.peers.optuna_peer", 1),
    Method("bohb", "BOHB", "rival", "bohb", "bopt_synthetic.peers.bohb_peer", 2),
    Method("smac", "SMAC3", "rival", "blackbox", "bopt_synthetic.peers.smac_peer", 1),
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


# -- doing them --------------------------------------------------------------------------------------------------------


def _name(run: Run) -> str:
    return f"bopt-synthetic-{run.task['function']}-{run.method.name}-{run.seed}"


def _code(run: Run) -> str:
    modules = (run.method.module, "bopt_synthetic.peers.task", "common.two_level_functions")
    return fingerprint(run.method.system, modules)


def _shown(run: Run, result: Result) -> str:
    _, regrets = result.steps(FUNCTIONS[run.function].optimum)
    return f"regret {regrets[-1]:.3g}, {len(result.values)} runs in {result.seconds:.1f} s"


FILES = Files(_name, _code, lambda _, answer: Result.of(answer))


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs; those that failed are named on the screen and left out."""
    return Runner(FILES, _shown, limit_seconds=LIMIT_SECONDS).measure(runs, workers)


def planned(seeds: int, functions: Sequence[str], methods: Sequence[Method]) -> list[Run]:
    """Every method on every function, one method after the other."""
    return [Run(function, method, seed) for method, seed, function in product(methods, range(seeds), functions)]
