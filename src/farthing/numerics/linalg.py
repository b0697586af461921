"""Robust Cholesky factors, and how they grow by rows.

Symbols: K (n, n) symmetric positive definite; L lower triangular with L L' = K.
Matrices go to LAPACK in Fortran order, which avoids copies.
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.lapack import dpotrf, dpotri, dtrtrs

FIRST_JITTER = 1e-10  # relative to the scale of the matrix: well above rounding
LAST_JITTER = 1e-2  # a matrix that needs more is wrong, not rounded


def cholesky(K: Array, scale: float | None = None) -> Array:
    """The lower factor of K, with the smallest diagonal added, of a growing sequence, for which it exists.

    The diagonal added is a share of `scale`, by default of the mean of the diagonal. Only the lower triangle of K is
    read. Raises FloatingPointError if there is no factor even so, for example because K is not finite.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    L, info = dpotrf(K, clean=True)
    if info == 0 and np.isfinite(L.diagonal()).all():  # LAPACK lets some NaN through
        return L
    if scale is None:
        scale = float(np.mean(np.diag(K)))
    jitter = FIRST_JITTER
    while np.isfinite(scale) and jitter <= LAST_JITTER:
        L, info = dpotrf(K + np.diag(np.full(len(K), jitter * scale)), clean=True)
        if info == 0 and np.isfinite(L.diagonal()).all():
            return L
        jitter *= 10.0
    raise FloatingPointError("the matrix has no Cholesky factor, even with a jitter of 1 % of its diagonal")


def extend_cholesky(L: Array, K_cross: Array, K_new: Array) -> Array:
    """The factor of [[K, K_cross], [K_cross', K_new]] from the factor L of K, in O(n^2 m).

    K_cross (n, m), K_new (m, m).
    """
    n, m = K_cross.shape
    if m == 0:
        return L
    below = forward(L, K_cross)  # (n, m)
    grown = np.zeros((n + m, n + m), order="F")
    grown[:n, :n] = L
    grown[n:, :n] = below.T
    grown[n:, n:] = cholesky(K_new - below.T @ below, scale=float(np.mean(np.diag(K_new))))
    return grown


def forward(L: Array, B: Array) -> Array:
    """L^-1 B."""
    return dtrtrs(L, B)


def backward(L: Array, B: Array) -> Array:
    """L^-T B."""
    return dtrtrs(L, B, trans=True)


def lower_inverse(L: Array) -> Array:
    """K^-1 from its factor L. Only the lower triangle of the result is meaningful."""
    return dpotri(L)


class DistancesTo:
    """Squared distances to points B (n, f): what they take of B alone is computed once.

    >>> DistancesTo(np.array([[0.0, 1.0]]))(np.array([[0.0, 3.0]])).tolist()
    [[4.0]]
    """

    def __init__(self, B: Array) -> None:
        self._towards, self._norms = -2.0 * B.T, np.einsum("ij,ij->i", B, B)

    def __call__(self, A: Array) -> Array:
        """(m, n) from A (m, f), by one matrix product; rounding below zero is cut off."""
        s = A @ self._towards
        s += np.einsum("ij,ij->i", A, A)[:, None]
        s += self._norms
        return np.maximum(s, 0.0, out=s)


def squared_distances(A: Array, B: Array) -> Array:
    """(m, n) squared distances."""
    return DistancesTo(B)(A)
