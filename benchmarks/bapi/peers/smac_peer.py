"""SMAC3's multi-fidelity facade as a child process of the benchmark on iterative learners.

    python -m benchmarks.bapi.peers.smac_peer PYTHON FOLDER < tasks.jsonl

`MultiFidelityFacade`: a random forest and Hyperband, eta = 3, from 1 to 52 steps (rungs at 2, 6, 17 and 52), told that
the objective is deterministic. A promoted configuration goes on and is charged its new steps. Its first design has
FIRST random configurations: by default it would be 70 here, more than most of the budgets can begin.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ConfigSpace import ConfigurationSpace, Float, Integer
from smac import MultiFidelityFacade as Facade
from smac import Scenario
from smac.runhistory import TrialValue

from benchmarks.bapi.peers.task import FIRST_RUNG, STEPS, Record, Task, serve

VERSIONS = {name: version(name) for name in ("smac", "ConfigSpace", "scikit-learn", "numpy", "scipy")}
FIRST = 10
PLENTY = 1_000_000  # trials


def hyperparameter(one: Mapping[str, Any]) -> Any:
    kind = Integer if one["type"] == "uniform_int" else Float
    return kind(one["name"], (one["lower"], one["upper"]), log=one["log"])


def search(record: Record, task: Task) -> None:
    space = ConfigurationSpace(seed=task["seed"])
    space.add([hyperparameter(one) for one in record.space])
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            output_directory=folder,
            deterministic=True,
            n_trials=PLENTY,
            min_budget=FIRST_RUNG,
            max_budget=STEPS,
            seed=task["seed"],
        )
        design = Facade.get_initial_design(scenario, n_configs=FIRST)
        facade = Facade(
            scenario, lambda config, seed=0, budget=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )
        while record.is_open:
            trial = facade.ask()
            before, config = record.spent, dict(trial.config)
            value = record.training(tuple(sorted(config.items())), config).until(trial.budget)
            facade.tell(trial, TrialValue(cost=value, time=record.spent - before), save=False)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="smac|sklearn|ConfigSpace")
    serve(search, VERSIONS)
