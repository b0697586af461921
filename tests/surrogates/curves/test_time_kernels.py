"""Kernels over training time: derivatives against finite differences, and where slopes are held."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.curves import time_kernels
from oracles.falling_curves import PHI, every_kernel, k_t


@every_kernel
def test_kernel_derivatives_are_those_of_the_kernel(kernel: str) -> None:
    """All four blocks by central differences: Eq. (28) as printed, without the square of t - t', would fail."""
    s, t, e = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.55]), 1e-4
    values, slopes = (lambda u: np.zeros(len(u), dtype=np.intp)), (lambda u: np.ones(len(u), dtype=np.intp))

    def block(ds, dt):
        return time_kernels.covariance(kernel, PHI[kernel], s, ds(s), t, dt(t))

    def differences(by_s: bool, by_t: bool) -> np.ndarray:
        def at(a: float, b: float) -> float:
            pairs = [(p, q, p * q) for p in ((1, -1) if by_s else (1,)) for q in ((1, -1) if by_t else (1,))]
            return sum(k_t(kernel, a + by_s * p * e, b + by_t * q * e) * sign for p, q, sign in pairs)

        return np.array([[at(a, b) for b in t] for a in s]) / (2.0 * e) ** (by_s + by_t)

    np.testing.assert_allclose(block(values, values), differences(False, False), rtol=1e-12)
    np.testing.assert_allclose(block(slopes, values), differences(True, False), rtol=1e-5)
    np.testing.assert_allclose(block(values, slopes), differences(False, True), rtol=1e-5)
    np.testing.assert_allclose(block(slopes, slopes), differences(True, True), rtol=1e-4, atol=1e-6)


@every_kernel
def test_variances_are_the_diagonal_of_covariances(kernel: str) -> None:
    t, order = np.array([0.0, 0.3, 1.0, 0.2]), np.array([0, 1, 0, 1])
    whole = time_kernels.covariance(kernel, PHI[kernel], t, order, t, order)
    np.testing.assert_allclose(time_kernels.variance(kernel, PHI[kernel], t, order), np.diag(whole), rtol=1e-12)


@every_kernel
def test_virtual_slopes_are_close_enough(kernel: str) -> None:
    """Two for decay; for rbf less than a length-scale apart even at the shortest one allowed, in its own time."""
    c = np.exp(2.0) if kernel == "rbf" else 0.0
    for log_scale in (time_kernels.BOUNDS["rbf"][0][0], 0.0, 1.0):
        phi = np.array([log_scale, 0.0, 2.0])
        places = time_kernels.virtual_times(kernel, phi)
        assert places[-1] == pytest.approx(1.0)
        if kernel == "decay":
            assert len(places) == 2
        else:
            assert np.diff(time_kernels.warped(c, places)[0]).max() < np.exp(log_scale)
