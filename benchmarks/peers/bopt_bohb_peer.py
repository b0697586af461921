"""BOHB (HpBandSter) as a child process of the benchmark on synthetic functions.

    python benchmarks/peers/bopt_bohb_peer.py < tasks.jsonl

Its own density models and brackets, driven one run at a time without its network of workers. Budgets of 1/5 and 1 with
eta = 5, which gives brackets of 5 cheap runs, the best of them completed, and of 2 complete runs; else its defaults. It
accepts no first points.
"""

from __future__ import annotations

import logging
import warnings
from importlib.metadata import version
from types import SimpleNamespace

import ConfigSpace
import numpy as np
from bopt_task import CHEAP, COMPLETE, Record, Task, serve
from hpbandster.core.dispatcher import Job
from hpbandster.optimizers.bohb import BOHB
from hpbandster.optimizers.config_generators.bohb import BOHB as Generator

VERSIONS = {name: version(name) for name in ("hpbandster", "ConfigSpace", "statsmodels", "numpy", "scipy")}
ETA = COMPLETE / CHEAP


def search(record: Record, task: Task) -> None:
    np.random.seed(task["seed"])  # noqa: NPY002 - what HpBandSter draws from
    names = [f"x{i:02d}" for i in range(record.function.p)]
    space = ConfigSpace.ConfigurationSpace(seed=task["seed"])
    space.add_hyperparameters([ConfigSpace.UniformFloatHyperparameter(name, 0.0, 1.0) for name in names])
    generator = Generator(space)
    brackets = SimpleNamespace(eta=ETA, max_SH_iter=2, budgets=np.array([CHEAP, COMPLETE]), config_generator=generator)
    number = 0
    while record.is_open:
        bracket = BOHB.get_next_iteration(brackets, number, {"result_logger": None})
        while (run := bracket.get_next_run()) is not None:
            config_id, config, budget = run
            point = [config[name] for name in names]
            value = record.cheap(point) if budget < COMPLETE else record.complete(point)
            job = Job(config_id, config=config, budget=budget)
            job.timestamps, job.result, job.exception = {}, {"loss": value, "info": {}}, None
            bracket.register_result(job)
            generator.new_result(job)
        number += 1


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
