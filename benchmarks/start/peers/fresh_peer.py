"""How soon the next evaluation begins where each has a new process: python -m benchmarks.start.peers.fresh_peer LIBRARY

A limit of memory asks for a new process for every evaluation. What is measured is the time from the end of one
evaluation to the beginning of the next, so it holds the proposal and what is recorded too.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

import farthing as ft
from benchmarks.start.task import Objective, stretches_of

SECONDS = 10


def once(objective: Objective, config: dict[str, float]) -> float:
    objective.log.note("began")
    value = objective.fitted(config)
    objective.log.note("ended")
    return value


def main(library: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        objective = Objective.of(library, folder)
        space = ft.Space(x=ft.Real(-3.0, 0.0))
        ft.tune(
            partial(once, objective), space, f"{SECONDS}s", policy="random", seed=0, trial_memory="64GB", progress=False
        )
        stretches, _ = stretches_of(Path(objective.log.path).read_text().splitlines())
    gaps = [begin - end for (_, end), (begin, _) in pairwise(stretches)]
    print(json.dumps({"workers": len(gaps), "median": median(gaps), "p95": quantiles(gaps, n=20)[-1]}))


if __name__ == "__main__":
    main(sys.argv[1])
