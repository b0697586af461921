"""Optuna's GPSampler as a child process of the benchmarks.

    python benchmarks/peers/optuna_peer.py latency --n 100 --rounds 15 --seed 0
    python benchmarks/peers/optuna_peer.py quality < tasks.jsonl

Default settings unless said: a Matern-5/2 model refitted at every suggestion from the last fit, log EI, 2048
preliminary samples, 10 local searches, in-memory storage.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import optuna
import scipy
import torch
from latency_task import DIMENSIONS, Array, add_latency, latency
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GPSampler

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
        self._space: dict[str, BaseDistribution] = {
            f"x{i}": FloatDistribution(0.0, 1.0) for i in range(DIMENSIONS)
        }

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


def quality_run(task: dict[str, Any]) -> dict[str, Any]:
    """Minimise one problem from the given first configurations; `seconds` leaves the objective out."""
    from farthing.problems.functions import FUNCTIONS

    problem = FUNCTIONS[task["problem"]]
    space = {name: translated(parameter) for name, parameter in problem.space.params.items()}
    sampler = GPSampler(
        seed=task["seed"],
        n_startup_trials=len(task["start"]),
        deterministic_objective=task["deterministic"],
    )
    study = optuna.create_study(sampler=sampler)
    for config in task["start"]:
        study.enqueue_trial(config)
    values, seconds = [], 0.0
    for _ in range(task["evaluations"]):
        begin = time.perf_counter()
        trial = study.ask(space)
        seconds += time.perf_counter() - begin
        value = problem.objective(trial.params)
        begin = time.perf_counter()
        study.tell(trial, value)
        seconds += time.perf_counter() - begin
        values.append(value)
    return {"values": values, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    add_latency(commands)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    latency(GPSamplerLatency, VERSIONS, arguments)


if __name__ == "__main__":
    main()
