"""Records the training curves of a kind of learner: `make record-curves KIND=cnn`, or

    python -m benchmarks.curves.record cnn                    all data sets of the kind
    python -m benchmarks.curves.record cnn --data shapes      one of them

Random configurations, the same whenever it is called; each is trained completely with one thread, and every step is
timed in CPU seconds. What is done is kept in benchmarks/cache, so that a recording that was ended continues. The file
in recorded/ is written when a data set is complete, with those that were complete before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.common.command import parser
from benchmarks.common.described_spaces import drawn
from benchmarks.common.environments import child_environment, module_command
from benchmarks.common.kept_runs import CACHE
from benchmarks.curves.sets import KINDS, RECORDED

COUNT = 150  # configurations of each data set
INSIDE = "--inside"  # said to the process that runs in the environment of the learners


def trained(kind: ModuleType, data: str, config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One training: its values, the CPU seconds of its steps, and the error that ended it."""
    values: list[float] = []
    seconds: list[float] = []
    began = time.process_time()
    error = None
    try:
        for value in kind.train(data, config, seed):
            now = time.process_time()
            values.append(float(value))
            seconds.append(now - began)
            began = time.process_time()
    except Exception as raised:  # a failure is part of the record
        error = f"{type(raised).__name__}: {raised}"[:200]
        seconds.append(time.process_time() - began)
    return {"config": config, "values": values, "seconds": seconds, "error": error}


def recorded(name: str, kind: ModuleType, data: str, count: int) -> list[dict[str, Any]]:
    """All trainings of a data set; those that were done before are read."""
    path = CACHE / f"recorded-{name}-{data}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines if line.endswith("}")]
    next(iter(kind.train(data, _config(name, kind, data, 0), 0)))  # loads the data and the libraries
    for i in range(len(done), count):
        one = trained(kind, data, _config(name, kind, data, i), i)
        with path.open("a") as file:
            file.write(json.dumps(one) + "\n")
        done.append(one)
        took, last = sum(one["seconds"]), one["error"] or (one["values"] or ["-"])[-1]
        print(f"{name}/{data} {i + 1}/{count}: {took:.2f} s, {last}", flush=True)
    return done[:count]


def _config(name: str, kind: ModuleType, data: str, i: int) -> dict[str, Any]:
    rng = np.random.default_rng([*name.encode(), *data.encode(), i])
    return drawn(kind.SPACE, rng)


def packed(steps: int, trainings: list[dict[str, Any]]) -> dict[str, Any]:
    """The arrays of a data set."""
    values, seconds = np.full((len(trainings), steps), np.nan), np.zeros((len(trainings), steps))
    for i, one in enumerate(trainings):
        finite = np.isfinite(one["values"])
        n = len(finite) if finite.all() else int(np.argmin(finite))  # a value that is no number is a failure
        values[i, :n] = one["values"][:n]
        reached = min(n + 1, steps, len(one["seconds"]))
        seconds[i, :reached] = one["seconds"][:reached]
    configs = np.array([json.dumps(one["config"]) for one in trainings])
    return {"configs": configs, "values": values.astype(np.float32), "seconds": seconds.astype(np.float32)}


def save(name: str, kind: ModuleType, complete: Mapping[str, list[dict[str, Any]]]) -> Path:
    """The data sets that are complete, and those that the file has already, whoever recorded them."""
    arrays = {
        f"{data}.{what}": array
        for data, trainings in complete.items()
        for what, array in packed(kind.STEPS, trainings).items()
    }
    RECORDED.mkdir(exist_ok=True)
    path = RECORDED / f"{name}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["space"]) != json.dumps(kind.SPACE):
                raise SystemExit(f"{path} has another space: remove it to record the kind anew")
            arrays = {key: stored[key] for key in stored.files if key not in ("space", "data")} | arrays
    np.savez_compressed(path, space=json.dumps(kind.SPACE), data=np.array(kind.TASKS), **arrays)
    return path


def inside(name: str, chosen: str | None, count: int) -> None:
    """In the environment of the learners."""
    warnings.simplefilter("ignore")  # of trainings that diverge
    kind = import_module(f"benchmarks.curves.kinds.{name}")
    for data in kind.TASKS:
        if chosen in (None, data):
            recorded(name, kind, data, count)
        complete = {}
        for other in kind.TASKS:
            path = CACHE / f"recorded-{name}-{other}.jsonl"
            trainings = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            if len(trainings) >= count:
                complete[other] = trainings[:count]
        if complete:
            save(name, kind, complete)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("kind", choices=KINDS)
    options.add_argument("--data", help="one data set of the kind; all by default")
    options.add_argument("--count", type=int, default=COUNT, help="configurations of each data set")
    options.add_argument(INSIDE, action="store_true", help="in this environment, which has what the learners need")
    given = options.parse_args()
    if given.inside:
        return inside(given.kind, given.data, given.count)
    command = module_command("learners", "curves.record", [*sys.argv[1:], INSIDE])
    sys.exit(subprocess.run(command, env=child_environment()).returncode)


if __name__ == "__main__":
    main()
