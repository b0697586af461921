"""The search that all processes share: its starting points, its schedule and the sums its gradients are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

from farthing.surrogates.fitting import (
    LONG,
    MEDIUM,
    NormalPrior,
    best_of,
    by_log_scales,
    grouped,
    is_cold,
    log_median,
    number_of_groups,
    polished,
    search,
    starts,
)


@dataclass(frozen=True)
class Found:
    theta: np.ndarray
    cold_at: int


@dataclass
class Valleys:
    """Two valleys in one coordinate, at 1 and at -1, the one at `deeper` the deeper; counts its calls."""

    deeper: float = 1.0
    calls: int = 0

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(-3.0, 3.0)]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self.calls += 1
        x = theta[0]
        tilt = 0.3 * self.deeper
        return float((x * x - 1.0) ** 2 - tilt * x), np.array([4.0 * x * (x * x - 1.0) - tilt])


BEGIN = [np.array([-2.0]), np.array([-1.5]), np.array([2.0])]


@pytest.mark.parametrize(("m", "g", "median"), [(MEDIUM, 4, 2.0), (MEDIUM, 0, 1.0), (LONG, 9, 3.0 * np.exp(2**0.5))])
def test_the_median_length_scale_grows_with_the_root_of_the_dimension(m, g, median):
    assert np.exp(log_median(m, g)) == pytest.approx(median, rel=1e-12)


def test_starts_have_short_medium_and_long_length_scales_and_the_rest_as_given():
    found = starts(4, [(-7.0, 1.0), (-4.0, 2.0), (-9.0, 3.0)])
    np.testing.assert_allclose([theta[:4] for theta in found], np.log([[1.0] * 4, [3.0] * 4, [2.0 * np.exp(LONG)] * 4]))
    assert [theta[4:].tolist() for theta in found] == [[-7.0, 1.0], [-4.0, 2.0], [-9.0, 3.0]]


def test_the_prior_is_minus_the_log_density_up_to_a_constant():
    prior = NormalPrior(np.array([1.0, -2.0, 5.0]), np.array([0.5, 3.0, np.inf]))
    theta, other = np.array([0.3, 1.0, 7.0]), np.array([2.0, -4.0, -9.0])
    density = [norm.logpdf(at[:2], prior.mean[:2], prior.sd[:2]).sum() for at in (theta, other)]
    assert prior(theta)[0] - prior(other)[0] == pytest.approx(density[1] - density[0], rel=1e-12)
    steps = 1e-6 * np.eye(3)
    slope = [(prior(theta + step)[0] - prior(theta - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(prior(theta)[1], slope, atol=1e-8)


@pytest.mark.parametrize("n", [10, 12])
def test_a_fit_stays_warm_until_the_data_have_grown_by_three_tenths(n):
    assert not is_cold(n, Found(np.zeros(1), 10))


def test_a_fit_is_cold_without_an_earlier_one_and_after_growth():
    assert is_cold(5, None)
    assert is_cold(13, Found(np.zeros(1), 10))
    assert is_cold(2, Found(np.zeros(1), 0))


def test_a_warm_search_stays_in_its_valley_and_makes_no_subset():
    def refused() -> Valleys:
        raise AssertionError("a warm fit has no use for a subset")

    theta, cold_at = search(Valleys(), refused, BEGIN, 12, Found(np.array([-0.96]), 10), 50)
    assert theta[0] == pytest.approx(-0.96, abs=0.02)
    assert cold_at == 10


def test_a_cold_search_tries_its_starts_on_the_subset_and_ends_at_the_best_on_all_data():
    few, loss = Valleys(deeper=-1.0), Valleys(deeper=1.0)
    theta, cold_at = search(loss, lambda: few, BEGIN, 12, None, 50)
    assert theta[0] == pytest.approx(1.04, abs=0.02)
    assert cold_at == 12
    assert few.calls > loss.calls


def test_a_cold_search_also_tries_the_earlier_hyperparameters():
    theta, _ = search(Valleys(), Valleys, BEGIN[:2], 13, Found(np.array([1.2]), 10), 50)
    assert theta[0] == pytest.approx(1.04, abs=0.02)


def test_polishing_never_leaves_the_bounds():
    class Downhill:
        bounds = ((-1.0, 2.0),)

        def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
            assert -1.0 <= theta[0] <= 2.0
            return float(-theta[0]), np.array([-1.0])

    assert polished(Downhill(), np.array([-5.0]), 20)[0] == 2.0


def test_of_equal_losses_the_first_is_best():
    first, second = np.array([1.0]), np.array([-1.0])

    class Even:
        bounds = ((-1.0, 1.0),)

        def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
            return float(theta[0] ** 2), 2.0 * theta

    assert best_of(Even(), [first, second]) is first


@pytest.mark.parametrize("groups", [[0, 1, 2], [0, 1, 1], [1, 0, 1]])
def test_sums_over_pairs_are_those_of_all_pairs(groups):
    rng = np.random.default_rng(0)
    X, W = rng.random((7, 3)), rng.standard_normal((7, 7))
    W = W + W.T
    of = np.array(groups)
    squares = 0.5 * (W[:, :, None] * (X[:, None, :] - X[None, :, :]) ** 2).sum(axis=(0, 1))
    expected = [squares[of == k].sum() for k in range(of.max() + 1)]
    np.testing.assert_allclose(by_log_scales(X, W @ X, W.sum(axis=1), of, of.max() + 1), expected, atol=1e-12)


def test_columns_without_groups_are_parameters_of_their_own():
    assert grouped(None, 3).tolist() == [0, 1, 2]
    assert grouped([0, 0, 1], 3).tolist() == [0, 0, 1]
    assert number_of_groups(np.array([1, 0, 1])) == 2
    assert number_of_groups(np.empty(0, dtype=np.intp)) == 0
