"""Normals cut to a box: against closed forms in many digits, SciPy, exchangeable integrals and plain sampling."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import kstest, multivariate_normal, truncnorm

from farthing.errors import InvalidArgument
from farthing.numerics.truncated import interval_moments, log_box_with_gradient, net
from oracles.boxes import box_moments, log_box_probability, sample_box

mp = mpmath.mp.clone()
mp.dps = 80
INF = np.inf


def closed_form(mean: float, variance: float, lower: float, upper: float) -> tuple[float, float]:
    """Eq. (3.8) of the paper, in 80 digits."""
    m, s = mp.mpf(mean), mp.sqrt(mp.mpf(variance))
    a, b = (mp.mpf(lower) - m) / s, (mp.mpf(upper) - m) / s

    def phi(x):
        return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)

    def times(x):
        return x * phi(x) if mp.isfinite(x) else mp.mpf(0)

    def above(x):
        return mp.erfc(x / mp.sqrt(2)) / 2

    Z = above(a) - above(b) if a > 0 else above(-b) - above(-a)
    first = (phi(a) - phi(b)) / Z
    return m + first * s, s * s * (1 + (times(a) - times(b)) / Z - first**2)


INTERVALS = {
    "inside": (0.3, 0.8, -0.5, 1.1),
    "wide": (0.3, 0.8, -30.0, 40.0),
    "one side": (0.3, 0.8, -INF, 0.1),
    "other side": (0.3, 0.8, 0.1, INF),
    "no limit": (0.3, 0.8, -INF, INF),
    "left of the mean": (0.3, 0.8, -6.0, -4.0),
    "far right of the mean": (0.3, 0.8, 20.0, INF),
    "very far": (-2.0, 0.25, 50.0, 51.0),
    "a thousand deviations": (-1.0, 1e-6, -INF, -2.0),
    "narrow": (0.3, 0.8, 0.5, 0.5001),
    "narrow and far": (0.3, 0.8, 10.0, 10.001),
    "the mean on the bound": (-2.0, 0.5, -10.0, -2.0),
    "tiny variance inside": (0.3, 1e-14, 0.0, 1.0),
    "huge variance": (0.3, 1e12, 0.0, 1.0),
}


@pytest.mark.parametrize("case", INTERVALS.values(), ids=INTERVALS.keys())
def test_moments_in_an_interval_are_those_of_the_closed_form(case):
    mean, variance, lower, upper = case
    found = interval_moments(np.array([mean]), np.array([variance]), lower, upper)
    true_mean, true_variance = (float(part) for part in closed_form(*case))
    assert found.mean[0] == pytest.approx(true_mean, rel=1e-12, abs=1e-12)
    assert found.variance[0] == pytest.approx(true_variance, rel=1e-9)


@pytest.mark.parametrize("case", INTERVALS.values(), ids=INTERVALS.keys())
def test_derivatives_of_the_moments_are_differences_of_the_closed_form(case):
    mean, variance, lower, upper = case
    found = interval_moments(np.array([mean]), np.array([variance]), lower, upper)
    h = mp.mpf(10) ** -25
    for step, by in (
        ((h, 0), (found.mean_by_mean, found.variance_by_mean)),
        ((0, h * variance), (found.mean_by_variance, found.variance_by_variance)),
    ):
        up = closed_form(mean + step[0], variance + step[1], lower, upper)
        down = closed_form(mean - step[0], variance - step[1], lower, upper)
        sizes = (np.sqrt(variance), variance)
        for k in range(2):
            expected = float((up[k] - down[k]) / (2 * sum(step)))
            unit = sizes[k] / (np.sqrt(variance) if step[0] else variance)
            assert by[k][0] == pytest.approx(expected, rel=1e-7, abs=1e-10 * unit)


def test_a_mean_however_far_outside_gives_moments_inside():
    mean = np.concatenate([-np.logspace(0, 12, 30), np.logspace(0, 12, 30)])
    found = interval_moments(mean, np.full(60, 1e-8), -1.0, 0.0)
    assert ((found.mean >= -1.0) & (found.mean <= 0.0)).all()
    assert ((found.variance > 0.0) & (found.variance <= 1.0 / 12.0)).all()


def matern(n: int, scale: float, seed: int = 0) -> np.ndarray:
    """A covariance as a process has it."""
    X = np.random.default_rng(seed).random((n, 3))
    s = np.sqrt(5.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) / scale
    return (1.0 + s + s * s / 3.0) * np.exp(-s) + 1e-4 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [0.2, 1.0, 4.0])
def test_the_probability_of_a_box_is_that_of_scipy(n, scale):
    rng = np.random.default_rng(n)
    mean, K = rng.normal(size=n), matern(n, scale)
    lower, upper = rng.uniform(-2.0, 0.0, n), rng.uniform(0.2, 2.0, n)
    lower[0] = -INF
    theirs = multivariate_normal.cdf(upper, mean, K, lower_limit=lower, maxpts=200_000 * n, abseps=1e-8, releps=1e-8)
    assert np.exp(log_box_probability(mean, K, lower, upper)) == pytest.approx(float(theirs), rel=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_probability_of_a_box_is_the_share_of_draws_in_it(n):
    rng = np.random.default_rng(10 + n)
    mean, K, draws = 0.3 * rng.normal(size=n), matern(n, 0.7), 1_000_000
    lower, upper = np.full(n, -1.2), np.full(n, 0.9)
    X = mean + rng.standard_normal((draws, n)) @ np.linalg.cholesky(K).T
    share = ((lower < X) & (upper > X)).all(axis=1).mean()
    error = np.sqrt(share * (1.0 - share) / draws)
    assert abs(np.exp(log_box_probability(mean, K, lower, upper)) - share) < 4.0 * error


def test_three_correlated_signs_have_their_closed_form():
    """P(x > 0) = 1/8 + (asin r12 + asin r13 + asin r23) / (4 pi)."""
    r = np.array([0.7, -0.2, 0.4])
    K = np.array([[1.0, r[0], r[1]], [r[0], 1.0, r[2]], [r[1], r[2], 1.0]])
    found = np.exp(log_box_probability(np.zeros(3), K, np.zeros(3), np.full(3, INF)))
    assert found == pytest.approx(0.125 + np.arcsin(r).sum() / (4.0 * np.pi), rel=1e-5)


def exchangeable(n: int, r: float, lower: float, upper: float) -> float:
    """log P for n equal coordinates with correlation r: one integral over what they share."""

    def log_inside(t):
        a, b = (lower - np.sqrt(r) * t) / np.sqrt(1 - r), (upper - np.sqrt(r) * t) / np.sqrt(1 - r)
        if a > 0:
            a, b = -b, -a
        la, lb = log_ndtr(a), log_ndtr(b)
        return n * (lb + np.log1p(-np.exp(la - lb))) - t * t / 2 - np.log(2 * np.pi) / 2

    grid = np.linspace(-40.0, 60.0, 20_001)
    best = max(grid, key=log_inside)
    top = log_inside(best)
    inside, _ = quad(lambda t: np.exp(log_inside(t) - top), best - 8.0, best + 8.0, epsabs=0.0, epsrel=1e-10, limit=400)
    return top + float(np.log(inside))


@pytest.mark.parametrize("n", [2, 5, 10, 30, 50])
@pytest.mark.parametrize(("r", "lower", "upper"), [(0.1, -1.0, 2.0), (0.5, -2.0, 1.0), (0.3, 0.5, 1.5)])
def test_many_equal_coordinates_have_the_probability_of_one_integral(n, r, lower, upper):
    K = np.full((n, n), r) + (1.0 - r) * np.eye(n)
    found = log_box_probability(np.zeros(n), K, np.full(n, lower), np.full(n, upper))
    tolerance = 2e-4 if n <= 10 else 2e-3
    assert found == pytest.approx(exchangeable(n, r, lower, upper), abs=tolerance)


@pytest.mark.parametrize(("n", "r", "lower"), [(2, 0.2, 22.0), (10, 0.2, 12.0), (50, 0.01, 3.0), (3, 0.2, 45.0)])
def test_a_probability_below_1e_100_has_its_logarithm(n, r, lower):
    """The last one is below the smallest float by far, and each of its factors is."""
    K = np.full((n, n), r) + (1.0 - r) * np.eye(n)
    expected = exchangeable(n, r, lower, lower + 2.0)
    assert expected < -100.0 * np.log(10.0)
    found = log_box_probability(np.zeros(n), K, np.full(n, lower), np.full(n, lower + 2.0))
    assert found == pytest.approx(expected, abs=0.05)


def test_the_far_tail_of_many_correlated_coordinates_is_the_worst_case_and_right_to_half_a_percent_of_its_logarithm():
    """The points are spread by the marginals and the mass lies where they all lean one way."""
    n, K = 50, np.full((50, 50), 0.2) + 0.8 * np.eye(50)
    found = log_box_probability(np.zeros(n), K, np.full(n, 3.0), np.full(n, 5.0))
    assert found == pytest.approx(exchangeable(n, 0.2, 3.0, 5.0), rel=5e-3)


def test_independent_coordinates_multiply_exactly():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=12), rng.uniform(0.5, 2.0, 12)
    lower, upper = rng.uniform(-3, 0, 12), rng.uniform(0.1, 3, 12)
    expected = np.log(ndtr((upper - mean) / sd) - ndtr((lower - mean) / sd)).sum()
    assert log_box_probability(mean, np.diag(sd**2), lower, upper) == pytest.approx(expected, rel=1e-12)


def test_no_limits_are_certain_and_limits_on_some_are_their_marginal():
    n, K = 6, matern(6, 1.0)
    free = np.full(n, INF)
    assert log_box_probability(np.ones(n), K, -free, free) == 0.0
    lower, upper = -free, free.copy()
    upper[3] = 0.2
    assert log_box_probability(np.ones(n), K, lower, upper) == pytest.approx(
        float(log_ndtr((0.2 - 1.0) / np.sqrt(K[3, 3]))), rel=1e-12
    )


def test_the_order_of_the_coordinates_does_not_matter():
    n, K = 8, matern(8, 0.8)
    rng = np.random.default_rng(3)
    lower, upper, order = rng.uniform(-2, 0, n), rng.uniform(0.5, 2, n), rng.permutation(n)
    one = log_box_probability(np.zeros(n), K, lower, upper)
    other = log_box_probability(np.zeros(n), K[np.ix_(order, order)], lower[order], upper[order])
    assert one == pytest.approx(other, abs=1e-3)


@pytest.mark.parametrize("limits", [(1.0, -1.0), (0.5, 0.5), (np.nan, 1.0)])
def test_limits_that_are_swapped_equal_or_no_numbers_are_refused(limits):
    lower, upper = (np.array([-1.0, limit]) for limit in limits)
    upper[0] = 1.0
    for function in (log_box_probability, box_moments):
        with pytest.raises(InvalidArgument, match="coordinate 1"):
            function(np.zeros(2), np.eye(2), lower, upper)
    with pytest.raises(InvalidArgument, match="coordinate 1"):
        sample_box(np.zeros(2), np.eye(2), lower, upper, 3, np.random.default_rng(0))


BOXES = {
    "around the mean": (-1.0, 0.8),
    "one side": (-INF, 0.3),
    "far away": (8.0, 9.0),
    "further than a float": (45.0, INF),
}


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES.keys())
def test_the_gradient_of_the_probability_is_its_central_difference(n, box):
    rng = np.random.default_rng(n)
    mean, K, U = 0.3 * rng.normal(size=n), matern(n, 0.6), net(64, n)
    lower, upper = (np.full(n, limit) for limit in box)
    value, by_mean, by_K = log_box_with_gradient(mean, np.linalg.cholesky(K), lower, upper, U)
    assert np.isfinite(value)
    h = 1e-5
    for i in range(n):
        e = h * np.eye(n)[i]
        up, down = (log_box_with_gradient(m, np.linalg.cholesky(K), lower, upper, U)[0] for m in (mean + e, mean - e))
        assert by_mean[i] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-7)
        for j in range(i + 1):
            E = np.zeros((n, n))
            E[i, j] = E[j, i] = h
            up, down = (log_box_with_gradient(mean, np.linalg.cholesky(C), lower, upper, U)[0] for C in (K + E, K - E))
            expected = (up - down) / (2 * h) / (1.0 if i == j else 2.0)
            assert by_K[i, j] == pytest.approx(expected, rel=1e-4, abs=1e-5 * np.abs(by_K).max())
    np.testing.assert_array_equal(by_K, by_K.T)


def test_the_gradient_by_the_mean_is_the_shift_of_the_truncated_mean():
    """d log Z / dm = K^-1 (E x - m): an identity of the exact integral, so it holds up to the error of the points."""
    n, K = 5, matern(5, 0.8)
    mean, lower, upper = np.zeros(n), np.full(n, -0.5), np.full(n, 1.5)
    _, by_mean, _ = log_box_with_gradient(mean, np.linalg.cholesky(K), lower, upper, net(4096, n))
    np.testing.assert_allclose(K @ by_mean, box_moments(mean, K, lower, upper)[0] - mean, atol=1e-3)


def rejection(mean, K, lower, upper, draws=1_000_000, seed=0):
    X = mean + np.random.default_rng(seed).standard_normal((draws, len(mean))) @ np.linalg.cholesky(K).T
    return X[((lower < X) & (upper > X)).all(axis=1)]


def test_moments_in_a_box_are_those_of_the_draws_that_fell_into_it():
    rng = np.random.default_rng(5)
    mean, K = 0.5 * rng.normal(size=4), matern(4, 0.7)
    lower, upper = np.array([-1.0, -INF, 0.0, -0.3]), np.array([1.0, 0.5, INF, 0.8])
    kept = rejection(mean, K, lower, upper)
    found_mean, found_covariance = box_moments(mean, K, lower, upper)
    error = kept.std(axis=0) / np.sqrt(len(kept))
    assert (np.abs(found_mean - kept.mean(axis=0)) < 4.5 * error).all()
    np.testing.assert_allclose(found_covariance, np.cov(kept.T), atol=6.0 * kept.var(axis=0).max() / len(kept) ** 0.5)


def test_moments_in_a_box_of_one_dimension_are_those_of_the_interval():
    found_mean, found_variance = box_moments(np.array([0.4]), np.array([[2.0]]), np.array([-1.0]), np.array([0.5]))
    exact = interval_moments(np.array([0.4]), np.array([2.0]), -1.0, 0.5)
    assert found_mean[0] == pytest.approx(exact.mean[0], abs=1e-6)
    assert found_variance[0, 0] == pytest.approx(exact.variance[0], abs=1e-6)


def test_draws_are_in_the_box_and_have_its_moments():
    n, count = 5, 20_000
    mean, K = np.linspace(-0.5, 0.5, n), matern(n, 0.8)
    lower, upper = np.full(n, -0.6), np.full(n, 1.0)
    X = sample_box(mean, K, lower, upper, count, np.random.default_rng(0))
    assert X.shape == (count, n)
    assert ((lower <= X) & (upper >= X)).all()
    true_mean, true_covariance = box_moments(mean, K, lower, upper)
    error = np.sqrt(np.diag(true_covariance) / count)
    assert (np.abs(X.mean(axis=0) - true_mean) < 5.0 * error).all()
    np.testing.assert_allclose(np.cov(X.T), true_covariance, atol=6.0 * np.diag(true_covariance).max() / count**0.5)


def test_draws_of_coordinates_that_move_together_have_their_moments():
    """Gibbs alone would hardly move in ten sweeps: where the chains begin must be right."""
    n, K = 4, matern(4, 20.0)
    mean, lower, upper = np.zeros(n), np.array([-INF, -INF, -INF, 0.5]), np.array([INF, INF, INF, 1.0])
    lower[:2] = 0.6
    X = sample_box(mean, K, lower, upper, 20_000, np.random.default_rng(5))
    true_mean, true_covariance = box_moments(mean, K, lower, upper)
    error = np.sqrt(np.diag(true_covariance) / 20_000)
    assert (np.abs(X.mean(axis=0) - true_mean) < 5.0 * error).all()


def test_no_two_draws_are_the_same():
    """Beginnings are chosen by weight, the same one often more than once; the chains part."""
    X = sample_box(np.zeros(6), matern(6, 1.0), np.full(6, 2.0), np.full(6, 3.0), 500, np.random.default_rng(3))
    assert len(np.unique(X, axis=0)) == 500


def test_draws_of_one_dimension_have_its_distribution():
    X = sample_box(np.array([1.0]), np.array([[4.0]]), np.array([2.0]), np.array([INF]), 4000, np.random.default_rng(1))
    assert kstest(X[:, 0], truncnorm(0.5, INF, loc=1.0, scale=2.0).cdf).pvalue > 1e-3


def test_draws_of_a_box_that_plain_sampling_never_hits():
    n, K = 6, matern(6, 1.0)
    X = sample_box(np.zeros(n), K, np.full(n, 6.0), np.full(n, 6.5), 2000, np.random.default_rng(2))
    assert ((X >= 6.0) & (X <= 6.5)).all()
    np.testing.assert_allclose(
        X.mean(axis=0), box_moments(np.zeros(n), K, np.full(n, 6.0), np.full(n, 6.5))[0], atol=0.02
    )


def test_the_same_question_has_the_same_answer_and_the_same_generator_the_same_draws():
    mean, K, lower, upper = np.zeros(4), matern(4, 1.0), np.full(4, -1.0), np.full(4, 0.5)
    assert log_box_probability(mean, K, lower, upper) == log_box_probability(mean, K, lower, upper)
    draws = [sample_box(mean, K, lower, upper, 7, np.random.default_rng(4)) for _ in range(2)]
    np.testing.assert_array_equal(*draws)
