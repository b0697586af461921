"""FLAML's tune.run, for benchmarks/overhead: python -m benchmarks.overhead.peers.flaml_peer STUDY (as JSON)"""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.overhead.task import BOUNDS, Given, Objective, serve

warnings.filterwarnings("ignore", message="flaml.automl is not available")  # nor needed
import flaml  # noqa: E402
import optuna  # noqa: E402  # which its default search uses, and logs a line
from flaml import tune  # noqa: E402


def study(given: Given, objective: Objective) -> dict[str, str]:
    def value(config: dict[str, Any]) -> dict[str, float]:
        return {"value": objective(config)}

    tune.run(
        value, config={name: tune.uniform(*bounds) for name, bounds in BOUNDS.items()}, metric="value", mode="min",
        time_budget_s=given.budget, num_samples=-1, verbose=0,
    )  # fmt: skip
    return {"flaml": flaml.__version__}


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(study)
