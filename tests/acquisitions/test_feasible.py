"""Any log utility weighed by the probability of success."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.feasible import IfSuccessful
from farthing.surrogates import feasibility, gp
from farthing.surrogates.cost import log_cost
from oracles.log_ei import LogEI


@pytest.fixture
def models():
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    value = gp.fit(X, np.sin(5.0 * X).sum(axis=1))
    success = feasibility.fit(X, np.linalg.norm(X - 0.5, axis=1) > 0.35)
    return value, success, log_cost.process(X, X[:, 0])


def test_it_is_the_sum_of_the_two_logarithms(models):
    value, success, _ = models
    Z = np.random.default_rng(1).random((50, 3))
    improvement = LogEI(value, -1.0)
    expected = improvement(Z) + success.log_success(Z)
    np.testing.assert_allclose(IfSuccessful(improvement, success)(Z), expected)


def test_its_gradient_is_that_of_finite_differences_also_per_cost(models):
    value, success, cost = models
    weighed = IfSuccessful(LogEI(value, -1.0), success)
    Z, step = np.random.default_rng(2).random((20, 3)), 1e-6
    for acquisition in (weighed, PerCost(weighed, cost, 0.7)):
        values, slopes = acquisition.with_gradient(Z)
        np.testing.assert_allclose(values, acquisition(Z), rtol=1e-9)
        moved = [(acquisition(Z + step * e) - acquisition(Z - step * e)) / (2 * step) for e in np.eye(3)]
        np.testing.assert_allclose(slopes, np.stack(moved, axis=1), rtol=1e-4, atol=1e-5)


def test_of_two_points_alike_in_value_the_one_that_may_succeed_is_better():
    """The value is symmetric about the middle, and all failures are on the left."""
    X = np.linspace(0.0, 1.0, 11)[:, None]
    value = gp.fit(X, np.abs(X[:, 0] - 0.5))
    success = feasibility.fit(X, X[:, 0] > 0.3)
    left, right = IfSuccessful(LogEI(value, 0.1), success)(np.array([[0.12], [0.88]]))
    assert left < right - 3.0
