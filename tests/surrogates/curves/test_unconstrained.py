"""The process over curves without the constraint that they fall, against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.curves import unconstrained
from farthing.surrogates.curves.unconstrained import Probes
from oracles import dense_gp
from oracles.falling_curves import T_MAX, every_kernel, hyperparameters, k_t, state


@every_kernel
def test_plain_predictions_are_the_dense_formulas(kernel: str) -> None:
    X, t, y = state()
    plain = unconstrained.from_hyperparameters(X, t, y, hyperparameters(kernel), T_MAX)
    X_new, t_new = np.random.default_rng(1).random((4, 2)), np.array([0.0, 5.0, 20.0, 40.0])

    def K(A, a, B, b):
        over_t = np.array([[k_t(kernel, s / T_MAX, u / T_MAX) for u in b] for s in a])
        return plain.variance * dense_gp.kernel(A, B, np.exp([-0.5, -0.5])) * over_t

    inverse = np.linalg.inv(K(X, t, X, t) + plain.noise * np.eye(len(t)))
    cross = K(X_new, t_new, X, t)
    probes = Probes.values(X_new, t_new / T_MAX)
    mean, V = plain.whitened(probes)
    covariance = plain.variance * (plain.prior(probes, probes) - V.T @ V)
    np.testing.assert_allclose(mean, plain.mean + cross @ inverse @ (y - plain.mean), rtol=1e-8)
    np.testing.assert_allclose(covariance, K(X_new, t_new, X_new, t_new) - cross @ inverse @ cross.T, atol=1e-9)
    np.testing.assert_allclose(plain.predict(X_new, t_new)[1], np.diag(covariance), rtol=1e-6)


@every_kernel
def test_slopes_are_the_derivatives_of_the_mean(kernel: str) -> None:
    plain = unconstrained.from_hyperparameters(*state(), hyperparameters(kernel), T_MAX)
    x, t = np.full((3, 2), 0.4), np.array([0.2, 0.5, 0.8])
    slope = plain.moments(Probes(x, t, np.ones(3, dtype=np.intp)))[0]
    up, down = (plain.predict(x, (t + e) * T_MAX)[0] for e in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5, atol=1e-7)


@every_kernel
def test_conditioning_is_refitting_with_the_same_hyperparameters(kernel: str) -> None:
    X, t, y = state()
    whole = unconstrained.from_hyperparameters(X, t, y, hyperparameters(kernel), T_MAX)
    grown = unconstrained.from_hyperparameters(X[:-4], t[:-4], y[:-4], hyperparameters(kernel), T_MAX).condition(
        X[-4:], t[-4:], y[-4:]
    )
    np.testing.assert_allclose(grown.L @ grown.L.T, whole.L @ whole.L.T, atol=1e-10)
    asked = np.full((1, 2), 0.3), np.array([T_MAX])
    k = whole.cross(Probes.values(asked[0], asked[1] / T_MAX))[0]
    expected = grown.mean + k @ np.linalg.solve(whole.L @ whole.L.T, y - grown.mean)
    assert grown.predict(*asked)[0][0] == pytest.approx(expected, rel=1e-8)
