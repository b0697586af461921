"""Optuna's TPE and GPSampler as a child process of the benchmark of failures. `method` is "tpe" or "gpsampler".

Default settings. A crash is told as a failed trial, as `study.optimize(..., catch=...)` does.
"""

from __future__ import annotations

import warnings

import numpy as np
import optuna
import scipy
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import GPSampler, TPESampler

from benchmarks.failures.peers.task import Array, Task, serve

VERSIONS = {
    "optuna": optuna.__version__,
    "torch": torch.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}
SAMPLERS = {"tpe": TPESampler, "gpsampler": GPSampler}


class Optuna:
    """A study in memory."""

    def __init__(self, p: int, task: Task) -> None:
        self._space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(p)}
        self._study = optuna.create_study(sampler=SAMPLERS[task["method"]](seed=task["seed"]))

    def ask(self) -> Array:
        self._trial = self._study.ask(self._space)
        return np.array(list(self._trial.params.values()))

    def tell(self, value: float | None, cost: float) -> None:
        if value is None:
            self._study.tell(self._trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(self._trial, value)


if __name__ == "__main__":
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    serve(Optuna, VERSIONS)
