"""ASHA of NePS as a child process of the benchmarks on learners that train in steps.

    python -m benchmarks.curves.peers.neps_peer [PYTHON FOLDER] < tasks.jsonl

By its ask and tell, at its defaults: eta = 3, from 1 step on. A promoted configuration goes on and is charged its new
steps. A training that fails is told by its exception. NePS draws from the global generators of three libraries.
"""

from __future__ import annotations

import logging
import random
import warnings
from importlib.metadata import version
from typing import Any

import neps
import numpy as np
import torch

from benchmarks.common.described_spaces import Described
from benchmarks.curves.peers.task import FIRST_RUNG, Record, Task, TrainingFailed, serve

VERSIONS = {name: version(name) for name in ("neural-pipeline-search", "torch", "numpy", "scipy")}
STEP = "training_step"  # the name of the fidelity among the hyperparameters


def parameter(one: Described) -> Any:
    if one["type"] == "categorical":
        return neps.Categorical(choices=tuple(one["choices"]))
    kind = neps.Integer if one["type"] == "uniform_int" else neps.Float
    return kind(lower=one["lower"], upper=one["upper"], log=one["log"])


def search(record: Record, task: Task) -> None:
    random.seed(task["seed"])
    np.random.seed(task["seed"])  # noqa: NPY002 - what NePS draws from
    torch.manual_seed(task["seed"])
    parameters = {one["name"]: parameter(one) for one in record.space}
    parameters[STEP] = neps.IntegerFidelity(lower=FIRST_RUNG, upper=record.steps)
    space = type("Space", (neps.PipelineSpace,), parameters)()
    asha = neps.AskAndTell(neps.algorithms.asha(space))
    while record.is_open:
        trial = asha.ask()
        before, config = record.spent, dict(trial.config)
        number = trial.metadata.id.partition("_")[0]  # of the configuration: 4 of "4_rung_1"
        try:
            value = record.training(number, config).until(config.pop(STEP))
        except TrainingFailed as failed:
            asha.tell(trial, failed)
        else:
            asha.tell(trial, {"objective_to_minimize": value, "cost": record.spent - before})


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
