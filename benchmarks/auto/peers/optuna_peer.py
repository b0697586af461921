"""Optuna's samplers as a child process of the benchmark of `auto`: random search, TPE and GPSampler.

    python -m benchmarks.auto.peers.optuna_peer FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

All at their defaults, in-memory storage. By default, TPE of Optuna 5.0 models all parameters together; `group=True`
makes no difference where no parameter has conditions. It is also run with one model per parameter, its default before.
"""

from __future__ import annotations

import warnings
from functools import partial
from importlib.metadata import version
from typing import Any

import optuna
from optuna.samplers import GPSampler, RandomSampler, TPESampler

from benchmarks.auto.peers.task import Task, serve
from benchmarks.curves.peers.optuna_peer import distribution

VERSIONS = {name: version(name) for name in ("optuna", "torch", "scikit-learn", "numpy", "scipy")}
SAMPLERS: dict[str, Any] = {
    "random": RandomSampler,
    "tpe": TPESampler,
    "tpe-univariate": partial(TPESampler, multivariate=False),
    "gpsampler": GPSampler,
}


def search(record: Any, task: Task) -> None:
    space = {one["name"]: distribution(one) for one in record.space}
    study = optuna.create_study(sampler=SAMPLERS[task["method"]](seed=task["seed"]))
    while True:
        trial = study.ask(space)
        study.tell(trial, record.evaluate(trial.params)[0])


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    serve(search, VERSIONS)
