"""Which steps of training curves enter the data: those at which the process is least certain given all chosen before.

BAPI takes "the points with the highest model uncertainty" of each curve, after Nguyen et al. 2020 (BOIL), who add them
one by one: the end of a curve first, then the step of largest posterior variance given every point chosen so far, of
this curve and of those before it. The variance does not depend on the values, so the choice follows from which steps
were trained and from the hyperparameters. It is that of the process without the constraint.

Symbols and shapes
    R (m, f)      configurations, in the order of their trials;  lengths (m,) the steps each was trained
    L (n, n)      lower factor of the covariance of the points chosen so far, with noise eta on its diagonal
    V (n, l)      L^-1 times the covariance of those points with the steps of one curve
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import cholesky, extend_cholesky, forward, squared_distances
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.unconstrained import Hyperparameters
from farthing.surrogates.kernels import matern52


def by_posterior_variance(
    R: Array, lengths: Sequence[int], t_max: int, hyperparameters: Hyperparameters, groups: Ints, most: int
) -> list[Ints]:
    """At most `most` steps of each curve, from 1 to its length, ascending: the last one always among them.

    >>> prior = Hyperparameters("decay", (0.0,), -6.0, time_kernels.PRIOR_MEAN["decay"])
    >>> found = by_posterior_variance(np.array([[0.1], [0.1]]), [20, 40], 40, prior, np.array([0]), 3)
    >>> [steps.tolist() for steps in found]
    [[1, 5, 20], [1, 4, 40]]
    """
    phi, eta = np.array(hyperparameters.time), float(np.exp(hyperparameters.log_noise))
    K_x = _over_configurations(R, hyperparameters, groups)
    L, of, t = np.empty((0, 0), order="F"), np.empty(0, dtype=np.intp), np.empty(0)
    found = []
    for i, length in enumerate(lengths):
        own = np.arange(1, length + 1) / t_max
        cross = K_x[of, i, None] * _over_time(hyperparameters, phi, t, own)  # (n, l)
        V = forward(L, cross) if len(of) else cross
        rows = _least_certain(hyperparameters, phi, own, V, eta, most)
        new = _over_time(hyperparameters, phi, own[rows], own[rows]) + eta * np.eye(len(rows))
        L = extend_cholesky(L, cross[:, rows], new) if len(of) else cholesky(new)
        of, t = np.append(of, np.full(len(rows), i)), np.append(t, own[rows])
        found.append(rows + 1)
    return found


def _over_configurations(R: Array, hyperparameters: Hyperparameters, groups: Ints) -> Array:
    scaled = R / np.exp(np.array(hyperparameters.log_scales))[groups]
    return matern52(squared_distances(scaled, scaled))


def _over_time(hyperparameters: Hyperparameters, phi: Array, s: Array, t: Array) -> Array:
    value = np.zeros(max(len(s), len(t)), dtype=np.intp)
    return time_kernels.covariance(hyperparameters.kernel, phi, s, value[: len(s)], t, value[: len(t)])


def _least_certain(
    hyperparameters: Hyperparameters, phi: Array, own: Array, V: Array, eta: float, most: int
) -> Ints:  # fmt: skip
    """Rows of a curve's times own (l,), ascending: the last, then each time the one of largest variance given those.

    Every point chosen adds a row to V, so that no (l, l) matrix is ever made: curves can have many thousand steps.
    """
    value = np.zeros(len(own), dtype=np.intp)
    left = time_kernels.variance(hyperparameters.kernel, phi, own, value) - np.einsum("ij,ij->j", V, V)
    chosen = [len(own) - 1]
    while len(chosen) < min(most, len(own)):
        j = chosen[-1]
        shared = _over_time(hyperparameters, phi, own[j, None], own)[0] - V[:, j] @ V
        row = shared / np.sqrt(shared[j] + eta)
        V, left = np.concatenate([V, row[None]]), left - row * row
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
    return np.sort(np.array(chosen, dtype=np.intp))
