"""Optuna's random search and TPE as a child process of the benchmark on synthetic functions: complete runs only.

    python -m benchmarks.bopt_synthetic.peers.optuna_peer < tasks.jsonl

Defaults, in-memory storage; the first points are enqueued (they count among the 10 random trials TPE begins with).
"""

from __future__ import annotations

from importlib.metadata import version

import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from benchmarks.bopt_synthetic.peers.task import Record, Task, first_complete, serve

VERSIONS = {name: version(name) for name in ("optuna", "numpy", "scipy")}
SAMPLERS: dict[str, type[BaseSampler]] = {"random": RandomSampler, "tpe": TPESampler}


def search(record: Record, task: Task) -> None:
    space = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(record.function.p)}
    study = optuna.create_study(sampler=SAMPLERS[task["method"]](seed=task["seed"]))
    for point in first_complete(task):
        study.enqueue_trial(dict(zip(space, point, strict=True)))
    while record.is_open:
        trial = study.ask(space)
        study.tell(trial, record.complete([trial.params[name] for name in space]))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(search, VERSIONS)
