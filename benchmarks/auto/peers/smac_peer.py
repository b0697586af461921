"""SMAC3 as a child process of the benchmark of `auto`.

    python -m benchmarks.auto.peers.smac_peer FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

`HyperparameterOptimizationFacade`, the one SMAC's documentation recommends for hyperparameters of mixed kinds. It is
told that the objective is deterministic, and has no limit on trials. By default, its first design is at most a quarter
of the trials; it is 10 Sobol points here, a quarter of the 40 evaluations of mean cost that a budget of the tables pays
for.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from importlib.metadata import version
from typing import Any

from ConfigSpace import ConfigurationSpace
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario
from smac.runhistory import TrialValue

from benchmarks.auto.peers.task import Task, serve
from benchmarks.curves.peers.parameters import hyperparameter

VERSIONS = {name: version(name) for name in ("smac", "ConfigSpace", "scikit-learn", "numpy", "scipy")}
FIRST = 10
PLENTY = 1_000_000  # trials


def search(record: Any, task: Task) -> None:
    space = ConfigurationSpace(seed=task["seed"])
    space.add([hyperparameter(one) for one in record.space])
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, output_directory=folder, deterministic=True, n_trials=PLENTY, seed=task["seed"])
        design = Facade.get_initial_design(scenario, n_configs=FIRST)
        facade = Facade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )
        while True:
            trial = facade.ask()
            value, cost = record.evaluate({name: plain(value) for name, value in trial.config.items()})
            facade.tell(trial, TrialValue(cost=value, time=cost), save=False)


def plain(value: Any) -> Any:
    """Options come as NumPy's text, which not every library takes."""
    return str(value) if isinstance(value, str) else value


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="smac|sklearn|ConfigSpace")
    serve(search, VERSIONS)
