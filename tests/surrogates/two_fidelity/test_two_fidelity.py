"""Two levels of training: the posterior against dense algebra and draws, what is refused, and what a fit finds."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from farthing.errors import InvalidArgument
from farthing.surrogates import gp
from farthing.surrogates.two_fidelity import model as two_fidelity
from farthing.surrogates.two_fidelity.model import Hyperparameters, TwoFidelity
from farthing.surrogates.two_fidelity.paired import FREE, learned_bounds
from oracles import dense_gp

INF = np.inf
RNG = np.random.default_rng(0)
X_E = RNG.random((9, 2))
Y_E = 2.0 + np.sin(4.0 * X_E[:, 0]) + X_E[:, 1]
POINTS = np.concatenate([RNG.random((20, 2)), RNG.uniform(-0.5, 1.5, (4, 2))])
UNSEEN = RNG.random((2, 2))  # completed, never looked at on the way
NESTED = X_E[[1, 4, 6, 2]]
MIXED = np.concatenate([UNSEEN[:1], X_E[[1, 4]], UNSEEN[1:], X_E[[6]]])
HYPER = Hyperparameters(
    gp.Hyperparameters((-0.7, 0.1), -6.0), gp.Hyperparameters((-0.3, 0.2), -5.0), mean=-0.5, variance=0.2, rho=0.8
)
BOUNDED = replace(HYPER, bounds=(-1.0, 0.0))


def true_bias(X: np.ndarray) -> np.ndarray:
    return -0.5 + 0.4 * np.sin(5.0 * X[:, 0])  # in (-0.9, -0.1)


def truth(X: np.ndarray, rho: float = 1.0) -> np.ndarray:
    return rho * (2.0 + np.sin(4.0 * X[:, 0]) + X[:, 1]) + true_bias(X)


def gaussian(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (((A[:, None, :] - B[None, :, :]) / scales) ** 2).sum(axis=2))


def model_of(h: Hyperparameters, X_c: np.ndarray, **options) -> TwoFidelity:
    return two_fidelity.at(X_E, Y_E, X_c, truth(X_c, h.rho), h, **options)


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
    "log-normal": model_of(replace(BOUNDED, kind="lognormal", mean=-1.0, variance=0.3), MIXED),
    "log-normal, above": two_fidelity.at(
        X_E, Y_E, NESTED, Y_E[[1, 4, 6, 2]] * 0.8 + 0.3,
        replace(HYPER, kind="lognormal", bounds=(0.0, INF), mean=-1.0, variance=0.3),
    ),
}  # fmt: skip
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@every_model
def test_gradients_of_both_levels_are_central_differences(model):
    h = 1e-5
    for plain, sloped in (
        (model.predict, model.predict_with_gradient),
        (model.predict_low, model.predict_low_with_gradient),
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
    assert (model_of(quiet, MIXED).predict_low(UNSEEN)[1] > 1e-3).all()


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
    model = two_fidelity.at(X_e, y_e, X_c, y_c, replace(BOUNDED, rho=1.0))
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


# -- fitting -----------------------------------------------------------------------------------------------------------


def runs(m: int, n: int, d: int = 2, rho: float = 1.0, seed: int = 0) -> tuple[np.ndarray, ...]:
    X = np.random.default_rng(seed).random((m, d))
    y_e = 2.0 + np.sin(4.0 * X[:, 0]) + X[:, 1]
    return X, y_e, X[:n], truth(X[:n], rho)


def error(model: TwoFidelity, rho: float = 1.0) -> float:
    P = np.random.default_rng(9).random((300, 2))
    return float(np.abs(model.predict(P)[0] - truth(P, rho)).mean())


@pytest.mark.parametrize(
    "options",
    [{}, {"bounds": (-1.0, 0.0)}, {"bounds": "learned"}, {"bounds": (-1.0, 0.0), "bias": "lognormal"},
     {"bounds": (-1.0, 0.0), "kernel": "gaussian"}, {"rho": None}, {"bounds": (-1.0, 0.0), "rho": None}],
    ids=str,
)  # fmt: skip
def test_a_fit_predicts_the_complete_level_far_better_than_its_own_runs_alone(options):
    """A wavy level seen often, and a bias that changes slowly."""

    def low(X):
        return np.sin(9.0 * X[:, 0]) * np.cos(5.0 * X[:, 1])

    def complete(X):
        return low(X) - 0.5 + 0.3 * X[:, 1] ** 2 - 0.2 * X[:, 0]

    rng = np.random.default_rng(1)
    X, P = rng.random((60, 2)), rng.random((300, 2))
    model = two_fidelity.fit(X, low(X), X[:10], complete(X[:10]), **options)
    mean, variance = model.predict(P)
    alone = np.abs(gp.fit(X[:10], complete(X[:10])).predict(P)[0] - complete(P)).mean()
    assert np.abs(mean - complete(P)).mean() < 0.25 * alone
    assert (np.abs(mean - complete(P)) < 3.0 * np.sqrt(variance)).mean() > 0.9


def test_the_low_level_is_the_process_of_the_eighty_percent_runs():
    """Lemma 1: the levels are fitted apart."""
    X_e, y_e, X_c, y_c = runs(25, 8)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1.0, 0.0))
    alone = gp.fit(X_e, y_e)
    assert model.hyperparameters.low == alone.hyperparameters
    np.testing.assert_allclose(model.predict_low(POINTS), alone.predict(POINTS), rtol=1e-9)


def test_infinite_bounds_fit_what_far_bounds_fit():
    """But for the weak prior that bounds bring for the mean."""
    X_e, y_e, X_c, y_c = runs(25, 12)
    free = two_fidelity.fit(X_e, y_e, X_c, y_c)
    far = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1e4, 1e4))
    np.testing.assert_allclose(far.predict(POINTS)[0], free.predict(POINTS)[0], atol=0.05)


def test_a_factor_is_found_where_it_is_asked_for():
    X_e, y_e, X_c, y_c = runs(40, 15, rho=2.5)
    for bounds in (FREE, (-1.0, 0.0)):
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds=bounds)
        assert model.hyperparameters.rho == pytest.approx(2.5, abs=0.15)
        assert error(model, rho=2.5) < 0.1
    assert two_fidelity.fit(X_e, y_e, X_c[:3], y_c[:3], rho=None).hyperparameters.rho == 1.0  # too few to tell


def test_a_free_factor_keeps_every_bias_in_its_bounds_or_the_bounds_are_refused():
    """The bounds are those of rho = 1 with nothing to spare; least squares would leave them."""
    X_e, y_e, X_c, y_c = runs(20, 8)
    d = y_c - y_e[:8]
    bounds = float(d.min()), float(d.max())
    rho = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds=bounds).hyperparameters.rho
    biases = y_c - rho * y_e[:8]
    assert (biases >= bounds[0] - 1e-6).all()
    assert (biases <= bounds[1] + 1e-6).all()
    with pytest.raises(InvalidArgument, match=r"no factor rho .* within the bounds \(0.1, 0.2\)"):
        two_fidelity.fit(X_e, y_e, X_c, np.where(np.arange(8) < 4, y_c, -y_c), rho=None, bounds=(0.1, 0.2))


def test_the_units_of_the_values_do_not_matter():
    X_e, y_e, X_c, y_c = runs(20, 8)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1.0, 0.0))
    other = two_fidelity.fit(X_e, 1e6 * y_e, X_c, 1e6 * y_c, bounds=(-1e6, 0.0))
    np.testing.assert_allclose(1e-6 * other.predict(POINTS)[0], model.predict(POINTS)[0], rtol=1e-4)
    np.testing.assert_allclose(1e-12 * other.predict(POINTS)[1], model.predict(POINTS)[1], rtol=1e-2)


def test_columns_of_one_parameter_share_a_scale():
    X_e, y_e, X_c, y_c = runs(20, 8, d=4)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, [0, 1, 1, 1], bounds=(-1.0, 0.0))
    assert len(model.hyperparameters.low.log_scales) == len(model.hyperparameters.bias.log_scales) == 2
    assert np.isfinite(model.predict(X_e + 0.01)).all()


@pytest.mark.parametrize(
    "bounds", [(0.0, 1.0), (0.0, -1.0), (-1.0, -0.6), (-0.2, 0.0), (-0.5, -0.5), (1.0, -1.0), (np.nan, 0.0)]
)
def test_bounds_that_are_swapped_or_of_the_wrong_sign_or_too_narrow_are_refused(bounds):
    with pytest.raises(InvalidArgument, match="bounds"):
        two_fidelity.fit(*runs(12, 6), bounds=bounds)


def test_only_a_run_seen_at_both_levels_is_held_to_the_bounds():
    """What was imputed may be wrong: it is no reason to refuse anything."""
    X_e, y_e, X_c, y_c = runs(12, 6)
    lone = np.concatenate([X_c, UNSEEN])
    model = two_fidelity.fit(X_e, y_e, lone, np.append(y_c, [9.0, 9.0]), bounds=(-1.0, 0.0))
    assert np.isfinite(model.predict(POINTS)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": "known"}, "bounds must be two numbers or"),
        ({"bias": "gamma"}, "bias must be one of truncated, lognormal"),
        ({"kernel": "linear"}, "kernel must be one of matern52, gaussian"),
        ({"bias": "lognormal"}, "one sign"),
        ({"bias": "lognormal", "bounds": (-1.0, 0.1)}, "one sign"),
        ({"bias": "lognormal", "bounds": "learned"}, "one sign"),
        ({"bias": "lognormal", "bounds": (-1.0, 0.0), "rho": None}, "needs rho"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        two_fidelity.fit(*runs(12, 6), **options)


def test_levels_without_runs_or_of_other_shapes_are_refused():
    X_e, y_e, X_c, y_c = runs(12, 6)
    for bad in ((X_e[:0], y_e[:0], X_c, y_c), (X_e, y_e, X_c[:0], y_c[:0])):
        with pytest.raises(InvalidArgument, match="need a run"):
            two_fidelity.fit(*bad)
    for bad in ((X_e, y_e[:-1], X_c, y_c), (X_e, y_e, X_c[:, :1], y_c)):
        with pytest.raises(InvalidArgument, match="must be"):
            two_fidelity.fit(*bad)


def test_learned_bounds_hold_all_biases_and_tell_nothing_from_one():
    d = np.random.default_rng(0).normal(size=20)
    lower, upper = learned_bounds(d)
    assert lower < d.min() < d.max() < upper
    assert upper - lower == pytest.approx((d.max() - d.min()) * (1.0 + 2.0 / 19.0))
    assert learned_bounds(d, slack=10.0) == FREE
    assert learned_bounds(d[:1]) == learned_bounds(d[:0]) == learned_bounds(np.zeros(4)) == FREE


@pytest.mark.parametrize("options", [{}, {"bounds": (-1.0, 0.0)}, {"bounds": (-1.0, 0.0), "kernel": "gaussian"}])
def test_what_a_fit_found_is_stored_and_builds_the_same_model(options):
    data = runs(20, 8)
    model = two_fidelity.fit(*data, **options)
    stored = json.loads(json.dumps(model.hyperparameters.as_json(), allow_nan=False))
    again = Hyperparameters.from_json(stored)
    assert again == model.hyperparameters
    np.testing.assert_array_equal(two_fidelity.at(*data, again).predict(POINTS), model.predict(POINTS))


@pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
def test_a_warm_fit_is_near_the_cold_one_and_the_same_every_time(kernel):
    X_e, y_e, X_c, y_c = runs(30, 12)
    options = {"bounds": (-1.0, 0.0), "kernel": kernel}
    before = two_fidelity.fit(X_e[:-1], y_e[:-1], X_c[:-1], y_c[:-1], **options).hyperparameters
    warm = two_fidelity.fit(X_e, y_e, X_c, y_c, warm=before, **options)
    cold = two_fidelity.fit(X_e, y_e, X_c, y_c, **options)
    assert (warm.hyperparameters.low.cold_at, warm.hyperparameters.bias.cold_at) == (29, 11)
    assert error(warm) < 1.3 * error(cold) + 0.005
    again = two_fidelity.fit(X_e, y_e, X_c, y_c, warm=before, **options)
    assert again.hyperparameters == warm.hyperparameters


@pytest.mark.parametrize(
    "options", [{"bias": "lognormal"}, {"kernel": "gaussian"}, {"groups": [0, 0]}], ids=["bias", "kernel", "groups"]
)
def test_what_another_model_found_is_no_start(options):
    data = runs(20, 8)
    other = two_fidelity.fit(*data, bounds=(-1.0, 0.0)).hyperparameters
    cold = two_fidelity.fit(*data, bounds=(-1.0, 0.0), **options)
    warm = two_fidelity.fit(*data, bounds=(-1.0, 0.0), warm=other, **options)
    assert warm.hyperparameters == cold.hyperparameters


HOSTILE = {
    "one run at each level": (X_E[:1], Y_E[:1], X_E[:1], Y_E[:1] - 0.5),
    "one run each, apart": (X_E[:1], Y_E[:1], X_E[1:2], Y_E[:1] - 0.5),
    "no bias at all": (X_E, Y_E, X_E, Y_E),
    "the bias on its bounds": (X_E, Y_E, X_E[:4], Y_E[:4] - np.array([1.0, 0.0, 1.0, 0.0])),
    "constant values": (X_E, np.zeros(9), X_E[:3], np.full(3, -0.5)),
    "one configuration again and again": (np.repeat(X_E[:1], 5, 0), Y_E[:5], np.repeat(X_E[:1], 5, 0), Y_E[:5] - 0.1),
    "points a rounding apart": (X_E, Y_E, np.nextafter(X_E[:4], 1.0), Y_E[:4] - 0.5),
    "large values": (X_E, 1e8 * Y_E, X_E[:4], 1e8 * Y_E[:4] - 0.5),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "options",
    [{}, {"bounds": (-1.0, 0.0)}, {"bounds": "learned"}, {"bounds": (-1.0, 0.0), "bias": "lognormal"}, {"rho": None},
     {"bounds": (-1.0, 0.0), "kernel": "gaussian"}],
    ids=str,
)  # fmt: skip
def test_hostile_data_still_give_a_model(name, options):
    model = two_fidelity.fit(*HOSTILE[name], **options)
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(np.concatenate([POINTS, X_E]))
    assert np.isfinite(mean).all()
    assert np.isfinite(mean_slope).all()
    assert np.isfinite(variance_slope).all()
    assert (variance > 0.0).all()


def test_one_complete_run_does_not_make_the_bias_certain():
    """Its spread is then taken for a share of that of the low level."""
    X_e, y_e, X_c, y_c = runs(20, 1)
    for bounds in (FREE, (-1.0, 0.0)):
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=bounds)
        assert np.sqrt(model.hyperparameters.variance) > 0.05 * y_e.std()


class TestTheToyOfThePaper:
    """Figure 3: y_e = (6x - 2)^2 sin(12x - 4), y_c = y_e + 8x - 10, bounds (-10, -2)."""

    X_e = np.array([0.0, 0.16, 0.6, 0.73, 0.86, 1.0])[:, None]
    X_c = np.array([0.0, 0.73, 1.0])[:, None]
    P = np.linspace(0.0, 1.0, 1001)[:, None]

    @staticmethod
    def low(X: np.ndarray) -> np.ndarray:
        return (6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0)

    def complete(self, X: np.ndarray) -> np.ndarray:
        return self.low(X) + 8.0 * X[:, 0] - 10.0

    def model(self, kernel: str, bounds: tuple[float, float]) -> TwoFidelity:
        low, complete = self.low(self.X_e), self.complete(self.X_c)
        return two_fidelity.fit(self.X_e, low, self.X_c, complete, bounds=bounds, kernel=kernel)

    def errors(self, mean: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Root of the mean square, and mean absolute."""
        return np.array([np.sqrt(((mean - true) ** 2).mean()), np.abs(mean - true).mean()])

    @pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
    def test_gp_tgp_is_twice_as_good_as_a_process_on_the_complete_runs(self, kernel):
        alone = two_fidelity.fit_plain(self.X_c, self.complete(self.X_c), np.arange(1), kernel, None)
        found = self.errors(self.model(kernel, (-10.0, -2.0)).predict(self.P)[0], self.complete(self.P))
        assert (found < 0.5 * self.errors(alone.predict(self.P)[0], self.complete(self.P))).all()

    def test_under_the_papers_kernel_gp_tgp_is_as_good_as_dgp(self):
        truncated, free = (
            self.errors(self.model("gaussian", bounds).predict(self.P)[0], self.complete(self.P))
            for bounds in ((-10.0, -2.0), FREE)
        )
        assert (truncated <= 1.05 * free).all()

    @pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
    def test_the_bounds_halve_the_error_of_the_bias(self, kernel):
        """What the bounds are about, apart from the error of the low level that both share."""
        bias = 8.0 * self.P[:, 0] - 10.0
        truncated, free = (
            self.errors(self.model(kernel, bounds).predict_bias(self.P)[0], bias) for bounds in ((-10.0, -2.0), FREE)
        )
        assert (truncated < 0.5 * free).all()
