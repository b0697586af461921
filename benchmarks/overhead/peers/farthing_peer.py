"""Farthing, for benchmarks/overhead: python -m benchmarks.overhead.peers.farthing_peer STUDY (as JSON)"""

from __future__ import annotations

import farthing as ft
from benchmarks.common.versions import version
from benchmarks.overhead.task import BOUNDS, Given, Objective, serve

SPACE = ft.Space({name: ft.Real(*bounds) for name, bounds in BOUNDS.items()})
IN_TURN = {"isolate": False}  # in this process, where nothing is prepared in the background


def study(given: Given, objective: Objective, **options: bool) -> dict[str, str]:
    ft.tune(objective, SPACE, f"{given.budget:g}s", seed=0, progress=False, **options)
    return {name: version(name) for name in ("farthing", "numpy", "scipy")}


if __name__ == "__main__":
    serve(study)
