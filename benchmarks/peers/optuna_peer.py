"""Optuna's GPSampler as a child process of the benchmarks.

    python benchmarks/peers/optuna_peer.py latency --n 100 --rounds 15 --seed 0
    python benchmarks/peers/optuna_peer.py quality < tasks.jsonl

Default settings unless said: a Matern-5/2 model refitted at every suggestion from the last fit, log EI, 2048
preliminary samples, 10 local searches, in-memory storage.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import optuna
import scipy
import torch
from command import main
from latency_task import DIMENSIONS, Array
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GPSampler
from quality_task import Config, Task

VERSIONS = {
    "optuna": optuna.__version__,
    "torch": torch.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}


class GPSamplerLatency:
    """The latency task on `study.ask` and `study.tell`."""

    def __init__(self, seed: int) -> None:
        self._study = optuna.create_study(sampler=GPSampler(seed=seed))
        self._space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(DIMENSIONS)}

    def feed(self, points: Array, values: Array) -> None:
        self._study.add_trials(
            [
                optuna.create_trial(
                    params=dict(zip(self._space, map(float, point), strict=True)),
                    distributions=self._space,
                    value=float(value),
                )
                for point, value in zip(points, values, strict=True)
            ]
        )

    def suggest(self) -> Array:
        self._trial = self._study.ask(self._space)
        return np.array(list(self._trial.params.values()))

    def tell(self, point: Array, value: float) -> None:
        self._study.tell(self._trial, value)


def translated(parameter: Any) -> BaseDistribution:
    """The Optuna distribution of a Farthing parameter."""
    from farthing.space import Choice, Integer, Real

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
    main(__doc__, VERSIONS, latency=GPSamplerLatency, quality=GPSamplerQuality)
