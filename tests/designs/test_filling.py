"""Sobol points: a net whatever the shift, and one sequence whatever its length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from farthing.designs.filling import LARGEST_DIMENSION, sobol


def draw(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    return sobol(count, dimension, np.random.default_rng(seed))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 512, 1000])
@pytest.mark.parametrize("dimension", [1, 2, 10, 60])
def test_points_are_in_the_half_open_cube(count, dimension):
    points = draw(count, dimension)
    assert points.shape == (count, dimension)
    assert (points >= 0.0).all()
    assert (points < 1.0).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("log2_count", [0, 1, 4, 9])
@pytest.mark.parametrize("dimension", [1, 5, 40])
def test_a_power_of_two_puts_one_point_in_each_interval_of_every_coordinate(log2_count, dimension, seed):
    count = 2**log2_count
    intervals = np.sort(np.floor(draw(count, dimension, seed) * count), axis=0)
    np.testing.assert_array_equal(intervals, np.tile(np.arange(count)[:, None], dimension))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("log2_width", range(7))
def test_two_coordinates_put_one_of_64_points_in_each_elementary_box(log2_width, seed):
    """Boxes of 2^-a by 2^-(6 - a), for every a: what makes a net more than a Latin hypercube."""
    points = draw(64, 2, seed)
    across, down = 2**log2_width, 2 ** (6 - log2_width)
    boxes = np.floor(points[:, 0] * across) * down + np.floor(points[:, 1] * down)
    np.testing.assert_array_equal(np.sort(boxes), np.arange(64))


@pytest.mark.parametrize("dimension", [1, 3, 17])
def test_fewer_points_are_the_first_of_more(dimension):
    whole = draw(64, dimension)
    for count in (1, 2, 3, 16, 33, 63):
        np.testing.assert_array_equal(draw(count, dimension), whole[:count])


def test_the_same_generator_gives_the_same_points_and_another_gives_others():
    np.testing.assert_array_equal(draw(32, 3, seed=1), draw(32, 3, seed=1))
    assert (draw(32, 3, seed=1) != draw(32, 3, seed=2)).all()
    rng = np.random.default_rng(0)
    assert (sobol(32, 3, rng) != sobol(32, 3, rng)).all()


def test_points_of_one_call_are_distinct_in_every_coordinate():
    points = draw(1000, 6)
    assert all(len(np.unique(column)) == 1000 for column in points.T)


@pytest.mark.parametrize("index", [0, 1, 6])
def test_each_point_is_uniform_over_draws(index):
    """A fixed net with a random shift: any one of its points may be anywhere."""
    points = np.array([draw(7, 2, seed)[index] for seed in range(400)])
    for column in points.T:
        assert kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(points.T)[0, 1]) < 4.0 / np.sqrt(400)


def test_the_mean_of_many_points_is_the_centre_closer_than_chance_would_have_it():
    """256 independent points would be off by 0.018 on average; these by less than a tenth of that."""
    points = draw(256, 8)
    assert np.abs(points.mean(axis=0) - 0.5).max() < 0.0018
    np.testing.assert_allclose(points.var(axis=0), 1.0 / 12.0, atol=0.002)


def test_a_caller_may_write_into_the_points():
    first = draw(8, 2)
    expected = first.copy()
    first[:] = -1.0
    np.testing.assert_array_equal(draw(8, 2), expected)


@pytest.mark.parametrize(("count", "dimension"), [(0, 3), (5, 0), (0, 0)])
def test_no_points_or_no_dimensions_are_answered_with_as_many(count, dimension):
    assert draw(count, dimension).shape == (count, dimension)


def test_beyond_the_known_direction_numbers_points_are_random():
    points = draw(3, LARGEST_DIMENSION + 1)
    assert points.shape == (3, LARGEST_DIMENSION + 1)
    assert (points >= 0.0).all()
    assert (points < 1.0).all()
    assert points.mean() == pytest.approx(0.5, abs=0.01)
