"""Farthing's policy `random` with several workers on trials that sleep, as a child of benchmarks/runner_budgets.

    python -m benchmarks.runner_budgets.peers.workers_peer WORKERS BUDGET TRIAL_SECONDS

It writes {"ready": versions}, waits for a line, runs its study and writes {"call": [begin, end], "trials": [[begin,
end], ...]} for the trials that ran to their end, as the objective saw them, all by the clock that processes share.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.runner_budgets.peers.task import emit
from farthing import Real, Space, Status, tune

WORKERS, BUDGET, TRIAL_SECONDS = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])


def objective(config):
    began = time.monotonic()
    time.sleep(TRIAL_SECONDS)
    return {"value": config["x"] ** 2, "began": began, "ended": time.monotonic()}


def main() -> None:
    emit({"ready": {"numpy": np.__version__}})
    if not sys.stdin.readline():
        return
    began = time.monotonic()
    study = tune(
        objective, Space(x=Real(-5, 5)), f"{BUDGET}s", policy="random", seed=0, workers=WORKERS, progress=False
    )
    ended = time.monotonic()
    complete = [trial.attributes for trial in study.trials if trial.status is Status.COMPLETE]
    emit({"call": [began, ended], "trials": [[each["began"], each["ended"]] for each in complete]})


if __name__ == "__main__":
    main()
