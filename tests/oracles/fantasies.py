"""Expected improvement and fantasies under a process of `oracles.dense_gp`, and the random numbers behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import erfcx
from scipy.stats import norm

from oracles.dense_gp import DenseGP


def log_ei_of(process: DenseGP, X: np.ndarray) -> np.ndarray:
    """log E[max(y* - f(x), 0)] with y* the least value seen: section 1. In logarithms, since late in a study all of it
    is small: EI / (s phi(z)) = 1 + z Phi(z) / phi(z), z = (y* - mean) / s."""
    mean, covariance = process.predict(X)
    s = np.sqrt(np.maximum(np.diag(covariance), 1e-12 * process.variance))
    z = (process.y.min() - mean) / s
    return np.log(s) + norm.logpdf(z) + np.log1p(z * np.sqrt(np.pi / 2.0) * erfcx(-z / np.sqrt(2.0)))


def with_sample(process: DenseGP, x: np.ndarray, z: float) -> DenseGP:
    """Lines 7, 9 and 10: a sample of the posterior, noise included, joins the data; hyperparameters are kept."""
    mean, covariance = process.predict(x)
    y = mean + z * np.sqrt(np.diag(covariance) + process.eta * process.variance)
    return replace(process, X=np.concatenate([process.X, x]), y=np.concatenate([process.y, y]))


def with_joint_sample(process: DenseGP, x: np.ndarray, rng: np.random.Generator) -> DenseGP:
    """With a sample of the joint posterior at several points."""
    mean, covariance = process.predict(x)
    y = rng.multivariate_normal(mean, covariance + process.eta * process.variance * np.eye(len(x)))
    return replace(process, X=np.concatenate([process.X, x]), y=np.concatenate([process.y, y]))


class Recorded(np.random.Generator):
    """A generator that keeps the normal numbers it gives."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.normals: list[np.ndarray] = []

    def standard_normal(self, size: Any = None) -> Any:  # type: ignore[override]
        drawn = super().standard_normal(size)
        self.normals.append(drawn)
        return drawn
