"""Farthing as a child process of the benchmarks, through its public names only.

    python benchmarks/peers/farthing_peer.py latency --n 100 --rounds 15 --seed 0
    python benchmarks/peers/farthing_peer.py quality < tasks.jsonl

The policy is `ei` at its defaults, but for `initial` in the quality task, which gives the first
configurations.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from command import main
from latency_task import DIMENSIONS, Array
from quality_task import Config, Task

import farthing

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


class FarthingQuality:
    """The quality task with as many initial points as are given."""

    def __init__(self, space: Any, task: Task) -> None:
        self._study = farthing.Study(
            space,
            farthing.Budget(evaluations=task["evaluations"]),
            policy=farthing.policies.EI(initial=len(task["start"])),
            seed=task["seed"],
            start=task["start"],
        )

    def ask(self) -> Config:
        self._proposal = self._study.ask()
        return dict(self._proposal.config)

    def tell(self, value: float) -> None:
        self._study.tell(self._proposal, value=value)


if __name__ == "__main__":
    main(__doc__, VERSIONS, latency=FarthingLatency, quality=FarthingQuality)
