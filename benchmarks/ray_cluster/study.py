"""One study on a Ray of its own: `python -m benchmarks.ray_cluster.study WORKERS POLICY WAVES SECONDS` prints when its
trials began and ended, as JSON."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any

import farthing as ft

SPACE = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1), depth=ft.Integer(1, 12))


def nap(seconds: float, config: dict[str, Any]) -> dict[str, float]:
    began = time.time()
    time.sleep(seconds)
    return {"value": abs(config["x"] - 0.3) + config["y"] / config["depth"], "began": began, "ended": time.time()}


def main(workers: int, policy: str, waves: int, seconds: float) -> None:
    import ray

    ray.init(address="local", num_cpus=workers, include_dashboard=False, object_store_memory=100 * 2**20)
    called = time.time()
    study = ft.tune(
        partial(nap, seconds), SPACE, f"1h, {workers * waves} evaluations", policy=policy, seed=0, progress=False,
        workers=ft.Ray(n=workers),
    )  # fmt: skip
    ray.shutdown()
    trials = [(trial.attributes["began"], trial.attributes["ended"]) for trial in study.trials]
    print(json.dumps({"called": called, "trials": trials, "version": ray.__version__}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
