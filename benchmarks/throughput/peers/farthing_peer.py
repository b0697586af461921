"""Farthing's policy `random` with a study file, as a child process of benchmarks/throughput.

python -m benchmarks.throughput.peers.farthing_peer FILE TRIALS
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.throughput.peers.task import WARM_UP_TRIALS, Turns, objective

VERSIONS = {"numpy": np.__version__, "sqlite": sqlite3.sqlite_version}

SPACE = ft.Space(
    x=ft.Real(-5.0, 10.0),
    y=ft.Real(0.0, 15.0),
    rate=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 16),
    kind=ft.Choice(["a", "b", "c"]),
)


def evaluate(config: dict[str, Any]) -> float:
    return objective(**config)


def main(path: str, trials: int) -> None:
    ft.tune(evaluate, SPACE, f"{WARM_UP_TRIALS} evaluations", policy="random", seed=1, progress=False)
    study = ft.Study(SPACE, f"{trials} evaluations", policy="random", seed=0, storage=path)
    turns = Turns(VERSIONS)

    def ended(study: ft.Study, trial: ft.Trial) -> None:
        if not turns.go_on():
            study.stop()

    if turns.begin():
        study.run(evaluate, progress=False, callbacks=[ended])
    study.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
