"""Farthing as a child process of the benchmark of latency, through its public names only.

    python -m benchmarks.latency.peers.farthing_peer --n 100 --rounds 15 --seed 0

The policy is `ei` at its defaults.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import farthing
from benchmarks.latency.peers.task import DIMENSIONS, Array, main

PLENTY = farthing.Budget(evaluations=10_000)
VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


class FarthingLatency:
    """The latency task on `study.ask` and `study.tell`; the fed trials enter as start configurations."""

    def __init__(self, seed: int) -> None:
        self._space = farthing.Space({f"x{i}": farthing.Real(0.0, 1.0) for i in range(DIMENSIONS)})
        self._seed = seed

    def feed(self, points: Array, values: Array) -> None:
        start = [dict(zip(self._space.names, map(float, point), strict=True)) for point in points]
        self._study = farthing.Study(self._space, PLENTY, policy="ei", seed=self._seed, start=start)
        for value in values:
            self._study.tell(self._study.ask(), value=float(value))

    def suggest(self) -> Array:
        self._proposal = self._study.ask()
        return np.array([self._proposal.config[name] for name in self._space.names])

    def tell(self, point: Array, value: float) -> None:
        self._study.tell(self._proposal, value=value)


if __name__ == "__main__":
    main(__doc__, VERSIONS, FarthingLatency)
