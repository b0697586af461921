"""Trials a second of an objective that works for a millisecond and raises, for benchmarks/start; no arguments"""

from __future__ import annotations

import json
import time

import farthing as ft

SECONDS = 10


def objective(config: dict[str, float]) -> float:
    time.sleep(0.001)
    raise ValueError(f"x = {config['x']} is of no use")


if __name__ == "__main__":
    space, budget = ft.Space(x=ft.Real(0.0, 1.0)), f"{SECONDS}s"
    study = ft.tune(objective, space, budget, policy="random", seed=0, max_failures=None, progress=False)
    print(json.dumps({"trials": study.count(), "per_second": study.count() / SECONDS}))
