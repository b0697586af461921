"""Optuna's TPESampler and GPSampler at their defaults, as a process of the benchmark of scale.

python -m benchmarks.scale.peers.optuna_peer --n 100 --dimensions 5 --asks 5 --system tpe
"""

from __future__ import annotations

import warnings

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution

from benchmarks.scale.peers.task import Array, main

VERSIONS = {"optuna": optuna.__version__, "numpy": np.__version__}


class Sampler:
    """Values only: Optuna knows no cost."""

    def __init__(self, dimensions: int, system: str) -> None:
        sampler = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[system](seed=0)
        self._study = optuna.create_study(sampler=sampler)
        self._space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(dimensions)}

    def feed(self, points: Array, values: Array, costs: Array) -> None:
        for point, value in zip(points, values, strict=True):
            params = dict(zip(self._space, map(float, point), strict=True))
            self._study.add_trial(
                optuna.create_trial(params=params, distributions=self._space, value=float(value))
            )  # fmt: skip

    def suggest(self) -> Array:
        self._trial = self._study.ask(self._space)
        return np.array(list(self._trial.params.values()))

    def tell(self, value: float, cost: float) -> None:
        self._study.tell(self._trial, value)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore")
    main(__doc__, VERSIONS, Sampler)
