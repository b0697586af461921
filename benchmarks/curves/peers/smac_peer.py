"""SMAC3's multi-fidelity facade as a child process of the benchmarks on learners that train in steps.

    python -m benchmarks.curves.peers.smac_peer [PYTHON FOLDER] < tasks.jsonl

`MultiFidelityFacade`: a random forest and Hyperband, eta = 3, from 1 step on (rungs at 2, 6, 17 and 52 of 52 steps),
told that the objective is deterministic. A promoted configuration goes on and is charged its new steps. Its first
design has FIRST random configurations: by default it would be 70 for 7 hyperparameters, more than most of the budgets
can begin. A training that fails is told as CRASHED, with the worst value so far: its model scales values by the largest
of them, so the default of infinity would leave nothing of the others.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from importlib.metadata import version

from ConfigSpace import ConfigurationSpace
from smac import MultiFidelityFacade as Facade
from smac import Scenario
from smac.runhistory import StatusType, TrialValue

from benchmarks.curves.peers.parameters import hyperparameter
from benchmarks.curves.peers.task import FIRST_RUNG, Record, Task, TrainingFailed, serve

VERSIONS = {name: version(name) for name in ("smac", "ConfigSpace", "scikit-learn", "numpy", "scipy")}
FIRST = 10
PLENTY = 1_000_000  # trials
PENALTY = 1_000.0  # of a failure before any value
SUCCESS, CRASHED = StatusType.SUCCESS, StatusType.CRASHED


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
            max_budget=record.steps,
            seed=task["seed"],
        )
        design = Facade.get_initial_design(scenario, n_configs=FIRST)
        facade = Facade(
            scenario, lambda config, seed=0, budget=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )
        told: list[float] = []
        while record.is_open:
            trial = facade.ask()
            before, config = record.spent, dict(trial.config)
            try:
                value, status = record.training(tuple(sorted(config.items())), config).until(trial.budget), SUCCESS
            except TrainingFailed:
                value, status = max(told, default=PENALTY), CRASHED
            told.append(value)
            facade.tell(trial, TrialValue(cost=value, time=record.spent - before, status=status), save=False)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="smac|sklearn|ConfigSpace")
    serve(search, VERSIONS)
