"""SMAC3 as a child process of the benchmark on synthetic functions: complete runs only.

    python -m benchmarks.bopt_synthetic.peers.smac_peer < tasks.jsonl

`HyperparameterOptimizationFacade` (a random forest, as in the paper), told that the objective is deterministic, without
a limit on trials. The first points are its initial design.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from importlib.metadata import version

from ConfigSpace import Configuration, ConfigurationSpace, Float
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario
from smac.runhistory import TrialValue

from benchmarks.bopt_synthetic.peers.task import Record, Task, first_complete, serve

VERSIONS = {name: version(name) for name in ("smac", "ConfigSpace", "scikit-learn", "numpy", "scipy")}
PLENTY = 1_000_000  # trials


def search(record: Record, task: Task) -> None:
    names = [f"x{i}" for i in range(record.function.p)]
    space = ConfigurationSpace(seed=task["seed"])
    space.add([Float(name, (0.0, 1.0)) for name in names])
    start = [Configuration(space, values=dict(zip(names, point, strict=True))) for point in first_complete(task)]
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, output_directory=folder, deterministic=True, n_trials=PLENTY, seed=task["seed"])
        design = Facade.get_initial_design(scenario, n_configs=0, additional_configs=start)
        facade = Facade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )
        while record.is_open:
            trial = facade.ask()
            value = record.complete([float(trial.config[name]) for name in names])
            facade.tell(trial, TrialValue(cost=value, time=1.0), save=False)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="smac|sklearn|ConfigSpace")
    serve(search, VERSIONS)
