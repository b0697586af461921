"""Farthing as a child process of the benchmark of failures, through its public names only. `method` is a policy."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import farthing
from benchmarks.failures.peers.task import Array, Task, serve

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


class Farthing:
    """A study at the policy's defaults; a crash is told as `failed`."""

    def __init__(self, p: int, task: Task) -> None:
        self._space = farthing.Space({f"x{i}": farthing.Real(0.0, 1.0) for i in range(p)})
        budget = farthing.Budget(evaluations=task["evaluations"])
        self._study = farthing.Study(self._space, budget, policy=task["method"], seed=task["seed"])

    def ask(self) -> Array:
        self._proposal = self._study.ask()
        return np.array([self._proposal.config[name] for name in self._space.names])

    def tell(self, value: float | None, cost: float) -> None:
        if value is None:
            self._study.tell(self._proposal, failed="crashed", cost=cost)
        else:
            self._study.tell(self._proposal, value=value, cost=cost)


if __name__ == "__main__":
    serve(Farthing, VERSIONS)
