"""Optuna as a child process of the benchmark on iterative learners: random search, and TPE with pruners.

    python -m benchmarks.bapi.peers.optuna_peer PYTHON FOLDER < tasks.jsonl

Defaults, in-memory storage. Random search trains completely. TPE's trainings report every step and end where the pruner
says so; a pruned one is charged what it trained. HyperbandPruner is told how many steps a training has, and is
otherwise at its defaults. The value of a complete training is its best, as everywhere here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import RandomSampler, TPESampler

from benchmarks.bapi.peers.task import STEPS, Record, Task, serve

VERSIONS = {name: version(name) for name in ("optuna", "numpy", "scipy")}


def distribution(one: Mapping[str, Any]) -> BaseDistribution:
    kind = IntDistribution if one["type"] == "uniform_int" else FloatDistribution
    return kind(one["lower"], one["upper"], log=one["log"])


def study_of(method: str, seed: int) -> optuna.Study:
    if method == "random":
        return optuna.create_study(sampler=RandomSampler(seed=seed), pruner=NopPruner())
    pruner = MedianPruner() if method == "tpe-median" else HyperbandPruner(max_resource=STEPS)
    name = f"study {seed}"  # HyperbandPruner hashes it for the brackets; by default it is drawn without the seed
    return optuna.create_study(sampler=TPESampler(seed=seed), pruner=pruner, study_name=name)


def search(record: Record, task: Task) -> None:
    space = {one["name"]: distribution(one) for one in record.space}
    study = study_of(task["method"], task["seed"])
    while record.is_open:
        trial = study.ask(space)
        training = record.training(trial.number, trial.params)
        while training.step < STEPS:
            value, _ = training.advance()
            trial.report(value, training.step)
            if training.step < STEPS and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, training.until(STEPS))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(search, VERSIONS)
