"""FarthingSampler inside `study.optimize`, as a child process of the Optuna benchmark.

    python -m benchmarks.optuna.peers.sampler_peer FOLDER < tasks.jsonl

The tasks are those of the black-box benchmark. In-memory storage; the first configurations are enqueued. Parameters are
written as somebody would who knows their values: lists, of which FarthingSampler sees that numbers in order are a
scale. The cost is a user attribute, and the sampler ends the study.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import optuna

import farthing
from benchmarks.blackbox.peers.task import Record, Task
from benchmarks.common.tables import Table
from benchmarks.common.versions import version
from farthing.adapters.optuna import FarthingSampler

VERSIONS = {name: version(name) for name in ("farthing", "optuna", "numpy", "scipy")}
MOST = 1_000  # evaluations of one run, as in the black-box benchmark


def search(table: Table, task: Task) -> dict[str, Any]:
    """Run one task."""
    record, began = Record(task["budget"]), [time.perf_counter()]

    def objective(trial: optuna.Trial) -> float:
        levels = [
            parameter.values.index(trial.suggest_categorical(parameter.name, parameter.values))
            for parameter in table.parameters
        ]
        seconds = time.perf_counter() - began[0]
        value, cost = table.look_up(levels)
        trial.set_user_attr("cost", cost)
        record.add(levels, value, cost, seconds)
        if len(record) == MOST:
            trial.study.stop()
        began[0] = time.perf_counter()
        return value

    sampler = FarthingSampler(farthing.Budget(cost=task["budget"]), cost="cost", seed=task["seed"])
    study = optuna.create_study(sampler=sampler)
    for levels in task["start"]:
        study.enqueue_trial({p.name: p.values[level] for p, level in zip(table.parameters, levels, strict=True)})
    study.optimize(objective)
    if record.open and len(record) < MOST:
        raise RuntimeError(f"the study ended with {record.total} of {task['budget']} spent")
    return record.columns


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        task = json.loads(line)
        columns = search(Table.load(folder, task["table"]), task)
        print(json.dumps({**columns, "versions": VERSIONS}), flush=True)
