"""BOHB (HpBandSter) as a child process of the benchmark on synthetic functions.

    python -m benchmarks.bopt_synthetic.peers.bohb_peer < tasks.jsonl

Its own density models and brackets. Budgets of 1/5 and 1 with eta = 5, which gives brackets of 5 cheap runs, the best
of them completed, and of 2 complete runs; otherwise its defaults. It accepts no first points.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import ConfigSpace

from benchmarks.bopt_synthetic.peers.task import CHEAP, COMPLETE, BudgetOver, Record, Task, serve
from benchmarks.common.bohb import VERSIONS, drive

ETA = COMPLETE / CHEAP


def search(record: Record, task: Task) -> None:
    names = [f"x{i:02d}" for i in range(record.function.p)]
    parameters = [ConfigSpace.UniformFloatHyperparameter(name, 0.0, 1.0) for name in names]

    def evaluate(config_id: Any, config: dict[str, Any], budget: float) -> float:
        if not record.is_open:  # the last run took exactly what was left
            raise BudgetOver
        point = [config[name] for name in names]
        return record.cheap(point) if budget < COMPLETE else record.complete(point)

    drive("bohb", parameters, (CHEAP, COMPLETE), ETA, task["seed"], evaluate)


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
