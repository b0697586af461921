"""Curves that fall: kernels and losses against finite differences, posteriors against dense formulas and rejection."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from farthing.surrogates.curves import gp as curve_gp
from farthing.surrogates.curves import kernels as curve_kernels
from farthing.surrogates.curves import monotone
from farthing.surrogates.curves.gp import Hyperparameters
from farthing.surrogates.curves.likelihood import Loss
from farthing.surrogates.curves.monotone import Curves, Paths
from farthing.surrogates.curves.probes import Probes
from oracles import dense_gp

T_MAX = 40.0
PHI = {"decay": np.log([0.7, 0.2, 0.5]), "rbf": np.log([0.4, 0.5, 8.0])}
every_kernel = pytest.mark.parametrize("kernel", ["decay", "rbf"])


def k_t(kernel: str, s: float, t: float) -> float:
    """Eq. (22) and Eq. (26), the latter with the square on the length-scale and in warped time."""
    if kernel == "decay":
        alpha, beta, w = np.exp(PHI[kernel])
        return float(w + (s / beta + t / beta + 1.0) ** -alpha)
    scale, w, c = np.exp(PHI[kernel])
    h = (np.log1p(c * s) - np.log1p(c * t)) / np.log1p(c)
    return float(w + np.exp(-0.5 * h * h / scale**2))


def state(
    seed: int = 0, runs: int = 8, f: int = 2, *, wrong: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three points each of decaying curves, half of them short; `wrong`: curves that rise."""
    rng = np.random.default_rng(seed)
    R = rng.random((runs, f))
    last = np.where(rng.random(runs) < 0.5, T_MAX, 8.0)
    t = np.concatenate([[end / 4, end / 2, end] for end in last])
    X = np.repeat(R, 3, axis=0)
    y = 0.3 * X[:, 0] + (0.5 + X[:, -1]) * (1.0 + t / 3.0) ** -0.8 + 0.01 * rng.normal(size=len(t))
    return X, t, -y if wrong else y


def hyperparameters(kernel: str, log_noise: float = -5.0, f: int = 2) -> Hyperparameters:
    return Hyperparameters(kernel, (-0.5,) * f, log_noise, tuple(PHI[kernel]))


def curves_at(kernel: str, *, wrong: bool = False, seed: int = 0, runs: int = 8, log_noise: float = -5.0) -> Curves:
    plain = curve_gp.at(*state(seed, runs, wrong=wrong), hyperparameters(kernel, log_noise), T_MAX)
    return monotone.constrained(plain, 1)


# -- kernels -----------------------------------------------------------------------------------------------------------


@every_kernel
def test_kernel_derivatives_are_those_of_the_kernel(kernel: str) -> None:
    """All four blocks by central differences: Eq. (28) as printed, without the square of t - t', would fail."""
    s, t, e = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.55]), 1e-4
    values, slopes = (lambda u: np.zeros(len(u), dtype=np.intp)), (lambda u: np.ones(len(u), dtype=np.intp))

    def block(ds, dt):
        return curve_kernels.covariance(kernel, PHI[kernel], s, ds(s), t, dt(t))

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
    whole = curve_kernels.covariance(kernel, PHI[kernel], t, order, t, order)
    np.testing.assert_allclose(curve_kernels.variance(kernel, PHI[kernel], t, order), np.diag(whole), rtol=1e-12)


@every_kernel
def test_virtual_slopes_are_close_enough(kernel: str) -> None:
    """Two for decay; for rbf less than a length-scale apart even at the shortest one allowed."""
    for log_scale in (curve_kernels.BOUNDS["rbf"][0][0], 0.0, 1.0):
        phi = np.array([log_scale, 0.0, 2.0])
        places = curve_kernels.virtual_times(kernel, phi)
        assert places[-1] == pytest.approx(1.0)
        if kernel == "decay":
            assert len(places) == 2
        else:
            assert np.diff(curve_kernels.warped(np.exp(2.0), places)[0]).max() < np.exp(log_scale)


# -- the unconstrained process -----------------------------------------------------------------------------------------


@every_kernel
def test_the_loss_is_the_marginal_likelihood_and_its_gradient_agrees_with_differences(kernel: str) -> None:
    X, t, y = state()
    y = (y - y.mean()) / y.std()
    loss = Loss(X, t / T_MAX, y, np.array([0, 1]), 2, kernel)
    theta = hyperparameters(kernel).theta + 0.1
    value, gradient = loss(theta)
    step = 1e-5 * np.eye(len(theta))
    np.testing.assert_allclose(gradient, [(loss(theta + e)[0] - loss(theta - e)[0]) / 2e-5 for e in step], atol=1e-5)

    def dense(theta: np.ndarray) -> float:
        """-log density at the best mean and variance, and the priors, less what does not depend on theta."""
        model = curve_gp.at(X, t, y, Hyperparameters(kernel, tuple(theta[:2]), theta[2], tuple(theta[3:])), T_MAX)
        K = model.prior(Probes.values(X, t / T_MAX), Probes.values(X, t / T_MAX)) + np.exp(theta[2]) * np.eye(len(y))
        density = multivariate_normal(np.full(len(y), model.mean), model.variance * K).logpdf(y)
        z = (theta - loss.prior.mean) / loss.prior.sd
        # the prior on the variance: one observation at the variance of y, 1
        return -density + 0.5 * np.log(model.variance) + 0.5 / model.variance + 0.5 * float(z @ z)

    other = theta + 0.3
    assert value - loss(other)[0] == pytest.approx(dense(theta) - dense(other), abs=1e-6)


@every_kernel
def test_plain_predictions_are_the_dense_formulas(kernel: str) -> None:
    X, t, y = state()
    plain = curve_gp.at(X, t, y, hyperparameters(kernel), T_MAX)
    X_new, t_new = np.random.default_rng(1).random((4, 2)), np.array([0.0, 5.0, 20.0, 40.0])

    def K(A, a, B, b):
        over_t = np.array([[k_t(kernel, s / T_MAX, u / T_MAX) for u in b] for s in a])
        return plain.variance * dense_gp.kernel(A, B, np.exp([-0.5, -0.5])) * over_t

    inverse = np.linalg.inv(K(X, t, X, t) + plain.noise * np.eye(len(t)))
    cross = K(X_new, t_new, X, t)
    mean, covariance = plain.covariance(X_new, t_new)
    np.testing.assert_allclose(mean, plain.mean + cross @ inverse @ (y - plain.mean), rtol=1e-8)
    np.testing.assert_allclose(covariance, K(X_new, t_new, X_new, t_new) - cross @ inverse @ cross.T, atol=1e-9)
    np.testing.assert_allclose(plain.predict(X_new, t_new)[1], np.diag(covariance), rtol=1e-6)


@every_kernel
def test_slopes_are_the_derivatives_of_the_mean(kernel: str) -> None:
    plain = curve_gp.at(*state(), hyperparameters(kernel), T_MAX)
    x, t = np.full((3, 2), 0.4), np.array([0.2, 0.5, 0.8])
    slope = plain.moments(Probes(x, t, np.ones(3, dtype=np.intp)))[0]
    up, down = (plain.predict(x, (t + e) * T_MAX)[0] for e in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5, atol=1e-7)


@every_kernel
def test_conditioning_is_refitting_with_the_same_hyperparameters(kernel: str) -> None:
    X, t, y = state()
    whole = curve_gp.at(X, t, y, hyperparameters(kernel), T_MAX)
    grown = curve_gp.at(X[:-4], t[:-4], y[:-4], hyperparameters(kernel), T_MAX).condition(X[-4:], t[-4:], y[-4:])
    np.testing.assert_allclose(grown.L @ grown.L.T, whole.L @ whole.L.T, atol=1e-10)
    asked = np.full((1, 2), 0.3), np.array([T_MAX])
    k = whole.cross(Probes.values(asked[0], asked[1] / T_MAX))[0]
    expected = grown.mean + k @ np.linalg.solve(whole.L @ whole.L.T, y - grown.mean)
    assert grown.predict(*asked)[0][0] == pytest.approx(expected, rel=1e-8)


# -- the constraint ----------------------------------------------------------------------------------------------------


def brute_force(curves: Curves, x: np.ndarray, t: float, rng: np.random.Generator) -> np.ndarray:
    """Values at (x, t) whose slopes, at the carried places and at those of the curve of x, are all at most 0."""
    plain, paths = curves.plain, curves.paths
    probes = paths.carried + Probes.slopes(x[None], paths.places) + Probes.values(x[None], np.array([t / T_MAX]))
    mean, V = plain.whitened(probes)
    K = plain.variance * (plain.prior(probes, probes) - V.T @ V)
    drawn = rng.multivariate_normal(mean, K, size=400_000, method="cholesky" if len(K) < 3 else "eigh")
    return drawn[np.all(drawn[:, :-1] <= 0.0, axis=1), -1]


def few(kernel: str) -> Curves:
    """Noisy observations and few doubtful slopes, so that rejection still finds something."""
    X, t, y = state(3, 4)
    plain = curve_gp.at(
        X, t, y + 0.2 * np.random.default_rng(0).normal(size=len(y)), hyperparameters(kernel, -1.0), T_MAX
    )
    return Curves(plain, monotone.draw(plain, monotone.doubtful(plain, 2), 1, 4096))


@every_kernel
def test_predictions_are_those_of_rejection_sampling(kernel: str) -> None:
    curves, rng = few(kernel), np.random.default_rng(0)
    assert len(curves.paths.carried) == 2
    for x, t in ((np.array([0.5, 0.5]), T_MAX), (curves.plain.X[0], 15.0)):
        kept = brute_force(curves, x, t, rng)
        assert len(kept) > 2_000
        mean, variance = curves.predict(x[None], np.array([t]))
        assert abs(mean[0] - kept.mean()) < 0.06 * kept.std()
        assert np.sqrt(variance[0]) == pytest.approx(kept.std(), rel=0.06)
        quantile = curves.paths.at(x[None], np.array([t])).quantiles(0.9)[0]
        assert (kept < quantile).mean() == pytest.approx(0.9, abs=0.02)


@every_kernel
def test_joint_samples_are_those_of_rejection_sampling(kernel: str) -> None:
    """Two values of one curve and one of another: means, deviations and correlations."""
    curves, rng = few(kernel), np.random.default_rng(0)
    X, t = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.2]]), np.array([10.0, T_MAX, T_MAX])
    paths = curves.paths
    slopes = Probes.slopes(X[1:], paths.places)
    probes = paths.carried + slopes + Probes.values(X, t / T_MAX)
    mean, V = curves.plain.whitened(probes)
    K = curves.plain.variance * (curves.plain.prior(probes, probes) - V.T @ V)
    drawn = rng.multivariate_normal(mean, K, size=600_000, method="eigh")
    kept = drawn[np.all(drawn[:, :-3] <= 0.0, axis=1)][:, -3:]
    assert len(kept) > 1_000
    found = curves.sample(X, t, 8_000, rng)
    assert np.all(np.abs(found.mean(axis=0) - kept.mean(axis=0)) < 0.1 * kept.std(axis=0))
    np.testing.assert_allclose(found.std(axis=0), kept.std(axis=0), rtol=0.08)
    np.testing.assert_allclose(np.corrcoef(found.T), np.corrcoef(kept.T), atol=0.08)


@every_kernel
def test_extended_paths_carry_a_joint_draw(kernel: str) -> None:
    """Values carried one after the other have the moments that `sample` gives to both at once."""
    curves, rng = few(kernel), np.random.default_rng(0)
    X, t = np.array([[0.5, 0.5], [0.9, 0.2]]), np.full(2, T_MAX)
    paths: Paths = curves.paths.extend(X[0], T_MAX).extend(X[1], T_MAX)
    values = paths.drawn()[:, paths.carried.order == 0]
    mean = paths.weights @ values
    sd = np.sqrt(paths.weights @ (values - mean) ** 2)
    both = curves.sample(X, t, 8_000, rng)
    assert np.all(np.abs(mean - both.mean(axis=0)) < 0.12 * sd)
    np.testing.assert_allclose(sd, both.std(axis=0), rtol=0.12)
    again = paths.at(X, t)  # what is carried is known
    assert np.all(again.variance < 1e-4 * sd**2)
    np.testing.assert_allclose(again.means, values, atol=1e-3 * sd.max())


@every_kernel
def test_every_drawn_slope_falls_even_where_the_data_rise(kernel: str) -> None:
    for wrong in (False, True):
        curves = curves_at(kernel, wrong=wrong)
        slopes = curves.paths.drawn()
        assert len(curves.paths.carried) > 0
        assert slopes.max() <= 1e-9 * np.abs(slopes).max()
        places = curves.paths.places * T_MAX
        for x in (curves.plain.X[0], np.array([0.2, 0.7])):
            mean = curves.paths.at(np.repeat(x[None], len(places), axis=0), places, order=1).moments()[0]
            spread = np.sqrt(
                curves.plain.variance * curves.plain.prior_variance(Probes.slopes(x[None], curves.paths.places))
            )
            assert np.all(mean <= 3.0 * np.sqrt(monotone.VIRTUAL_NOISE) * spread)  # the noise of virtual slopes
    assert curves.log_probability < np.log(1e-3)  # rising data are improbable


@every_kernel
@pytest.mark.parametrize("seed", range(12))
def test_curves_fall_between_virtual_slopes_too(kernel: str, seed: int) -> None:
    """Along all of t the mean rises by less than 1 % of the data's range; docs/extrapolation.md has 1,000 states."""
    X, t, y = state(seed, runs=3 + seed)
    curves = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, rng=np.random.default_rng(seed))
    steps = np.linspace(1.0, T_MAX, 60)
    for x in (X[0], X[-1], np.array([0.9, 0.1])):
        mean = curves.predict(np.repeat(x[None], 60, axis=0), steps)[0]
        assert np.max(mean - np.minimum.accumulate(mean)) < 0.01 * np.ptp(y)


def test_a_constraint_that_cannot_bind_changes_nothing() -> None:
    """Curves seen to fall steeply at both virtual places: no slope is doubtful, and predictions are the plain ones."""
    t = np.tile(np.linspace(0.0, T_MAX, 9), 2)
    X = np.repeat([[0.2, 0.2], [0.6, 0.7]], 9, axis=0)
    plain = curve_gp.at(X, t, 1.0 - t / T_MAX + 0.1 * X[:, 0], hyperparameters("decay", -9.0), T_MAX)
    curves = monotone.constrained(plain, 0)
    assert len(curves.paths.carried) == 0
    assert curves.log_probability == 0.0
    for ours, theirs in zip(curves.predict(X, t), plain.predict(X, t), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=1e-6)
    np.testing.assert_allclose(curves.predict(X, t)[0], plain.predict(X, t)[0], atol=1e-4)


@every_kernel
def test_the_probability_of_the_constraint_is_a_box_probability(kernel: str) -> None:
    """Eq. (19), by the share of unconstrained draws that fall."""
    curves, rng = few(kernel), np.random.default_rng(0)
    carried = curves.paths.carried
    mean, V = curves.plain.whitened(carried)
    K = curves.plain.variance * (curves.plain.prior(carried, carried) - V.T @ V)
    share = np.all(rng.multivariate_normal(mean, K, size=200_000) <= 0.0, axis=1).mean()
    assert np.exp(curves.log_probability) == pytest.approx(share, rel=0.05)


@every_kernel
def test_at_most_forty_slopes_are_held(kernel: str) -> None:
    curves = curves_at(kernel, wrong=True, runs=30)
    assert len(curves.paths.carried) <= monotone.CARRIED
    X = np.random.default_rng(0).random((30, 2))
    assert curves.sample(X, np.full(30, T_MAX), 20, np.random.default_rng(0)).shape == (20, 30)


# -- fits --------------------------------------------------------------------------------------------------------------


@every_kernel
def test_fits_repeat_and_survive_json(kernel: str) -> None:
    X, t, y = state()
    first = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, rng=np.random.default_rng(0))
    again = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, rng=np.random.default_rng(0))
    asked = np.full((2, 2), 0.3), np.array([10.0, T_MAX])
    np.testing.assert_array_equal(first.predict(*asked), again.predict(*asked))
    stored = Hyperparameters.from_json(json.loads(json.dumps(first.hyperparameters.as_json())))
    assert stored == first.hyperparameters
    warm = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, warm=stored, rng=np.random.default_rng(0))
    assert warm.hyperparameters.cold_at == len(y)
    np.testing.assert_allclose(warm.predict(*asked)[0], first.predict(*asked)[0], atol=0.05 * np.ptp(y))


@every_kernel
def test_units_do_not_matter(kernel: str) -> None:
    X, t, y = state()
    a = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, rng=np.random.default_rng(0))
    b = monotone.fit(X, 10.0 * t, 5.0 + 1e6 * y, t_max=10.0 * T_MAX, kernel=kernel, rng=np.random.default_rng(0))
    x, steps = np.full((3, 2), 0.4), np.array([1.0, 10.0, T_MAX])
    np.testing.assert_allclose(5.0 + 1e6 * a.predict(x, steps)[0], b.predict(x, 10.0 * steps)[0], rtol=1e-3)


@every_kernel
@pytest.mark.parametrize("y", [[1.0], [1.0, 1.0, 1.0], [0.0, 1e150, -1e150], [3.0, 2.0, 2.0]])
def test_degenerate_observations_give_finite_predictions(kernel: str, y: list[float]) -> None:
    X, t = np.array([[0.5]] * len(y)), np.arange(1.0, len(y) + 1.0)
    curves = monotone.fit(X, t, np.array(y), t_max=9, kernel=kernel, rng=np.random.default_rng(0))
    assert np.all(np.isfinite(curves.predict(np.array([[0.5], [0.1]]), np.array([9.0, 9.0]))))


@every_kernel
def test_a_fantasy_moves_the_prediction_towards_it(kernel: str) -> None:
    X, t, y = state()
    curves = monotone.fit(X, t, y, t_max=T_MAX, kernel=kernel, rng=np.random.default_rng(0))
    x, end = np.array([[0.45, 0.55]]), np.array([T_MAX])
    mean, variance = curves.predict(x, end)
    low = mean - 2.0 * np.sqrt(variance)
    after, less = curves.condition(x, end, low).predict(x, end)
    assert low[0] - 0.5 * np.sqrt(variance[0]) < after[0] < mean[0] - np.sqrt(variance[0])
    assert less[0] < variance[0]


def test_predictions_are_smooth_in_x() -> None:
    """The same uniform numbers in every call: a small step in x is a small step of the prediction."""
    curves = curves_at("decay", log_noise=-2.0)
    x = np.linspace(0.3, 0.31, 21)
    mean = curves.predict(np.column_stack([x, x]), np.full(21, T_MAX))[0]
    assert np.abs(np.diff(mean, 2)).max() < 1e-2 * np.abs(np.diff(mean)).max() + 1e-7
