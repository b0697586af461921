"""Optuna as a child process of the benchmarks on learners that train in steps: random search, TPE and GPSampler.

    python -m benchmarks.curves.peers.optuna_peer [PYTHON FOLDER] < tasks.jsonl

Defaults, in-memory storage. Random search and GPSampler train completely. TPE's trainings report every step and end
where the pruner says so; a pruned one is charged what it trained. HyperbandPruner is told how many steps a training
has, and is otherwise at its defaults. The value of a complete training is its best, as everywhere here. A training that
fails is told as FAIL.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from benchmarks.curves.peers.task import Record, Task, TrainingFailed, serve

VERSIONS = {name: version(name) for name in ("optuna", "numpy", "scipy")}


def distribution(one: Mapping[str, Any]) -> BaseDistribution:
    if one["type"] == "categorical":
        return CategoricalDistribution(one["choices"])
    kind = IntDistribution if one["type"] == "uniform_int" else FloatDistribution
    return kind(one["lower"], one["upper"], log=one["log"])


def study_of(method: str, seed: int, steps: int) -> optuna.Study:
    name = f"study {seed}"  # HyperbandPruner hashes it for the brackets; by default it is drawn without the seed
    pruners: dict[str, BasePruner] = {
        "tpe-median": MedianPruner(),
        "tpe-hyperband": HyperbandPruner(max_resource=steps),
    }
    samplers: dict[str, type[BaseSampler]] = {"random": RandomSampler, "gp": GPSampler}
    sampler: Any = samplers.get(method, TPESampler)
    return optuna.create_study(sampler=sampler(seed=seed), pruner=pruners.get(method, NopPruner()), study_name=name)


def search(record: Record, task: Task) -> None:
    space = {one["name"]: distribution(one) for one in record.space}
    study = study_of(task["method"], task["seed"], record.steps)
    while record.is_open:
        trial = study.ask(space)
        try:
            follow(study, trial, record)
        except TrainingFailed:
            study.tell(trial, state=TrialState.FAIL)


def follow(study: optuna.Study, trial: optuna.Trial, record: Record) -> None:
    """Train until the pruner says no, or to the end."""
    training = record.training(trial.number, trial.params)
    while training.step < record.steps:
        value, _ = training.advance()
        trial.report(value, training.step)
        if training.step < record.steps and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return
    study.tell(trial, training.until(record.steps))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(search, VERSIONS)
