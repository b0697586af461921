"""Fitting: what is found, from where it starts, and data that tries to break it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from farthing.surrogates import gp
from farthing.surrogates.fitting import LOG_SCALE_BOUNDS
from farthing.surrogates.gp import LOG_NOISE_BOUNDS, Loss
from oracles import dense_gp
from oracles.dense_gp import CASES

HOSTILE_X = np.random.default_rng(11).random((12, 3))
HOSTILE_Y = np.random.default_rng(12).standard_normal(12)
CENTRE = np.full(12, 0.5)

# A variance must be a float, so that outputs end at 1e150; the warp brings larger ones within.
HOSTILE = {
    "duplicates that agree": (np.repeat(HOSTILE_X[:4], 3, axis=0), np.repeat(HOSTILE_Y[:4], 3)),
    "duplicates that do not": (np.repeat(HOSTILE_X[:4], 3, axis=0), HOSTILE_Y),
    "all at one point": (np.repeat(HOSTILE_X[:1], 12, axis=0), HOSTILE_Y),
    "points a rounding apart": (
        np.nextafter(np.repeat(HOSTILE_X[:6], 2, axis=0), np.tile([[0.0], [1.0]], (6, 1))),
        HOSTILE_Y,
    ),
    "constant outputs": (HOSTILE_X, np.full(12, 3.7)),
    "outputs all zero": (HOSTILE_X, np.zeros(12)),
    "constant at a third": (HOSTILE_X, np.full(12, 1.0 / 3.0)),
    "constant outputs of 1e150": (HOSTILE_X, np.full(12, 1e150)),
    "one point": (HOSTILE_X[:1], HOSTILE_Y[:1]),
    "one point at zero": (HOSTILE_X[:1], np.zeros(1)),
    "two points": (HOSTILE_X[:2], HOSTILE_Y[:2]),
    "fewer points than dimensions": (np.random.default_rng(3).random((3, 12)), HOSTILE_Y[:3]),
    "twelve decades": (HOSTILE_X, 10.0 ** np.linspace(-6, 6, 12)),
    "twelve decades of both signs": (HOSTILE_X, np.sign(HOSTILE_Y) * 10.0 ** np.linspace(-6, 6, 12)),
    "one outlier of 1e9": (HOSTILE_X, np.append(HOSTILE_Y[:11], 1e9)),
    "outputs of 1e150": (HOSTILE_X, 1e150 * HOSTILE_Y),
    "outputs of 1e-150": (HOSTILE_X, 1e-150 * HOSTILE_Y),
    "a small signal on a large offset": (HOSTILE_X, 1e9 + HOSTILE_Y),
    "a constant column": (np.column_stack([HOSTILE_X[:, :2], CENTRE]), HOSTILE_Y),
    "only constant columns": (np.column_stack([CENTRE, CENTRE]), HOSTILE_Y),
    "corners of the cube": (np.round(HOSTILE_X), HOSTILE_Y),
    "integers": (HOSTILE_X, np.arange(12)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_gives_finite_predictions_and_positive_variances(name):
    """Warnings are errors here: nothing may overflow on the way either."""
    X, y = HOSTILE[name]
    model = gp.fit(X, y)
    P = np.concatenate([np.random.default_rng(0).random((20, X.shape[1])), X])
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(P)
    for part in (mean, variance, mean_slope, variance_slope, *model.predict(P), *model.leave_one_out()):
        assert np.isfinite(part).all()
    assert (variance > 0.0).all()
    conditioned = model.condition(P[:3], mean[:3])
    assert np.isfinite(conditioned.predict(P)).all()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_warm_start_meets_hostile_data_as_a_cold_one_does(name):
    X, y = HOSTILE[name]
    warm = gp.Hyperparameters((0.0,) * X.shape[1], -8.0, cold_at=len(X))
    assert np.isfinite(gp.fit(X, y, warm=warm).predict(X)).all()


@pytest.mark.parametrize("value", [3.7, 0.0, -1e-7, 1e12])
def test_constant_outputs_are_predicted_everywhere(value):
    model = gp.fit(HOSTILE_X, np.full(12, value))
    mean, _ = model.predict(np.random.default_rng(0).random((20, 3)))
    np.testing.assert_allclose(mean, value, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 50.0), (-1.0, 0.0), (2.5e-7, 1e-6), (3e8, -1e9), (1e100, 1e99)])
def test_other_units_give_the_same_process_in_those_units(scale, shift):
    """fit(a y + b) predicts a mean + b, with a^2 times the variance and the same hyperparameters."""
    case = CASES["three dimensions"]
    y, P = dense_gp.standardised(case.y), np.random.default_rng(0).random((40, 3))
    plain, moved = gp.fit(case.X, y), gp.fit(case.X, scale * y + shift)
    mean, variance = plain.predict(P)
    moved_mean, moved_variance = moved.predict(P)
    np.testing.assert_allclose((moved_mean - shift) / scale, mean, atol=1e-5)
    np.testing.assert_allclose(moved_variance / scale / scale, variance, rtol=1e-4)


def test_the_order_of_observations_does_not_matter():
    case = CASES["three dimensions"]
    order, P = np.random.default_rng(0).permutation(len(case.y)), np.random.default_rng(1).random((40, 3))
    mean, variance = gp.fit(case.X, case.y).predict(P)
    other_mean, other_variance = gp.fit(case.X[order], case.y[order]).predict(P)
    np.testing.assert_allclose(other_mean, mean, rtol=1e-5)
    np.testing.assert_allclose(other_variance, variance, rtol=1e-3)


def test_tied_columns_share_one_scale():
    case = CASES["tied columns"]
    model = gp.fit(case.X, case.y, case.groups)
    assert len(model.hyperparameters.log_scales) == 3
    assert model.scales[1] == model.scales[2] == model.scales[3]


def test_an_input_without_effect_gets_a_longer_scale_than_one_with():
    X = np.random.default_rng(2).random((40, 2))
    model = gp.fit(X, np.sin(9.0 * X[:, 0]))
    assert model.scales[1] > 3.0 * model.scales[0]


def test_noise_is_told_from_signal():
    rng = np.random.default_rng(4)
    X = rng.random((80, 1))
    signal = np.sin(6.0 * X[:, 0])
    clean, noisy = gp.fit(X, signal), gp.fit(X, signal + 0.3 * rng.standard_normal(80))
    assert np.sqrt(clean.noise) < 0.01
    assert np.sqrt(noisy.noise) == pytest.approx(0.3, rel=0.3)
    P = np.linspace(0.05, 0.95, 50)[:, None]
    assert np.abs(noisy.predict(P)[0] - np.sin(6.0 * P[:, 0])).max() < 0.3


def test_the_fit_is_as_probable_as_the_best_of_many_random_starts():
    """In at least 9 of 10 data sets within 0.05 of the least loss that 12 full searches find."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.random((15, 2))
        y = np.sin(rng.uniform(2.0, 9.0) * X[:, 0]) + rng.uniform(0.0, 2.0) * X[:, 1] + 0.05 * rng.standard_normal(15)
        z = dense_gp.standardised(y)
        loss = Loss(X, z, np.arange(2), 2)
        bounds = [LOG_SCALE_BOUNDS] * 2 + [LOG_NOISE_BOUNDS]
        starts = np.column_stack([rng.uniform(-3.0, 3.0, (12, 2)), rng.uniform(-14.0, 0.0, 12)])
        best = min(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).fun for start in starts)
        found += loss(gp.fit(X, y).hyperparameters.theta)[0] <= best + 0.05
    assert found >= 9


def test_many_observations_are_fitted_as_well_as_few():
    """A search may look at a part of the data, but its answer is one for all of it."""
    rng = np.random.default_rng(0)
    X = rng.random((220, 2))
    y = np.sin(7.0 * X[:, 0]) + X[:, 1] ** 2 + 0.02 * rng.standard_normal(220)
    loss = Loss(X, dense_gp.standardised(y), np.arange(2), 2)
    bounds = [LOG_SCALE_BOUNDS] * 2 + [LOG_NOISE_BOUNDS]
    starts = [np.array([-0.5, 0.5, -7.0]), np.array([1.0, 1.0, -3.0])]
    best = min(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).fun for start in starts)
    assert loss(gp.fit(X, y).hyperparameters.theta)[0] <= best + 0.1


def test_the_same_data_and_warm_start_give_the_same_bits():
    case = CASES["tied columns"]
    warm = gp.Hyperparameters((0.2, -0.3, 0.4), -6.0, cold_at=len(case.y))
    for start in (None, warm):
        first, second = (gp.fit(case.X, case.y, case.groups, start) for _ in range(2))
        assert first.hyperparameters == second.hyperparameters
        np.testing.assert_array_equal(first.predict(case.X), second.predict(case.X))


def two_explanations() -> tuple[np.ndarray, np.ndarray, gp.Hyperparameters, gp.Hyperparameters]:
    """Data that is either a fast wave or noise: two valleys of the loss, the wave the deeper one."""
    X = np.linspace(0.0, 1.0, 25)[:, None]
    y = np.sin(40.0 * X[:, 0])
    wave, noise = (gp.Hyperparameters((log_scale,), eta, 25) for log_scale, eta in ((np.log(0.08), -12.0), (3.0, 3.0)))
    return X, y, wave, noise


def test_a_warm_start_is_where_the_search_begins():
    """From the shallower of two valleys it does not get to the deeper one, which a search from elsewhere finds."""
    X, y, wave, noise = two_explanations()
    from_wave, from_noise = gp.fit(X, y, warm=wave).hyperparameters, gp.fit(X, y, warm=noise).hyperparameters
    assert from_wave.log_scales[0] < np.log(0.5)
    assert from_noise.log_scales[0] > np.log(0.5)
    assert from_noise.cold_at == noise.cold_at


def test_a_cold_search_does_not_lose_what_the_warm_start_knew():
    """Who has found the deeper valley keeps it when the data has grown, whether or not the other starts see it."""
    X, y, wave, _ = two_explanations()
    loss = Loss(X, dense_gp.standardised(y), np.arange(1), 1)
    known = gp.fit(X, y, warm=wave).hyperparameters
    again = gp.fit(X, y, warm=replace(known, cold_at=5)).hyperparameters
    assert again.cold_at == 25
    assert loss(again.theta)[0] <= loss(known.theta)[0] + 1e-3


def test_a_cold_search_leaves_a_bad_warm_start_behind():
    X = np.linspace(0.0, 1.0, 25)[:, None]
    y = np.sin(8.0 * X[:, 0])
    stuck = gp.Hyperparameters((6.5,), 4.5, cold_at=25)
    assert gp.fit(X, y, warm=stuck).noise > 0.1  # what the warm start alone leads to
    assert gp.fit(X, y, warm=replace(stuck, cold_at=5)).noise < 1e-3


def test_a_fit_warm_started_from_itself_stays_where_it_is():
    case = CASES["three dimensions"]
    first = gp.fit(case.X, case.y)
    again = gp.fit(case.X, case.y, warm=first.hyperparameters)
    P = np.random.default_rng(0).random((30, 3))
    sd = np.sqrt(first.variance)
    np.testing.assert_allclose(again.predict(P)[0], first.predict(P)[0], atol=0.02 * sd)
    assert again.hyperparameters.cold_at == first.hyperparameters.cold_at == len(case.y)


def test_a_warm_start_of_another_space_is_ignored():
    case = CASES["three dimensions"]
    stranger = gp.Hyperparameters((0.1, 0.2), -5.0, cold_at=25)
    expected = gp.fit(case.X, case.y).hyperparameters
    assert gp.fit(case.X, case.y, warm=stranger).hyperparameters == expected


def test_hyperparameters_survive_being_stored():
    theta = gp.fit(HOSTILE_X, HOSTILE_Y).hyperparameters
    assert gp.Hyperparameters.from_json(json.loads(json.dumps(theta.as_json()))) == theta


def test_fitting_leaves_the_data_as_it_was():
    case = CASES["tied columns"]
    X, y = case.X.copy(), case.y.copy()
    model = gp.fit(X, y, case.groups)
    model.predict_with_gradient(X)
    model.covariance(X)
    model.leave_one_out()
    np.testing.assert_array_equal(X, case.X)
    np.testing.assert_array_equal(y, case.y)


def test_ninety_percent_intervals_hold_nine_tenths_of_draws_from_the_prior():
    """Functions and length-scales from the prior, ten observations per dimension: between 80 % and 97 % are held.

    The hyperparameters are the most probable ones and not an average, so that somewhat less than 90 % is no fault.
    """
    covered = []
    for d, seed in itertools.product([1, 2, 4], range(25)):
        n, rng = 10 * d + 10, np.random.default_rng([d, seed])
        X = rng.random((n + 40, d))
        scales = np.exp(rng.normal(np.sqrt(2.0) + 0.5 * np.log(d), np.sqrt(3.0), d))
        K = dense_gp.kernel(X, X, scales) + 1e-10 * np.eye(n + 40)
        f = np.linalg.cholesky(K) @ rng.standard_normal(n + 40)
        mean, variance = gp.fit(X[:n], f[:n] + 0.01 * rng.standard_normal(n)).predict(X[n:])
        covered.append(np.mean(np.abs(f[n:] - mean) <= 1.6449 * np.sqrt(variance)))
    assert 0.80 <= np.mean(covered) <= 0.97
