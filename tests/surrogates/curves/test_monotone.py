"""Curves that fall: posteriors against rejection sampling, and what a fit promises."""

from __future__ import annotations

import json

import numpy as np
import pytest

from farthing.surrogates.curves import monotone, unconstrained
from farthing.surrogates.curves.monotone import CARRIED, Curves, doubtful
from farthing.surrogates.curves.paths import VIRTUAL_NOISE, Paths, draw
from farthing.surrogates.curves.unconstrained import Hyperparameters, Probes
from oracles.falling_curves import T_MAX, every_kernel, hyperparameters, state


def curves_at(kernel: str, *, wrong: bool = False, seed: int = 0, runs: int = 8, log_noise: float = -5.0) -> Curves:
    plain = unconstrained.from_hyperparameters(
        *state(seed, runs, wrong=wrong), hyperparameters(kernel, log_noise), T_MAX
    )
    return monotone.constrained(plain, 1)


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
    plain = unconstrained.from_hyperparameters(
        X, t, y + 0.2 * np.random.default_rng(0).normal(size=len(y)), hyperparameters(kernel, -1.0), T_MAX
    )
    return Curves(plain, draw(plain, doubtful(plain, 2), 1, 4096))


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
            assert np.all(mean <= 3.0 * np.sqrt(VIRTUAL_NOISE) * spread)  # the noise of virtual slopes
    assert curves.paths.log_probability < np.log(1e-3)  # rising data are improbable


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
    plain = unconstrained.from_hyperparameters(
        X, t, 1.0 - t / T_MAX + 0.1 * X[:, 0], hyperparameters("decay", -9.0), T_MAX
    )
    curves = monotone.constrained(plain, 0)
    assert len(curves.paths.carried) == 0
    assert curves.paths.log_probability == 0.0
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
    assert np.exp(curves.paths.log_probability) == pytest.approx(share, rel=0.05)


@every_kernel
def test_at_most_forty_slopes_are_held(kernel: str) -> None:
    curves = curves_at(kernel, wrong=True, runs=30)
    assert len(curves.paths.carried) <= CARRIED
    X = np.random.default_rng(0).random((30, 2))
    assert curves.sample(X, np.full(30, T_MAX), 20, np.random.default_rng(0)).shape == (20, 30)


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


def test_curves_without_noise_are_predicted_closely() -> None:
    """Power laws whose level and rate are smooth in x, ten of twenty complete: the mean error of the other ends, from a
    fifth of the steps, is under 2 % of the spread of all ends. A noise floor of 1e-3 of the signal gives 2.8 %."""
    errors = []
    for seed in range(4):
        rng = np.random.default_rng([5, seed])
        R, steps = rng.random((20, 3)), np.array([2, 5, 10, 12, 25, 50])
        level, rate = 0.3 + 0.2 * np.sin(3.0 * R @ rng.normal(size=3)), np.exp(R @ rng.normal(size=3))
        Y = level[:, None] + 0.5 * (1.0 + 30.0 * rate[:, None] * steps / 50.0) ** -0.7
        known = np.array([(i, j) for i in range(20) for j in ((3, 4, 5) if i < 10 else (0, 1, 2))])
        curves = monotone.fit(
            R[known[:, 0]], steps[known[:, 1]].astype(float), Y[known[:, 0], known[:, 1]], t_max=50, rng=rng
        )
        mean = curves.predict(R[10:], np.full(10, 50.0))[0]
        errors.append(np.abs(mean - Y[10:, -1]).mean() / Y[:, -1].std())
    assert np.mean(errors) < 0.02
