"""FLAML's tune.run with a time budget, as a child process of benchmarks/runner_budgets.

python -m benchmarks.runner_budgets.peers.flaml_peer BUDGET TRIAL_SECONDS STEPS
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.runner_budgets.peers.task import Given, Ran, serve

BEGAN = time.perf_counter()

warnings.filterwarnings("ignore", message="flaml.automl is not available")  # nor needed
import flaml  # noqa: E402
from flaml import tune  # noqa: E402

IMPORTED = time.perf_counter()

import optuna  # noqa: E402  # which its default search uses, and logs a line

GIVEN = Given.read()


def plain(config: dict[str, Any]) -> dict[str, float]:
    return {"value": GIVEN.value(config["x"])}


def step_by_step(config: dict[str, Any]) -> None:
    for step, value in enumerate(GIVEN.values(config["x"]), 1):
        tune.report(value=value, step=step)


def study() -> Ran:
    analysis = tune.run(
        step_by_step if GIVEN.steps else plain,
        config={"x": tune.uniform(-5, 5)}, metric="value", mode="min",
        time_budget_s=GIVEN.budget, num_samples=-1, verbose=0,
    )  # fmt: skip
    ended = [trial for trial in analysis.trials if trial.last_result]
    return Ran(len(ended), bool(ended))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(study, {"flaml": flaml.__version__}, IMPORTED - BEGAN)
