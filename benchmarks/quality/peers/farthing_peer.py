"""Farthing as a child process of the benchmark of quality, through its public names only.

    python -m benchmarks.quality.peers.farthing_peer < tasks.jsonl

The policy is `ei` at its defaults, except for `initial`: the task gives the first configurations.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import farthing
from benchmarks.quality.peers.task import Config, Task, serve

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


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
    serve(FarthingQuality, VERSIONS)
