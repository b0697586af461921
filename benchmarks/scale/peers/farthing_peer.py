"""Policy `auto` under a budget of cost, as a process of the benchmark of scale.

python -m benchmarks.scale.peers.farthing_peer --n 100 --dimensions 5 --asks 5
"""

from __future__ import annotations

import numpy as np
import scipy

import farthing as ft
from benchmarks.scale.peers.task import Array, main

VERSIONS = {"numpy": np.__version__, "scipy": scipy.__version__}


class Auto:
    """Values and costs are modelled, and the initial design is over: it has used a fifth of the budget."""

    def __init__(self, dimensions: int, system: str) -> None:
        self._space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(dimensions)})

    def feed(self, points: Array, values: Array, costs: Array) -> None:
        self._study = ft.Study(self._space, ft.Budget(cost=5.0 * float(costs.sum())), policy="auto", seed=0)
        for point, value, cost in zip(points, values, costs, strict=True):
            self._study.add(self._space.decode(point), value=float(value), cost=float(cost))

    def suggest(self) -> Array:
        self._proposal = self._study.ask()
        return np.array(list(self._proposal.config.values()))

    def tell(self, value: float, cost: float) -> None:
        self._study.tell(self._proposal, value=value, cost=cost)


if __name__ == "__main__":
    main(__doc__, VERSIONS, Auto)
