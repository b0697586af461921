"""Training curves to test with, their hyperparameters, and the kernels over time written out."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.curves.unconstrained import Hyperparameters

T_MAX = 40.0
PHI = {"decay": np.log([0.7, 0.2, 0.5]), "rbf": np.log([0.4, 0.5, 8.0]), "rbf-plain": np.log([0.4])}
every_kernel = pytest.mark.parametrize("kernel", ["decay", "rbf", "rbf-plain"])


def k_t(kernel: str, s: float, t: float) -> float:
    """Eq. (22) and Eq. (26), the latter with the square on the length-scale, and for "rbf" in warped time."""
    if kernel == "decay":
        alpha, beta, w = np.exp(PHI[kernel])
        return float(w + (s / beta + t / beta + 1.0) ** -alpha)
    if kernel == "rbf-plain":
        return float(np.exp(-0.5 * (s - t) ** 2 / np.exp(PHI[kernel][0]) ** 2))
    scale, w, c = np.exp(PHI[kernel])
    h = (np.log1p(c * s) - np.log1p(c * t)) / np.log1p(c)
    return float(w + np.exp(-0.5 * h * h / scale**2))


def state(
    seed: int = 0, runs: int = 8, f: int = 2, *, wrong: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three points each of decaying curves, half of them short; `wrong`: curves that rise."""
    rng = np.random.default_rng(seed)
    R = rng.random((runs, f))
    last = np.where(rng.random(runs) < 0.5, T_MAX, 8.0)
    t = np.concatenate([[end / 4, end / 2, end] for end in last])
    X = np.repeat(R, 3, axis=0)
    y = 0.3 * X[:, 0] + (0.5 + X[:, -1]) * (1.0 + t / 3.0) ** -0.8 + 0.01 * rng.normal(size=len(t))
    return X, t, -y if wrong else y


def hyperparameters(kernel: str, log_noise: float = -5.0, f: int = 2) -> Hyperparameters:
    return Hyperparameters(kernel, (-0.5,) * f, log_noise, tuple(PHI[kernel]))
