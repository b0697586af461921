"""Residuals of log cost: robust weights, a scale with a prior, and the law of a new observation.

Symbols and shapes (those of `lines`)
    r (n,) residuals;  s their scale;  v (n,) Huber weights, min(1, k / |r_i / s|);  u (n,) leverages
    s^2 ~ inverse gamma worth NOISE_STRENGTH observations of standard deviation NOISE_PRIOR
    s^2 = (NOISE_STRENGTH NOISE_PRIOR^2 + Q / kappa) / (NOISE_STRENGTH + n - 1),   kappa = 2 Phi(k) - 1 = E[psi(e) e]

Q is the penalised sum of weighted squares; kappa makes s consistent for normal residuals. A new observation follows
Student's t with NOISE_STRENGTH + n - 1 degrees of freedom and squared scale s^2 (1 + u).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, ndtr

from farthing.numerics.arrays import Array

NOISE_PRIOR, NOISE_STRENGTH = 0.3, 3.0  # a guess of 30 % misfit and noise, soon outweighed
HUBER = 1.345  # k: 95 % as efficient as least squares where residuals are normal
KAPPA = float(2.0 * ndtr(HUBER) - 1.0)


def huber_weights(residuals: Array, scale: float) -> Array:
    """v (n,): 1 up to k s, and then such that the pull of a residual no longer grows."""
    return np.asarray(np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residuals), 1e-300)))


def student_spread(n: int) -> float:
    """Variance over squared scale of the predictive law from n observations."""
    return (NOISE_STRENGTH + n - 1.0) / (NOISE_STRENGTH + n - 3.0)


def residual_scale(Q: float, n: int) -> float:
    """s from the penalised sum of weighted squares Q."""
    return float(np.sqrt((NOISE_STRENGTH * NOISE_PRIOR**2 + max(Q, 0.0) / KAPPA) / (NOISE_STRENGTH + n - 1.0)))


def deleted_square(residuals: Array, deleted: Array, u: Array, v: Array, scale: float) -> Array:
    """Squared scale (n,) of the law of each observation given all others; `deleted` are residuals without it."""
    freedom = NOISE_STRENGTH + len(v) - 1.0
    total = np.maximum(freedom * scale**2 - v * residuals * deleted / KAPPA, NOISE_STRENGTH * NOISE_PRIOR**2)
    return np.asarray(total / max(freedom - 1.0, 1.0) * (1.0 + u))


def log_student(residuals: Array, square: Array, freedom: float) -> Array:
    """log density of Student's t with squared scale `square`."""
    constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) - 0.5 * np.log(freedom * np.pi)
    tail = np.log1p(residuals**2 / (freedom * square))
    return np.asarray(constant - 0.5 * np.log(square) - 0.5 * (freedom + 1.0) * tail)
