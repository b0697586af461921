"""The posterior at given hyperparameters, against scikit-learn and against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from farthing.surrogates import gp
from oracles.dense_gp import CASES, Case, DenseGP, kernel, least_squares_mean

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def model_of(case: Case) -> gp.GP:
    return gp.from_hyperparameters(case.X, case.y, case.hyperparameters, case.groups)


def points_for(case: Case, m: int = 30) -> np.ndarray:
    """New points, the observed ones and points beyond the cube."""
    rng = np.random.default_rng(7)
    f = case.X.shape[1]
    return np.concatenate([rng.random((m, f)), case.X, rng.uniform(-1.0, 2.0, (5, f))])


def by_scikit_learn(model: gp.GP) -> GaussianProcessRegressor:
    """The same kernel with nothing left to fit; outputs less our mean, since theirs is 0."""
    matern = ConstantKernel(model.variance, "fixed") * Matern(model.scales, "fixed", nu=2.5)
    regressor = GaussianProcessRegressor(matern, alpha=model.noise, optimizer=None)
    return regressor.fit(model.X, model.y - model.mean)


@every_case
def test_mean_and_variance_are_those_of_scikit_learn(case):
    model, P = model_of(case), points_for(case)
    mean, variance = model.predict(P)
    their_mean, their_sd = by_scikit_learn(model).predict(P, return_std=True)
    np.testing.assert_allclose(mean - model.mean, their_mean, atol=1e-8)
    np.testing.assert_allclose(variance, their_sd**2, atol=1e-8)


@every_case
def test_the_joint_covariance_is_that_of_scikit_learn(case):
    model, P = model_of(case), points_for(case, 10)
    mean, covariance = model.covariance(P)
    their_mean, their_covariance = by_scikit_learn(model).predict(P, return_cov=True)
    np.testing.assert_allclose(mean - model.mean, their_mean, atol=1e-8)
    np.testing.assert_allclose(covariance, their_covariance, atol=1e-8)


@every_case
def test_the_covariance_has_the_variances_on_its_diagonal(case):
    model, P = model_of(case), points_for(case)
    mean, variance = model.predict(P)
    joint_mean, covariance = model.covariance(P)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), variance, atol=1e-9 * model.variance)


@every_case
def test_the_constant_mean_is_the_generalised_least_squares_estimate(case):
    model = model_of(case)
    K = kernel(case.X, case.X, model.scales) + np.exp(case.hyperparameters.log_noise) * np.eye(len(case.y))
    assert model.mean == pytest.approx(least_squares_mean(K, case.y), rel=1e-9)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case.y) > 1])
def test_the_signal_variance_counts_the_prior_as_one_observation(name):
    """(q + spread^2) / (n + 1) in the units of y, spread^2 the variance of the outputs."""
    case = CASES[name]
    model = model_of(case)
    K = kernel(case.X, case.X, model.scales) + np.exp(case.hyperparameters.log_noise) * np.eye(len(case.y))
    residual = case.y - model.mean
    q = residual @ np.linalg.solve(K, residual)
    assert model.variance == pytest.approx((q + case.y.var()) / (len(case.y) + 1.0), rel=1e-8)
    assert model.noise == pytest.approx(model.variance * np.exp(case.hyperparameters.log_noise), rel=1e-12)


@every_case
def test_gradients_of_the_posterior_are_its_central_differences(case):
    """At new points, on observed ones, where distances vanish, and outside the cube."""
    model, P, h = model_of(case), points_for(case), 1e-5
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(P)
    plain_mean, plain_variance = model.predict(P)
    np.testing.assert_allclose(mean, plain_mean, rtol=1e-12)
    np.testing.assert_allclose(variance, plain_variance, rtol=1e-9)
    assert mean_slope.shape == variance_slope.shape == P.shape
    for j in range(P.shape[1]):
        e = h * np.eye(P.shape[1])[j]
        (mean_up, variance_up), (mean_down, variance_down) = model.predict(P + e), model.predict(P - e)
        sd = np.sqrt(model.variance)
        np.testing.assert_allclose(mean_slope[:, j], (mean_up - mean_down) / (2 * h), rtol=1e-5, atol=1e-6 * sd)
        expected = (variance_up - variance_down) / (2 * h)
        np.testing.assert_allclose(variance_slope[:, j], expected, rtol=1e-5, atol=1e-6 * model.variance)


def test_a_variance_that_is_rounding_is_positive_and_flat():
    """Between observations without noise 1 - k'K^-1 k comes out below zero at some points, and must not be seen."""
    X, P = np.linspace(0.0, 1.0, 20)[:, None], np.linspace(0.0, 1.0, 400)[:, None]
    rounded = 0
    for scale in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0):
        model = gp.from_hyperparameters(X, np.sin(3.0 * X[:, 0]), gp.Hyperparameters((np.log(scale),), np.log(1e-16)))
        nothing_left = np.diag(model.covariance(P)[1]) <= 0.0
        _, variance, _, slope = model.predict_with_gradient(P)
        assert (variance > 0.0).all()
        assert (model.predict(P)[1] > 0.0).all()
        assert (slope[nothing_left] == 0.0).all()
        rounded += nothing_left.sum()
    assert rounded > 0


@every_case
@pytest.mark.parametrize("m", [0, 1, 6])
def test_conditioning_is_having_seen_all_the_data_at_once(case, m):
    """Hyperparameters, mean and signal variance stay what they were."""
    model, P = model_of(case), points_for(case)
    rng = np.random.default_rng(m)
    X_new, y_new = rng.random((m, case.X.shape[1])), 40.0 + rng.standard_normal(m)
    conditioned = model.condition(X_new, y_new)
    assert (conditioned.mean, conditioned.variance) == (model.mean, model.variance)
    assert conditioned.hyperparameters == model.hyperparameters
    whole = DenseGP.like(model, np.concatenate([case.X, X_new]), np.concatenate([case.y, y_new]))
    mean, covariance = whole.predict(P)
    np.testing.assert_allclose(conditioned.predict(P)[0], mean, atol=1e-7)
    np.testing.assert_allclose(conditioned.predict(P)[1], np.diag(covariance), atol=1e-7)
    np.testing.assert_allclose(conditioned.covariance(P)[1], covariance, atol=1e-7)


def test_conditioning_one_by_one_is_conditioning_at_once():
    model = model_of(CASES["three dimensions"])
    rng = np.random.default_rng(0)
    X, y, P = rng.random((4, 3)), 40.0 + rng.standard_normal(4), rng.random((20, 3))
    at_once, one_by_one = model.condition(X, y), model
    for x, value in zip(X, y, strict=True):
        one_by_one = one_by_one.condition(x[None, :], np.array([value]))
    np.testing.assert_allclose(one_by_one.predict(P), at_once.predict(P), rtol=1e-8)
    np.testing.assert_allclose(one_by_one.y, at_once.y)


def test_conditioning_on_the_mean_keeps_the_mean_and_shrinks_the_variance():
    """What a pending evaluation is believed to be."""
    model = model_of(CASES["three dimensions"])
    rng = np.random.default_rng(0)
    X, P = rng.random((3, 3)), rng.random((50, 3))
    believed = model.condition(X, model.predict(X)[0])
    np.testing.assert_allclose(believed.predict(P)[0], model.predict(P)[0], atol=1e-7)
    assert (believed.predict(P)[1] <= model.predict(P)[1] + 1e-12).all()
    assert (believed.predict(X)[1] < 0.5 * model.predict(X)[1]).all()


def test_conditioning_again_and_again_on_one_point_stays_finite():
    """As many workers on one configuration as there are."""
    model = model_of(CASES["one dimension"])
    x = np.array([[0.37]])
    for _ in range(20):
        model = model.condition(x, model.predict(x)[0])
    assert np.isfinite(model.predict(np.linspace(0, 1, 20)[:, None])).all()
    assert np.isfinite(model.L).all()


def test_conditioning_leaves_the_model_it_came_from_alone():
    model, P = model_of(CASES["tied columns"]), points_for(CASES["tied columns"])
    before = model.predict(P)
    model.condition(P[:2], np.array([1e3, -1e3]))
    np.testing.assert_array_equal(model.predict(P), before)


@every_case
def test_leave_one_out_is_predicting_each_observation_from_the_others(case):
    """By refitting without each one; the variance is that of an observation, noise included."""
    model = model_of(case)
    residuals, variance = model.leave_one_out()
    mean = case.y - residuals
    for i in range(len(case.y)):
        others = np.arange(len(case.y)) != i
        if others.any():
            rest_mean, rest_variance = DenseGP.like(model, case.X[others], case.y[others]).predict(case.X[i : i + 1])
        else:
            rest_mean, rest_variance = np.array([model.mean]), np.array([[model.variance]])
        assert mean[i] == pytest.approx(rest_mean[0], abs=1e-7)
        assert variance[i] == pytest.approx(rest_variance[0, 0] + model.noise, abs=1e-7)


def test_leave_one_out_comes_back_in_the_units_and_places_of_the_observations():
    """A wild observation is far from what the others say of it, and only that one."""
    X = np.linspace(0.0, 1.0, 12)[:, None]
    y = 5.0 + np.sin(3.0 * X[:, 0])
    y[7] += 4.0
    residuals, variance = gp.from_hyperparameters(
        X, y, gp.Hyperparameters((np.log(0.4),), np.log(1e-2))
    ).leave_one_out()
    z = np.abs(residuals) / np.sqrt(variance)
    assert np.argmax(z) == 7
    assert y[7] - residuals[7] == pytest.approx(5.0 + np.sin(3.0 * X[7, 0]), abs=0.5)


def test_without_groups_every_column_has_its_own_scale():
    case = CASES["three dimensions"]
    P = points_for(case)
    with_array = gp.from_hyperparameters(case.X, case.y, case.hyperparameters, np.arange(3)).predict(P)
    np.testing.assert_array_equal(gp.from_hyperparameters(case.X, case.y, case.hyperparameters).predict(P), with_array)


def test_no_points_get_no_predictions():
    model = model_of(CASES["three dimensions"])
    nothing = np.empty((0, 3))
    assert [part.shape for part in model.predict(nothing)] == [(0,), (0,)]
    assert [part.shape for part in model.predict_with_gradient(nothing)] == [(0,), (0,), (0, 3), (0, 3)]
