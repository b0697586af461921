"""What the runs of the benchmark on synthetic functions say: regret against cost, and who is lowest where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bopt_synthetic.runs import CHEAP, CONTINUED, Method, Result, Run, initial_cost
from benchmarks.common.statistics import percent
from benchmarks.common.two_level_functions import FUNCTIONS, Function

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-6  # a mean regret below this is none


@dataclass(frozen=True)
class Won:
    """Shares of the cost levels: with the lowest mean regret alone, and where a rival has none left either."""

    alone: float
    shared: float

    def __str__(self) -> str:
        return percent(self.alone) + (f" + {percent(self.shared)}" if self.shared else "")


@dataclass(frozen=True)
class Findings:
    """Results of all methods on one function, with one account of costs."""

    function: Function
    methods: tuple[Method, ...]
    results: Mapping[Method, list[Result]]
    continued: float = CONTINUED  # cost of a complete run after a cheap one of the same point

    @property
    def first(self) -> float:
        return initial_cost(self.function, self.continued)

    @property
    def costs(self) -> Array:
        """The cost levels: every fifth of a unit after the first design."""
        count = round((self.function.budget - self.first) / CHEAP)
        return np.round(self.first + CHEAP * np.arange(1, count + 1), 6)

    def cost_at(self, share: float) -> float:
        return self.first + share * (self.function.budget - self.first)

    def regret(self, method: Method, costs: Array) -> Array:  # (seeds, k)
        optimum = self.function.optimum
        return np.array([result.regret_at(costs, optimum, self.continued) for result in self.results[method]])

    def area(self, method: Method) -> Array:  # (seeds,)
        """EC-AUC: the area under regret against cost, from the first design to the budget."""
        return self.regret(method, self.costs - CHEAP).sum(axis=1) * CHEAP  # constant between two levels

    def of(self, kind: str) -> list[Method]:
        return [method for method in self.methods if method.kind == kind]

    @property
    def elsewhere(self) -> list[Method]:
        """The rivals that run on nothing of Farthing's."""
        return [method for method in self.of("rival") if method.system != "farthing"]

    def won(self, methods: Sequence[Method], rivals: Sequence[Method]) -> Won:
        """At which cost levels one of the methods has a lower mean regret than every rival."""
        ours, theirs = (
            np.min([self.regret(method, self.costs).mean(axis=0) for method in group], axis=0)
            for group in (methods, rivals)
        )
        solved = np.maximum(ours, theirs) < NEGLIGIBLE
        return Won(float(((ours < theirs) & ~solved).mean()), float(solved.mean()))

    def counted_with(self, continued: float) -> Findings:
        return Findings(self.function, self.methods, self.results, continued)


def findings(results: Mapping[Run, Result], functions: Sequence[str], methods: Sequence[Method], seeds: int) -> Any:
    """By function, of the methods that have all runs; and the others."""
    runs = {method: [Run(f, method, s) for f in functions for s in range(seeds)] for method in methods}
    whole = tuple(method for method in methods if all(run in results for run in runs[method]))
    found = {
        name: Findings(
            FUNCTIONS[name], whole, {m: [results[Run(name, m, s)] for s in range(seeds)] for m in whole}
        )
        for name in functions
    }  # fmt: skip
    return found, [method for method in methods if method not in whole]
