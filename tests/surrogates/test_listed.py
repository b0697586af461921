"""Models at the points of a short list, against the whole process conditioned on the same outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.acquisitions.improvement import MeanLogEI
from farthing.surrogates import gp
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.listed import JointPosterior, ListedCost, ListedSuccess


@pytest.fixture(scope="module")
def process() -> gp.GP:
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    return gp.fit(X, np.sin(4 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(25))


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return np.random.default_rng(1).random((9, 3))


def joint(process: gp.GP, points: np.ndarray) -> JointPosterior:
    return JointPosterior(*process.covariance(points), process.noise)


def test_outcomes_change_a_list_as_they_change_the_process(process, points):
    at, outcomes = np.array([7, 2]), np.array([1.4, -0.3])
    found = joint(process, points).given(at, outcomes)
    mean, covariance = process.condition(points[at], outcomes).covariance(points)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)


def test_no_outcome_changes_nothing(process, points):
    before = joint(process, points)
    found = before.given(np.empty(0, dtype=np.intp), np.empty(0))
    np.testing.assert_array_equal(found.mean, before.mean)
    np.testing.assert_array_equal(found.covariance, before.covariance)


def test_what_runs_is_fantasised_as_in_the_process(process, points):
    """The same draws give the same expected improvement."""
    at = np.array([8, 4])
    target, places = float(process.y.min()), np.arange(9.0)[:, None]
    whole = Fantasies.of(process, target, points[at], np.random.default_rng(5))
    listed = joint(process, points).fantasised(at, target, process.least_variance, np.random.default_rng(5))
    others = np.setdiff1d(np.arange(9), at)
    np.testing.assert_allclose(listed.targets, whole.targets)
    np.testing.assert_allclose(MeanLogEI(listed)(places[others]), MeanLogEI(whole)(points[others]), rtol=1e-6)


def test_without_anything_running_there_is_one_outcome(process, points):
    listed = joint(process, points).fantasised(np.empty(0, dtype=np.intp), 0.5, 1e-12, np.random.default_rng(0))
    mean, variance = process.predict(points)
    np.testing.assert_allclose(listed.predict(np.arange(9.0)[:, None])[0][:, 0], mean)
    np.testing.assert_allclose(listed.variance, variance, atol=1e-12)
    assert listed.targets.tolist() == [0.5]


def test_a_surprise_is_counted_in_standard_deviations_of_an_outcome(process, points):
    posterior = joint(process, points)
    mean, variance = process.predict(points)
    spread = np.sqrt(variance + process.noise)
    at = np.array([0, 3])
    assert posterior.surprise(at, mean[at] + np.array([1.0, -4.0]) * spread[at]) == pytest.approx(4.0)
    assert posterior.surprise(at[:0], np.empty(0)) == 0.0


def test_places_are_looked_up_and_have_no_slopes():
    X = np.array([[2.0], [0.0]])
    cost, success = ListedCost(np.arange(3.0), np.ones(3)), ListedSuccess(-np.arange(3.0))
    assert cost.mean_at(X).tolist() == [2.0, 0.0]
    assert success.log_success(X).tolist() == [-2.0, 0.0]
    assert not cost.mean_with_gradient(X)[1].any()
    assert not success.log_success_with_gradient(X)[1].any()
