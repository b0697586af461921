"""Hyperband and BOHB (HpBandSter) as a child process of the benchmark on iterative learners.

    python -m benchmarks.bapi.peers.bohb_peer PYTHON FOLDER < tasks.jsonl

Their own brackets and models at their defaults: eta = 3, from 1 to 52 steps, so rungs at 2, 6, 17 and 52. A promoted
run goes on and is charged its new steps.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import ConfigSpace
import numpy as np

from benchmarks.bapi.peers.task import FIRST_RUNG, STEPS, Record, Task, serve
from benchmarks.common.bohb import VERSIONS, drive

ETA = 3


def hyperparameter(one: Mapping[str, Any]) -> Any:
    is_whole = one["type"] == "uniform_int"
    kind = ConfigSpace.UniformIntegerHyperparameter if is_whole else ConfigSpace.UniformFloatHyperparameter
    return kind(one["name"], one["lower"], one["upper"], log=one["log"])


def search(record: Record, task: Task) -> None:
    rungs = -int(np.log(FIRST_RUNG / STEPS) / np.log(ETA)) + 1  # as its constructor has it
    budgets = STEPS * np.power(float(ETA), -np.linspace(rungs - 1, 0, rungs))

    def evaluate(config_id: Any, config: dict[str, Any], budget: float) -> float:
        return record.training(config_id, config).until(budget)

    drive(task["method"], [hyperparameter(one) for one in record.space], budgets, ETA, task["seed"], evaluate)


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
