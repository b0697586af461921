"""Optuna's GPSampler as a child process of the benchmark of latency.

    python -m benchmarks.latency.peers.optuna_peer --n 100 --rounds 15 --seed 0

Default settings: a Matern-5/2 model refitted at every suggestion from the last fit, log EI, 2048
preliminary samples, 10 local searches, in-memory storage.
"""

from __future__ import annotations

import warnings

import numpy as np
import optuna
import scipy
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import GPSampler

from benchmarks.latency.peers.task import DIMENSIONS, Array, main

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


if __name__ == "__main__":
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    main(__doc__, VERSIONS, GPSamplerLatency)
