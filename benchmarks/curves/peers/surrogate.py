"""The surrogate of LCBench as a child process of the peers: whole trainings of configurations.

    python -m benchmarks.curves.peers.surrogate FOLDER < requests.jsonl

FOLDER as in common/lcbench.py. Runs in the environment `lcbench`; every peer starts one of its own, because the ONNX
runtime is not in theirs. One JSON line in, one out:

    {"task": "3945", "configs": [{...}]}         {"values": [[...]], "costs": [[...]]}, one row of 52 steps each
    {"task": "3945", "count": 100, "seed": 0}    what trainings of random configurations are like, see `facts`

A value is a validation error, 1 - accuracy. The network gives cumulative seconds that fall here and there: a step costs
what their running maximum rises by, and at least LEAST of the whole training.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.lcbench import EPOCHS, Array, Surrogate, decoded

LEAST = 1e-4
BATCH = 1000  # configurations


def trainings(surrogate: Surrogate, task: str, columns: dict[str, Array]) -> tuple[Array, Array]:
    """Values and costs of the steps, both (count, 52), of configurations given by columns."""
    count = len(next(iter(columns.values())))
    rows = {name: np.repeat(column, EPOCHS) for name, column in columns.items()}
    rows["epoch"] = np.tile(np.arange(1.0, EPOCHS + 1.0), count)
    numbers = np.column_stack([rows[name] for name in surrogate.schema["cont_names"]]).astype(np.float32)
    code = np.full((len(numbers), 1), surrogate.encoding["OpenML_task_id"][task], dtype=np.int32)
    given = {one.name: (code if "int" in one.type else numbers) for one in surrogate.session.get_inputs()}
    found = surrogate.session.run(None, given)[0].astype(np.float64)
    accuracy, seconds = (
        found[:, surrogate.schema["y_names"].index(name)].reshape(count, EPOCHS) for name in ("val_accuracy", "time")
    )
    reached = np.maximum.accumulate(np.maximum(seconds, 0.0), axis=1)
    costs = np.maximum(np.diff(reached, axis=1, prepend=0.0), LEAST * reached[:, -1:])
    return 1.0 - np.clip(accuracy, 0.0, 100.0) / 100.0, costs


def facts(surrogate: Surrogate, task: str, count: int, seed: int) -> dict[str, Any]:
    """Of random configurations: the mean cost of a training, the median of the last values, the lowest value at all."""
    rng = np.random.default_rng([seed, int(task)])
    costs, finals, lowest = [], [], np.inf
    for size in [BATCH] * (count // BATCH) + [count % BATCH] * bool(count % BATCH):
        columns = decoded(rng.random((size, len(surrogate.space))), surrogate.space)
        values, steps = trainings(surrogate, task, columns)
        costs.append(steps.sum(axis=1))
        finals.append(values[:, -1])
        lowest = min(lowest, float(values.min()))
    cost, median = np.concatenate(costs).mean(), np.median(np.concatenate(finals))
    return {"cost": float(cost), "median": float(median), "lowest": lowest}


def answer(surrogate: Surrogate, request: dict[str, Any]) -> dict[str, Any]:
    if "configs" not in request:
        return facts(surrogate, request["task"], request["count"], request["seed"])
    names = [one["name"] for one in surrogate.space]
    columns = {name: np.array([float(config[name]) for config in request["configs"]]) for name in names}
    values, costs = trainings(surrogate, request["task"], columns)
    return {"values": values.tolist(), "costs": costs.tolist()}


def main() -> None:
    surrogate = Surrogate(Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(answer(surrogate, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
