"""Farthing's policy `random` under a budget of seconds, as a child process of benchmarks/runner_budgets.

python -m benchmarks.runner_budgets.peers.farthing_peer BUDGET TRIAL_SECONDS STEPS
"""

from __future__ import annotations

import time

from benchmarks.runner_budgets.peers.task import Given, Ran, serve

BEGAN = time.perf_counter()

from farthing import Real, Space, Status, tune  # noqa: E402  # looked up here: that loads the library

IMPORTED = time.perf_counter()

import numpy as np  # noqa: E402

from farthing.errors import NoTrial  # noqa: E402

GIVEN = Given.read()


def plain(config):
    return GIVEN.value(config["x"])


def step_by_step(config):
    yield from GIVEN.values(config["x"])


def study() -> Ran:
    objective = step_by_step if GIVEN.steps else plain
    ran = tune(objective, Space(x=Real(-5, 5)), f"{GIVEN.budget:g}s", policy="random", seed=0, progress=False)
    complete = sum(trial.status is Status.COMPLETE for trial in ran.trials)
    try:
        found = ran.best.value is not None
    except NoTrial:
        found = False
    return Ran(complete, found)


if __name__ == "__main__":
    serve(study, {"numpy": np.__version__}, IMPORTED - BEGAN)
