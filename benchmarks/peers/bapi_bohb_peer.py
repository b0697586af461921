"""Hyperband and BOHB (HpBandSter) as a child process of the benchmark on iterative learners.

    python benchmarks/peers/bapi_bohb_peer.py PYTHON FOLDER < tasks.jsonl

Their own brackets and models, driven one run at a time without the network of workers, at their defaults: eta = 3, from
1 to 52 steps, so rungs at 2, 6, 17 and 52. A promoted run goes on and is charged its new steps.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import ConfigSpace
import numpy as np
from bapi_task import FIRST_RUNG, STEPS, Record, Task, serve
from hpbandster.core.dispatcher import Job
from hpbandster.optimizers.bohb import BOHB
from hpbandster.optimizers.config_generators.bohb import BOHB as Densities
from hpbandster.optimizers.config_generators.random_sampling import RandomSampling
from hpbandster.optimizers.hyperband import HyperBand

VERSIONS = {name: version(name) for name in ("hpbandster", "ConfigSpace", "statsmodels", "numpy", "scipy")}
ETA = 3
KINDS = {"hyperband": (HyperBand, RandomSampling), "bohb": (BOHB, Densities)}


def hyperparameter(one: Mapping[str, Any]) -> Any:
    is_whole = one["type"] == "uniform_int"
    kind = ConfigSpace.UniformIntegerHyperparameter if is_whole else ConfigSpace.UniformFloatHyperparameter
    return kind(one["name"], one["lower"], one["upper"], log=one["log"])


def search(record: Record, task: Task) -> None:
    np.random.seed(task["seed"])  # noqa: NPY002 - what HpBandSter draws from
    space = ConfigSpace.ConfigurationSpace(seed=task["seed"])
    space.add_hyperparameters([hyperparameter(one) for one in record.space])
    optimiser, sampler = KINDS[task["method"]]
    generator = sampler(space)
    rungs = -int(np.log(FIRST_RUNG / STEPS) / np.log(ETA)) + 1  # as its constructor has it
    budgets = STEPS * np.power(float(ETA), -np.linspace(rungs - 1, 0, rungs))
    brackets = SimpleNamespace(eta=ETA, max_SH_iter=rungs, budgets=budgets, config_generator=generator)
    number = 0
    while record.is_open:
        bracket = optimiser.get_next_iteration(brackets, number, {"result_logger": None})
        while (run := bracket.get_next_run()) is not None:
            config_id, config, budget = run
            value = record.training(config_id, config).until(budget)
            job = Job(config_id, config=config, budget=budget)
            job.timestamps, job.result, job.exception = {}, {"loss": value, "info": {}}, None
            bracket.register_result(job)
            generator.new_result(job)
        number += 1


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
