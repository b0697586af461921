"""Two levels of training: the posterior against dense algebra and draws."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from farthing.surrogates import gp, two_fidelity
from farthing.surrogates.two_fidelity import Hyperparameters, TwoFidelity
from farthing.surrogates.two_fidelity.paired import FREE
from oracles import dense_gp
from oracles.two_levels import (
    BOUNDED,
    HYPER,
    MIXED,
    NESTED,
    POINTS,
    UNSEEN,
    X_E,
    Y_E,
    predict_low,
    predict_low_with_gradient,
    truth,
)

INF = np.inf


def gaussian(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (((A[:, None, :] - B[None, :, :]) / scales) ** 2).sum(axis=2))


def model_of(h: Hyperparameters, X_c: np.ndarray, **options) -> TwoFidelity:
    return two_fidelity.from_hyperparameters(X_E, Y_E, X_c, truth(X_c, h.rho), h, **options)


def autoregressive(model: TwoFidelity, X_c: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kennedy and O'Hagan's process as one big normal: mean and variance of the complete level at P.

    A complete run goes on from its own eighty-percent run, noise and all, if it had one.
    """
    h = model.hyperparameters
    kernel = dense_gp.kernel if h.kernel == "matern52" else gaussian
    low, bias = (np.exp(part.log_scales) for part in (h.low, h.bias))
    own = (X_c[:, None, :] == X_E[None, :, :]).all(axis=2).astype(float)  # (n, m)
    alone = own.sum(axis=1) == 0

    def k_low(A, B):
        return model.low.variance * kernel(A, B, low)

    noise = model.low.variance * np.exp(h.low.log_noise)
    K_ee = k_low(X_E, X_E) + noise * np.eye(len(X_E))
    y_there = own @ K_ee + alone[:, None] * k_low(X_c, X_E)  # cov(what the run went on from, y_e)
    K_cc = own @ K_ee @ own.T + alone[:, None] * k_low(X_c, X_E) @ own.T + own @ k_low(X_E, X_c) * alone
    K_cc += alone[:, None] * k_low(X_c, X_c) * alone
    K_dd = h.variance * (kernel(X_c, X_c, bias) + np.exp(h.bias.log_noise) * np.eye(len(X_c)))
    K = np.block([[K_ee, h.rho * y_there.T], [h.rho * y_there, h.rho**2 * K_cc + K_dd]])
    to_e = k_low(P, X_E)
    to_c = h.rho * (to_e @ own.T + alone * k_low(P, X_c))
    cross = np.hstack([h.rho * to_e, h.rho * to_c + h.variance * kernel(P, X_c, bias)])
    prior = h.rho**2 * model.low.variance + h.variance
    y = np.concatenate([Y_E - model.low.mean, truth(X_c, h.rho) - h.rho * model.low.mean - h.mean])
    mean = h.rho * model.low.mean + h.mean + cross @ np.linalg.solve(K, y)
    return mean, prior - np.einsum("ij,ji->i", cross, np.linalg.solve(K, cross.T))


@pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
@pytest.mark.parametrize("X_c", [NESTED, MIXED, UNSEEN], ids=["nested", "mixed", "never nested"])
@pytest.mark.parametrize("rho", [1.0, 0.6])
def test_without_bounds_the_model_is_the_autoregressive_process(kernel, X_c, rho):
    model = model_of(replace(HYPER, kernel=kernel, rho=rho), X_c)
    mean, variance = model.predict(POINTS)
    true_mean, true_variance = autoregressive(model, X_c, POINTS)
    np.testing.assert_allclose(mean, true_mean, atol=1e-8)
    np.testing.assert_allclose(variance, true_variance, atol=1e-8)


def test_without_bounds_nothing_is_cut():
    model = model_of(HYPER, NESTED)
    np.testing.assert_array_equal(model.predict_bias(POINTS), model.bias.predict(POINTS))


def test_bounds_far_away_are_no_bounds():
    far = model_of(replace(HYPER, bounds=(-1e3, 1e3)), MIXED)
    np.testing.assert_allclose(far.predict(POINTS), model_of(HYPER, MIXED).predict(POINTS), rtol=1e-9)


def dense_parts(model: TwoFidelity, X_c: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prior mean and covariance of (delta(P), delta(X_c)), noise on the observed ones."""
    h = model.hyperparameters
    both, n = np.concatenate([P, X_c]), len(X_c)
    K = h.variance * dense_gp.kernel(both, both, np.exp(h.bias.log_scales))
    K[-n:, -n:] += h.variance * np.exp(h.bias.log_noise) * np.eye(n)
    return np.full(len(both), h.mean), K


@pytest.mark.parametrize("point", [0, 3, 7])
def test_theorem_1_is_what_a_million_draws_that_fell_into_the_box_say(point):
    """delta at x and at one complete run are drawn together; kept are those in the box whose second is the one seen."""
    X_c, x = NESTED[:1], POINTS[point : point + 1]
    h = replace(BOUNDED, rho=1.0, variance=0.5)
    model = model_of(h, X_c)
    mean, K = dense_parts(model, X_c, x)
    rng = np.random.default_rng(point)
    drawn = mean + rng.standard_normal((4_000_000, 2)) @ np.linalg.cholesky(K).T
    d = float(truth(X_c)[0] - Y_E[1])
    near = np.abs(drawn[:, 1] - d) < 0.01
    kept = drawn[near & (drawn > -1.0).all(axis=1) & (drawn < 0.0).all(axis=1), 0]
    low_mean, low_variance = model.low.predict(x)
    y = kept + rng.normal(low_mean[0], np.sqrt(low_variance[0]), len(kept))
    found_mean, found_variance = model.predict(x)
    assert len(kept) > 10_000
    assert found_mean[0] == pytest.approx(y.mean(), abs=4.5 * y.std() / np.sqrt(len(y)))
    assert found_variance[0] == pytest.approx(y.var(), rel=4.5 * np.sqrt(2.0 / len(y)) + 1e-3)


@pytest.mark.parametrize("X_c", [NESTED, MIXED], ids=["nested", "mixed"])
def test_mean_and_variance_are_those_of_a_million_draws_with_the_bias_at_x_in_its_bounds(X_c):
    """All data at once: (f, delta) at x from the dense normal given the data, less the draws outside the bounds."""
    model = model_of(BOUNDED, X_c)
    free = model_of(HYPER, X_c)
    for i in (2, 9):
        x = POINTS[i : i + 1]
        pair = free.joint.predict(x)
        covariance = [[pair.low_variance[0], pair.covariance[0]], [pair.covariance[0], pair.bias_variance[0]]]
        total = autoregressive(free, X_c, x)
        rho = HYPER.rho
        assert np.array([rho, 1.0]) @ covariance @ np.array([rho, 1.0]) == pytest.approx(total[1][0], abs=1e-8)
        rng = np.random.default_rng(i)
        drawn = rng.multivariate_normal([pair.low[0], pair.bias[0]], covariance, 1_000_000)
        kept = drawn[(drawn[:, 1] > -1.0) & (drawn[:, 1] < 0.0)]
        y = rho * kept[:, 0] + kept[:, 1]
        mean, variance = model.predict(x)
        assert mean[0] == pytest.approx(y.mean(), abs=4.5 * y.std() / np.sqrt(len(y)))
        assert variance[0] == pytest.approx(y.var(), rel=4.5 * np.sqrt(2.0 / len(y)))


MODELS = {
    "dgp": model_of(HYPER, NESTED),
    "dgp, not nested": model_of(HYPER, MIXED),
    "gp-tgp": model_of(BOUNDED, NESTED),
    "gp-tgp, one bound": model_of(replace(HYPER, bounds=(-INF, -0.3)), NESTED),
    "gp-tgp, not nested": model_of(BOUNDED, MIXED),
    "gp-tgp, narrow": model_of(replace(HYPER, bounds=(-0.9, -0.1), variance=4.0), MIXED),
    "gaussian": model_of(replace(BOUNDED, kernel="gaussian"), MIXED),
    "plugged in": model_of(BOUNDED, MIXED, carry=False),
    "log-normal": model_of(replace(BOUNDED, law="lognormal", mean=-1.0, variance=0.3), MIXED),
    "log-normal, above": two_fidelity.from_hyperparameters(
        X_E, Y_E, NESTED, Y_E[[1, 4, 6, 2]] * 0.8 + 0.3,
        replace(HYPER, law="lognormal", bounds=(0.0, INF), mean=-1.0, variance=0.3),
    ),
}  # fmt: skip
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@every_model
def test_gradients_of_both_levels_are_central_differences(model):
    h = 1e-5
    for plain, sloped in (
        (model.predict, model.predict_with_gradient),
        (partial(predict_low, model), partial(predict_low_with_gradient, model)),
    ):
        mean, variance, mean_slope, variance_slope = sloped(POINTS)
        np.testing.assert_allclose((mean, variance), plain(POINTS), rtol=1e-9)
        for j, e in enumerate(h * np.eye(2)):
            up, down = np.array(plain(POINTS + e)), np.array(plain(POINTS - e))
            found = np.array([mean_slope[:, j], variance_slope[:, j]])
            np.testing.assert_allclose(found, (up - down) / (2 * h), rtol=2e-5, atol=2e-6)


@every_model
def test_variances_are_positive_everywhere_and_means_finite(model):
    P = np.concatenate([POINTS, X_E, MIXED, X_E + 1e-9])
    mean, variance = model.predict(P)
    assert np.isfinite(mean).all()
    assert (variance > 0.0).all()
    assert np.isfinite(model.predict_with_gradient(P)[2]).all()
    assert np.isfinite(model.predict_with_gradient(P)[3]).all()


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("gp-tgp")])
def test_a_bounded_bias_is_predicted_within_its_bounds(name):
    model = MODELS[name]
    lower, upper = model.hyperparameters.bounds
    mean, variance = model.predict_bias(np.random.default_rng(0).uniform(-1.0, 2.0, (300, 2)))
    assert ((mean > lower) & (mean < upper)).all()
    assert (variance <= (upper - lower) ** 2 / 12.0 + 1e-12).all()
    free = replace(model, hyperparameters=replace(model.hyperparameters, bounds=FREE))
    gained = free.predict_bias(POINTS)[1] - model.predict_bias(POINTS)[1]
    assert (gained > -1e-12).all()
    assert gained.max() > 1e-3


@pytest.mark.parametrize("X_c", [NESTED, MIXED], ids=["nested", "mixed"])
def test_a_complete_run_goes_on_from_its_own_eighty_percent_run(X_c):
    """At a row of X_e the low level is what was seen and only the bias is unknown: noise does not blur it."""
    noisy = replace(BOUNDED, low=gp.Hyperparameters((-0.7, 0.1), -1.0))
    model = model_of(noisy, X_c)
    waiting = X_E[[0, 3, 5]]
    mean, variance = model.predict(waiting)
    bias, bias_variance = model.predict_bias(waiting)
    np.testing.assert_allclose(mean, noisy.rho * Y_E[[0, 3, 5]] + bias, rtol=1e-12)
    np.testing.assert_allclose(variance, bias_variance, rtol=1e-12)
    beside = model.predict(waiting + 1e-7)
    assert (beside[1] > 1.5 * variance).all()
    np.testing.assert_allclose(model.predict_with_gradient(waiting)[:2], (mean, variance), rtol=1e-12)


def test_a_complete_run_that_was_never_seen_on_its_way_is_known_where_it_ended():
    """Neither level is known there, their sum is."""
    quiet = replace(HYPER, bias=gp.Hyperparameters((-0.3, 0.2), -16.0))
    mean, variance = model_of(quiet, MIXED).predict(UNSEEN)
    np.testing.assert_allclose(mean, truth(UNSEEN, HYPER.rho), atol=1e-3)
    assert (variance < 1e-4).all()
    assert (predict_low(model_of(quiet, MIXED), UNSEEN)[1] > 1e-3).all()


def test_what_is_not_known_of_the_low_level_is_carried_unless_told_not_to_be():
    carried, plugged = model_of(BOUNDED, NESTED), model_of(BOUNDED, NESTED, carry=False)
    np.testing.assert_allclose(carried.predict(POINTS)[0], plugged.predict(POINTS)[0], rtol=1e-12)
    expected = plugged.predict(POINTS)[1] + BOUNDED.rho**2 * carried.low.predict(POINTS)[1]
    np.testing.assert_allclose(carried.predict(POINTS)[1], expected, rtol=1e-9)


def test_the_order_of_the_runs_does_not_matter():
    model = model_of(BOUNDED, MIXED)
    for order in itertools.islice(itertools.permutations(range(5)), 0, 120, 17):
        np.testing.assert_allclose(model_of(BOUNDED, MIXED[list(order)]).predict(POINTS), model.predict(POINTS))


def test_repeated_configurations_pair_in_the_order_they_ran():
    X_e, y_e = np.concatenate([X_E, X_E[:1]]), np.append(Y_E, Y_E[0] + 1.0)
    X_c = np.concatenate([X_E[:1], X_E[:1], X_E[3:4]])
    y_c = np.array([Y_E[0] - 0.3, Y_E[0] + 1.0 - 0.4, Y_E[3] - 0.5])
    model = two_fidelity.from_hyperparameters(X_e, y_e, X_c, y_c, replace(BOUNDED, rho=1.0))
    np.testing.assert_allclose(model.bias.y, [-0.3, -0.4, -0.5])


def lognormal_draws(model: TwoFidelity, x: np.ndarray) -> np.ndarray:
    mean, variance = model.bias.predict(x)
    return np.exp(np.random.default_rng(0).normal(mean[0], np.sqrt(variance[0]), 1_000_000))


@pytest.mark.parametrize(("name", "sign"), [("log-normal", -1.0), ("log-normal, above", 1.0)])
def test_a_log_normal_bias_has_the_moments_and_the_sign_of_its_draws(name, sign):
    model, x = MODELS[name], POINTS[2:3]
    draws = sign * lognormal_draws(model, x)
    mean, variance = model.predict_bias(x)
    assert mean[0] == pytest.approx(draws.mean(), abs=4.5 * draws.std() / 1000.0)
    assert variance[0] == pytest.approx(draws.var(), rel=0.02)
    assert (sign * model.predict_bias(POINTS)[0] > 0.0).all()
