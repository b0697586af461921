"""SMAC3 as a child process of the black-box benchmark.

    python -m benchmarks.blackbox.peers.smac_peer FOLDER < tasks.jsonl

`HyperparameterOptimizationFacade`, the one SMAC's documentation recommends for hyperparameters of mixed kinds: a random
forest on log values, log EI, one random configuration in five, a new fit after every 8 configurations. It is told that
the objective is deterministic, and has no limit on trials. Ordered parameters are ordinal, the others categorical.

The first configurations are its initial design. Its default would be 10 Sobol points per parameter, 50 or 90 here,
which costs more than the whole budget.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from importlib.metadata import version

from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, OrdinalHyperparameter
from ConfigSpace.hyperparameters import Hyperparameter
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario
from smac.runhistory import TrialValue

from benchmarks.blackbox.peers.task import Task, serve
from benchmarks.common.tables import Parameter, Table

VERSIONS = {name: version(name) for name in ("smac", "ConfigSpace", "scikit-learn", "numpy", "scipy")}
PLENTY = 1_000_000  # trials


def hyperparameter(parameter: Parameter) -> Hyperparameter:
    """The levels of a parameter as SMAC sees them."""
    kind = OrdinalHyperparameter if parameter.ordered else CategoricalHyperparameter
    return kind(parameter.name, list(range(len(parameter.values))))


class SMAC:
    """`facade.ask` and `facade.tell`."""

    def __init__(self, table: Table, task: Task) -> None:
        self._names = [parameter.name for parameter in table.parameters]
        space = ConfigurationSpace(seed=task["seed"])
        space.add([hyperparameter(parameter) for parameter in table.parameters])
        start = [Configuration(space, values=dict(zip(self._names, levels, strict=True))) for levels in task["start"]]
        self._folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space, output_directory=self._folder.name, deterministic=True, n_trials=PLENTY, seed=task["seed"]
        )
        design = Facade.get_initial_design(scenario, n_configs=0, additional_configs=start)
        self._facade = Facade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )

    def ask(self, n: int) -> list[list[int]]:
        self._trials = [self._facade.ask() for _ in range(n)]
        return [[int(trial.config[name]) for name in self._names] for trial in self._trials]

    def tell(self, values: list[float], costs: list[float]) -> None:
        for trial, value, cost in zip(self._trials, values, costs, strict=True):
            self._facade.tell(trial, TrialValue(cost=value, time=cost), save=False)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="smac|sklearn|ConfigSpace")
    serve(SMAC, VERSIONS)
