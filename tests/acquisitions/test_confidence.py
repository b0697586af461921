"""Confidence bounds and what they may gain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from farthing.acquisitions.confidence import ConfidenceBound, LogOptimism, width
from farthing.surrogates import gp


def model(seed: int = 0) -> gp.GP:
    rng = np.random.default_rng(seed)
    X = rng.random((12, 3))
    return gp.fit(X, np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2)


def test_the_width_is_that_of_the_paper():
    assert width(6, 25) ** 2 == pytest.approx(0.2 * 6 * np.log(50.0))
    assert width(3, 40) > width(3, 20) > 0.0
    assert width(6, 20) == pytest.approx(np.sqrt(2.0) * width(3, 20))


def test_the_bound_prefers_low_means_and_large_deviations():
    fitted, X = model(), np.random.default_rng(1).random((50, 3))
    mean, variance = fitted.predict(X)
    np.testing.assert_allclose(ConfidenceBound(fitted, 1.7)(X), -(mean - 1.7 * np.sqrt(variance)))
    np.testing.assert_allclose(ConfidenceBound(fitted, 0.0)(X), -mean)


@pytest.mark.parametrize("target", [2.0, 0.0, -3.0])
def test_gradients_are_those_of_finite_differences(target):
    bound = ConfidenceBound(model(), 1.3)
    for acquisition in (bound, LogOptimism(bound, target, 0.05)):
        for x in np.random.default_rng(2).random((5, 3)):
            value, slope = acquisition.with_gradient(x[None])
            assert value[0] == pytest.approx(acquisition(x[None])[0])
            numeric = approx_fprime(x, lambda u, a=acquisition: float(a(u[None])[0]), 1e-6)
            np.testing.assert_allclose(slope[0], numeric, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(numeric).max()))


def test_optimism_is_the_log_of_the_gain_where_there_is_one_and_never_minus_infinity():
    bound, X = ConfidenceBound(model(), 1.0), np.random.default_rng(3).random((100, 3))
    gain = 1.5 + bound(X)
    logs = LogOptimism(bound, 1.5, 0.01)(X)
    clear = gain > 0.1
    np.testing.assert_allclose(logs[clear], np.log(gain[clear] / 0.01), atol=1e-3)
    assert np.isfinite(LogOptimism(bound, -1e6, 0.01)(X)).all()
    order = np.argsort(gain)
    assert np.all(np.diff(logs[order]) >= -1e-12)
