"""Optuna's GPSampler as a child process of the benchmark of quality.

    python -m benchmarks.quality.peers.optuna_peer < tasks.jsonl

Default settings unless said: a Matern-5/2 model refitted at every suggestion from the last fit, log EI, 2048
preliminary samples, 10 local searches, in-memory storage.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GPSampler

from benchmarks.quality.peers.task import Config, Task, serve
from farthing.space import Choice, Integer, Real

VERSIONS = {name: version(name) for name in ("optuna", "torch", "numpy", "scipy")}


def translated(parameter: Any) -> BaseDistribution:
    """The Optuna distribution of a Farthing parameter."""
    match parameter:
        case Real():
            return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        case Integer():
            return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
        case Choice():
            return CategoricalDistribution(list(parameter.options))
    raise TypeError(f"no Optuna distribution for {parameter!r}")


class GPSamplerQuality:
    """The quality task; the first configurations are enqueued and stand in for the sampler's random ones."""

    def __init__(self, space: Any, task: Task) -> None:
        sampler = GPSampler(
            seed=task["seed"],
            n_startup_trials=len(task["start"]),
            deterministic_objective=task["deterministic"],
        )
        self._space = {name: translated(parameter) for name, parameter in space.params.items()}
        self._study = optuna.create_study(sampler=sampler)
        for config in task["start"]:
            self._study.enqueue_trial(config)

    def ask(self) -> Config:
        self._trial = self._study.ask(self._space)
        return self._trial.params

    def tell(self, value: float) -> None:
        self._study.tell(self._trial, value)


if __name__ == "__main__":
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    serve(GPSamplerQuality, VERSIONS)
