"""The cost of an evaluation and a constant: its law by sampling, its gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from farthing.surrogates import gp
from farthing.surrogates.cost.shifted import Shifted, shifted

RNG = np.random.default_rng(0)
X = RNG.random((12, 2))
MODEL = gp.fit(X, np.sin(3.0 * X[:, 0]) + X[:, 1], np.arange(2))


@pytest.mark.parametrize("constant", [0.01, 1.0, 50.0])
def test_gradients_are_those_of_finite_differences(constant):
    model = Shifted(MODEL, constant)
    for x in RNG.random((3, 2)):
        _, _, slope, variance_slope = model.predict_with_gradient(x[None])
        for found, part in ((slope, 0), (variance_slope, 1)):
            wanted = approx_fprime(x, lambda at, part=part: model.predict(at[None])[part][0], 1e-6)
            assert found[0] == pytest.approx(wanted, rel=1e-3, abs=1e-6)
        assert model.mean_with_gradient(x[None])[1] == pytest.approx(slope)
        assert model.mean_at(x[None]) == pytest.approx(model.predict(x[None])[0])


@pytest.mark.parametrize("constant", [0.1, 1.0, 10.0])
def test_the_mean_is_the_log_of_the_median_of_the_sum(constant):
    """The variance is that of the sum's logarithm, by sampling, as far as the first term of a series goes."""
    x = np.array([[0.5, 0.5]])
    mean, variance = MODEL.predict(x)
    draws = np.log(np.exp(mean + np.sqrt(variance) * RNG.standard_normal(100_000)) + constant)
    found, spread = Shifted(MODEL, constant).predict(x)
    assert found[0] == pytest.approx(np.median(draws), abs=0.01 * np.std(draws))
    assert np.sqrt(spread[0]) == pytest.approx(np.std(draws), rel=0.1)


def test_nothing_is_added_where_there_is_nothing():
    assert shifted(MODEL, 0.0) is MODEL
    assert shifted(None, 1.0) is None
