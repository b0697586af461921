"""Hyperband and BOHB (HpBandSter) as a child process of the benchmarks on learners that train in steps.

    python -m benchmarks.curves.peers.bohb_peer [PYTHON FOLDER] < tasks.jsonl

Their own brackets and models at their defaults: eta = 3, from 1 step on, so rungs at 2, 6, 17 and 52 of 52 steps. A
promoted run goes on and is charged its new steps. One that fails is a crashed run.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np

from benchmarks.common.bohb import VERSIONS, drive
from benchmarks.curves.peers.parameters import hyperparameter
from benchmarks.curves.peers.task import FIRST_RUNG, Record, Task, TrainingFailed, serve

ETA = 3


def search(record: Record, task: Task) -> None:
    rungs = -int(np.log(FIRST_RUNG / record.steps) / np.log(ETA)) + 1  # as its constructor has it
    budgets = record.steps * np.power(float(ETA), -np.linspace(rungs - 1, 0, rungs))

    def evaluate(config_id: Any, config: dict[str, Any], budget: float) -> float | None:
        try:
            return record.training(config_id, config).until(budget)
        except TrainingFailed:
            return None

    drive(task["method"], [hyperparameter(one) for one in record.space], budgets, ETA, task["seed"], evaluate)


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
