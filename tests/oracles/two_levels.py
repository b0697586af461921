"""PairedRuns at two levels of training with a known bias between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from farthing.surrogates import gp
from farthing.surrogates.two_fidelity import Hyperparameters, TwoFidelity

RNG = np.random.default_rng(0)
X_E = RNG.random((9, 2))
Y_E = 2.0 + np.sin(4.0 * X_E[:, 0]) + X_E[:, 1]
POINTS = np.concatenate([RNG.random((20, 2)), RNG.uniform(-0.5, 1.5, (4, 2))])
UNSEEN = RNG.random((2, 2))  # completed, never looked at on the way
NESTED = X_E[[1, 4, 6, 2]]
MIXED = np.concatenate([UNSEEN[:1], X_E[[1, 4]], UNSEEN[1:], X_E[[6]]])
HYPER = Hyperparameters(
    gp.Hyperparameters((-0.7, 0.1), -6.0), gp.Hyperparameters((-0.3, 0.2), -5.0), mean=-0.5, variance=0.2, rho=0.8
)
BOUNDED = replace(HYPER, bounds=(-1.0, 0.0))


def predict_low(model: TwoFidelity, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (k,) and variance (k,) of the eighty-percent level at X (k, f): Proposition 1."""
    pair = model.joint.predict(X)
    return pair.low, pair.low_variance


def predict_low_with_gradient(model: TwoFidelity, X: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same and their gradients (k, f)."""
    pair, slopes = model.joint.predict_with_gradient(X)
    return pair.low, pair.low_variance, slopes.low, slopes.low_variance


def true_bias(X: np.ndarray) -> np.ndarray:
    return -0.5 + 0.4 * np.sin(5.0 * X[:, 0])  # in (-0.9, -0.1)


def truth(X: np.ndarray, rho: float = 1.0) -> np.ndarray:
    return rho * (2.0 + np.sin(4.0 * X[:, 0]) + X[:, 1]) + true_bias(X)
