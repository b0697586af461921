"""BoTorch's usual loop as a child process of the benchmark of latency.

    python -m benchmarks.latency.peers.botorch_peer --n 100 --rounds 15 --seed 0

`SingleTaskGP` with its default priors and outcome transform, fitted from scratch by `fit_gpytorch_mll` at
every suggestion as its documentation does, `LogExpectedImprovement`, `optimize_acqf` with 10 restarts and 512
raw samples; unit cube, double precision, one thread.
"""

from __future__ import annotations

import botorch
import gpytorch
import numpy as np
import scipy
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.latency.peers.task import DIMENSIONS, Array, main

RESTARTS = 10
RAW_SAMPLES = 512

VERSIONS = {
    "botorch": botorch.__version__,
    "gpytorch": gpytorch.__version__,
    "torch": torch.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}


class BoTorchLatency:
    """The latency task on a fresh `SingleTaskGP` per suggestion."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self._X = torch.empty((0, DIMENSIONS), dtype=torch.float64)
        self._y = torch.empty((0, 1), dtype=torch.float64)
        self._bounds = torch.tensor([[0.0] * DIMENSIONS, [1.0] * DIMENSIONS], dtype=torch.float64)

    def feed(self, points: Array, values: Array) -> None:
        self._X = torch.cat([self._X, torch.from_numpy(points)])
        self._y = torch.cat([self._y, torch.from_numpy(values)[:, None]])

    def suggest(self) -> Array:
        model = SingleTaskGP(self._X, -self._y)  # BoTorch maximises
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=(-self._y).max())
        point, _ = optimize_acqf(acquisition, self._bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return point[0].numpy()

    def tell(self, point: Array, value: float) -> None:
        self.feed(point[None, :], np.array([value]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(__doc__, VERSIONS, BoTorchLatency)
