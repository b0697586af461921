"""The kernels of both fidelities, and a process with all its parts given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import backward, cholesky, extend_cholesky, forward, squared_distances
from farthing.surrogates.gp import GP, Hyperparameters
from farthing.surrogates.kernels import matern52_with_decay

Kernel = Literal["matern52", "gaussian"]


def gaussian_with_decay(s: Array) -> tuple[Array, Array]:
    """k(s) = exp(-s / 2) of squared scaled distances, and its decay -2 k'(s), which is k itself."""
    k = np.exp(-0.5 * s)
    return k, k


KERNELS: dict[Kernel, Callable[[Array], tuple[Array, Array]]] = {
    "matern52": matern52_with_decay,
    "gaussian": gaussian_with_decay,
}


class GaussianGP(GP):
    """The process of `gp` with the Gaussian kernel, which the paper uses."""

    def cross(self, X: Array) -> tuple[Array, Array, Array]:
        A = X / self.scales
        return *gaussian_with_decay(squared_distances(A, self._scaled)), A

    def predict(self, X: Array) -> tuple[Array, Array]:
        K = self.cross(X)[0]
        return self.mean + K @ self.alpha, self.posterior_variance(forward(self.L, K.T))

    def mean_at(self, X: Array) -> Array:
        return np.asarray(self.mean + self.cross(X)[0] @ self.alpha)

    def covariance(self, X: Array) -> tuple[Array, Array]:
        K, _, A = self.cross(X)
        V = forward(self.L, K.T)
        return self.mean + K @ self.alpha, self.variance * (gaussian_with_decay(squared_distances(A, A))[0] - V.T @ V)

    def condition(self, X: Array, y: Array) -> GP:
        K, _, A = self.cross(X)
        new = gaussian_with_decay(squared_distances(A, A))[0]
        new[np.diag_indices(len(X))] += np.exp(self.hyperparameters.log_noise)
        L = extend_cholesky(self.L, K.T, new)
        both = np.concatenate([self.y, y])
        alpha = backward(L, forward(L, both - self.mean))
        return GaussianGP(
            np.concatenate([self.X, X]), both, self.groups, self.hyperparameters, self.mean, self.variance, L, alpha
        )


def process(
    kernel: Kernel, X: Array, y: Array, groups: Ints, hyperparameters: Hyperparameters,
    mean: float, variance: float, extra: Array | None = None,
) -> GP:  # fmt: skip
    """The process with all its parts given; `extra` (n, n) is covariance of y on top of signal and noise."""
    scaled = X / np.exp(np.array(hyperparameters.log_scales))[groups]
    K = KERNELS[kernel](squared_distances(scaled, scaled))[0]
    K[np.diag_indices(len(X))] += np.exp(hyperparameters.log_noise)
    if extra is not None:
        K += extra / variance
    L = cholesky(K.T)
    family = GP if kernel == "matern52" else GaussianGP
    return family(X, y, groups, hyperparameters, mean, variance, L, backward(L, forward(L, y - mean)))
