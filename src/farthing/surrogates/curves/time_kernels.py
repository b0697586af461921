"""Covariances over training time and their derivatives, for curves that only fall (BAPI, appendix A).

Symbols and shapes
    s, t      (p,), (q,)  times, as shares of t_max
    ds, dt    (p,), (q,)  0 for the value of a curve at that time, 1 for its slope there
    phi       the logarithms of a kernel's parameters
    K_t       (p, q)      covariance of the values and slopes

"decay", Eq. (22) to (24): K_t(s, t) = w + (s / beta + t / beta + 1)^-alpha,  phi = (log alpha, log beta, log w).
A mixture of falling exponentials whose rates are Gamma(alpha, beta), and a constant, the value they fall to. It depends
on s + t only, so the derivative is the same by either time:
    order 1   -alpha / beta (...)^(-alpha - 1)          order 2   alpha (alpha + 1) / beta^2 (...)^(-alpha - 2)

"rbf", Eq. (26) to (28): K_t(s, t) = w + exp(-d^2 / 2),  d = (h(s) - h(t)) / l,  phi = (log l, log w, log c), where
h(t) = log(1 + c t) / log(1 + c) maps [0, 1] to itself and is the identity for small c; with e = exp(-d^2 / 2):
    by s   -d h'(s) e / l         by t   d h'(t) e / l         by both   (1 - d^2) h'(s) h'(t) e / l^2
Two misprints in the paper: Eq. (26) lacks the square of l, and Eq. (28) that of d; finite differences agree with the
above. We add w from Eq. (22) (without it a curve forgets its value after one length-scale) and h: a process that is
stationary in t cannot fall steeply and then stay flat without swinging back, and if it is made to fall, it falls on.

"rbf-plain": Eq. (26) to (28) as they are meant, without our additions: w = 0 and h(t) = t,  phi = (log l,).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from farthing.numerics.arrays import Array, Ints

TimeKernel = Literal["decay", "rbf", "rbf-plain"]

# Normal priors on phi, and bounds. Chosen on tasks that docs/extrapolation.md does not report.
PRIOR_MEAN = {
    "decay": (float(np.log(0.5)), float(np.log(0.05)), 0.0),
    "rbf": (float(np.log(0.5)), 0.0, float(np.log(10.0))),
    "rbf-plain": (float(np.log(0.5)),),
}
PRIOR_SD = {"decay": (0.4, 0.7, 1.0), "rbf": (0.7, 1.5, 1.5), "rbf-plain": (0.7,)}
BOUNDS = {
    "decay": tuple((float(np.log(a)), float(np.log(b))) for a, b in ((0.1, 10.0), (3e-3, 10.0), (1e-4, 1e4))),
    "rbf": tuple((float(np.log(a)), float(np.log(b))) for a, b in ((0.2, 3.0), (1e-4, 1e4), (1e-2, 1e3))),
    "rbf-plain": ((float(np.log(0.2)), float(np.log(3.0))),),
}
# The paper does not say where its two places are. One at 0 would leave room to rise right after it. More places hold
# curves down better but pull predictions below the truth, see docs/extrapolation.md.
DECAY_TIMES = (0.1, 1.0)
SPACING = 0.7  # of the length-scale, between virtual slopes of both "rbf": a curve cannot turn within it
PER_CURVE = 9  # at most; the lower bound of the length-scale needs no more


def covariance(kernel: TimeKernel, phi: Array, s: Array, ds: Ints, t: Array, dt: Ints) -> Array:
    """K_t (p, q) between values and slopes at s and at t.

    >>> at, value, slope = np.array([0.5]), np.array([0]), np.array([1])
    >>> phi = np.log([1.0, 1.0, 2.0])  # w + 1 / (s + t + 1)
    >>> [covariance("decay", phi, at, a, at, b).item() for a, b in ((value, value), (slope, value), (slope, slope))]
    [2.5, -0.25, 0.25]
    """
    order = ds[:, None] + dt
    if kernel == "decay":
        alpha, beta, w = np.exp(phi)
        stretched = 1.0 + (s[:, None] + t) / beta
        factor = np.array([1.0, -alpha / beta, alpha * (alpha + 1.0) / beta**2])[order]
        return np.asarray(w * (order == 0) + factor * stretched ** (-alpha - order))
    scale, w, c = _of_rbf(kernel, phi)
    (h_s, fast_s), (h_t, fast_t) = warped(c, s), warped(c, t)
    d = (h_s[:, None] - h_t) / scale
    factor = np.where(order == 0, 1.0, np.where(order == 1, d * (dt - ds[:, None]), 1.0 - d * d))
    factor *= np.where(ds == 1, fast_s / scale, 1.0)[:, None] * np.where(dt == 1, fast_t / scale, 1.0)
    return np.asarray(w * (order == 0) + factor * np.exp(-0.5 * d * d))


def _of_rbf(kernel: TimeKernel, phi: Array) -> tuple[float, float, float]:
    """l, w and c."""
    scale, w, c = (float(np.exp(phi[0])), 0.0, 0.0) if kernel == "rbf-plain" else map(float, np.exp(phi))
    return scale, w, c


def warped(c: float, t: Array) -> tuple[Array, Array]:
    """h(t) and its derivative by t; the identity if c is 0."""
    if c == 0.0:
        return t, np.ones_like(t)
    whole = float(np.log1p(c))
    return np.log1p(c * t) / whole, c / ((1.0 + c * t) * whole)


def variance(kernel: TimeKernel, phi: Array, t: Array, dt: Ints) -> Array:
    """The diagonal (q,) of `covariance` at t."""
    if kernel == "decay":
        alpha, beta, w = np.exp(phi)
        factor = np.array([1.0, alpha * (alpha + 1.0) / beta**2])[dt]
        return np.asarray(w * (dt == 0) + factor * (1.0 + 2.0 * t / beta) ** (-alpha - 2.0 * dt))
    scale, w, c = _of_rbf(kernel, phi)
    return np.asarray(np.where(dt == 0, w + 1.0, (warped(c, t)[1] / scale) ** 2))


def with_gradient(kernel: TimeKernel, phi: Array, t: Array) -> tuple[Array, list[Array]]:
    """K_t (u, u) of values at t (u,), and its derivatives by phi."""
    if kernel == "decay":
        alpha, beta, w = np.exp(phi)
        sums = (t[:, None] + t) / beta
        logs = np.log1p(sums)
        power = np.exp(-alpha * logs)
        by_beta = alpha * power * sums / (1.0 + sums)
        return w + power, [-alpha * logs * power, by_beta, np.full_like(power, w)]
    scale, w, c = _of_rbf(kernel, phi)
    h = warped(c, t)[0]
    d = (h[:, None] - h) / scale
    e = np.exp(-0.5 * d * d)
    if kernel == "rbf-plain":
        return e, [d * d * e]
    by_log_c = c * (t / (1.0 + c * t) - h / (1.0 + c)) / np.log1p(c)
    by_c = -d * e * (by_log_c[:, None] - by_log_c) / scale
    return w + e, [d * d * e, np.full_like(e, w), by_c]


def virtual_times(kernel: TimeKernel, phi: Array) -> Array:
    """Where a curve's slope is held at or below 0 (BAPI, appendix A): at two times for "decay", which mainly give the
    direction; for "rbf" evenly over h(t), for "rbf-plain" over t, less than a length-scale apart."""
    if kernel == "decay":
        return np.array(DECAY_TIMES)
    count = int(np.ceil(1.0 / (SPACING * np.exp(phi[0])))) + 1
    even = np.linspace(0.0, 1.0, int(np.clip(count, 2, PER_CURVE)))
    if kernel == "rbf-plain":
        return even
    c = np.exp(phi[2])
    return np.asarray(np.expm1(even * np.log1p(c)) / c)
