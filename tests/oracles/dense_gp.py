"""A Gaussian process written from its formulas with numpy.linalg only.

Symbols as in `farthing.surrogates.gp`: X (n, f), y (n,), K = k(X / l) + eta I. Distances are taken from differences,
systems solved with general solvers; nothing is shared with the code under test but the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.surrogates.gp import LOG_NOISE_MEAN, LOG_NOISE_SD, Hyperparameters

NU = 1.0


def kernel(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Matern-5/2 (m, n), from the distances themselves."""
    r = np.sqrt((((A[:, None, :] - B[None, :, :]) / scales) ** 2).sum(axis=2))
    return (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r)


def standardised(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def least_squares_mean(K: np.ndarray, y: np.ndarray) -> float:
    """1'K^-1 y / 1'K^-1 1."""
    weights = np.linalg.solve(K, np.ones(len(y)))
    return float(weights @ y / weights.sum())


def loss(X: np.ndarray, y: np.ndarray, groups: np.ndarray, theta: np.ndarray, m: float = np.sqrt(2.0)) -> float:
    """(n + nu) / 2 log(q + nu) + log|K| / 2 + the two priors, for outputs as they are."""
    n, g = len(y), len(theta) - 1
    K = kernel(X, X, np.exp(theta[:-1])[groups]) + np.exp(theta[-1]) * np.eye(n)
    residual = y - least_squares_mean(K, y)
    q = residual @ np.linalg.solve(K, residual)
    scale_prior = ((theta[:-1] - m - np.log(g) / 2.0) ** 2).sum() / (2.0 * 3.0)
    noise_prior = (theta[-1] - LOG_NOISE_MEAN) ** 2 / (2.0 * LOG_NOISE_SD**2)
    return float((n + NU) / 2.0 * np.log(q + NU) + np.linalg.slogdet(K)[1] / 2.0 + scale_prior + noise_prior)


@dataclass(frozen=True)
class DenseGP:
    """A process whose mean, signal variance, scales (f,) and noise are all given."""

    X: np.ndarray
    y: np.ndarray
    mean: float
    variance: float
    scales: np.ndarray
    eta: float

    @classmethod
    def like(cls, model, X: np.ndarray, y: np.ndarray) -> DenseGP:
        """Other data under the hyperparameters, mean and variance of a model."""
        log_scales = np.array(model.hyperparameters.log_scales)
        scales, eta = np.exp(log_scales[model.groups]), float(np.exp(model.hyperparameters.log_noise))
        return cls(X, y, model.mean, model.variance, scales, eta)

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean (m,) and covariance (m, m) of the noise-free function."""
        K = kernel(self.X, self.X, self.scales) + self.eta * np.eye(len(self.X))
        cross = kernel(X, self.X, self.scales)
        mean = self.mean + cross @ np.linalg.solve(K, self.y - self.mean)
        return mean, self.variance * (kernel(X, X, self.scales) - cross @ np.linalg.solve(K, cross.T))


@dataclass(frozen=True)
class Case:
    """Some data and hyperparameters to look at them with."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    hyperparameters: Hyperparameters


def case(n: int, groups: list[int], *, log_noise: float = -7.0, seed: int = 0) -> Case:
    """A smooth function with a little noise, in units far from 1."""
    rng = np.random.default_rng([seed, n, len(groups)])
    X = rng.random((n, len(groups)))
    y = 40.0 + 3.0 * np.sin(4.0 * X @ rng.standard_normal(len(groups))) + 0.1 * rng.standard_normal(n)
    log_scales = tuple(rng.uniform(np.log(0.3), np.log(2.0), max(groups) + 1).tolist())
    return Case(X, y, np.array(groups), Hyperparameters(log_scales, log_noise))


CASES = {
    "one dimension": case(9, [0]),
    "three dimensions": case(25, [0, 1, 2]),
    "tied columns": case(20, [0, 1, 1, 1, 2]),
    "tied columns out of order": case(15, [1, 0, 1, 2, 0]),
    "all columns tied": case(12, [0, 0, 0]),
    "more dimensions than points": case(4, [0, 1, 2, 3, 4, 5, 6]),
    "much noise": case(30, [0, 1], log_noise=0.5),
    "one point": case(1, [0, 1]),
}
