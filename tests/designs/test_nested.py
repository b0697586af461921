"""Nested Latin hypercubes: two designs in one, and random in every way they may be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from farthing.designs.nested import nested_latin_hypercube
from farthing.errors import InvalidArgument

SIZES = [(1, 1), (1, 7), (5, 5), (5, 10), (3, 12), (30, 60), (8, 64)]


def draw(n_inner: int, n_outer: int, p: int, seed: int = 0) -> np.ndarray:
    return nested_latin_hypercube(n_inner, n_outer, p, np.random.default_rng(seed))


@pytest.mark.parametrize("p", [1, 2, 10])
@pytest.mark.parametrize(("n_inner", "n_outer"), SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_all_points_and_the_first_ones_alone_have_one_point_in_each_cell_of_every_dimension(n_inner, n_outer, p, seed):
    points = draw(n_inner, n_outer, p, seed)
    assert points.shape == (n_outer, p)
    assert ((points >= 0.0) & (points < 1.0)).all()
    for count in (n_inner, n_outer):
        cells = np.sort(np.floor(points[:count] * count), axis=0)
        np.testing.assert_array_equal(cells, np.tile(np.arange(count)[:, None], p))


@pytest.mark.parametrize(("n_inner", "n_outer"), [(3, 10), (6, 3), (0, 4), (4, 0), (-2, 4)])
def test_outer_points_that_are_no_multiple_of_the_inner_ones_are_refused(n_inner, n_outer):
    with pytest.raises(
        InvalidArgument,
        match=f"n_outer: expected a multiple of n_inner, itself at least 1, got {n_outer} and {n_inner}",
    ):
        draw(n_inner, n_outer, 2)


@pytest.mark.parametrize("index", [0, 3, 4, 11])
def test_each_point_is_uniform_in_the_cube_over_draws(index):
    """The first inner, the last inner, the first outer and the last."""
    points = np.array([draw(4, 12, 2, seed)[index] for seed in range(500)])
    for column in points.T:
        assert kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(points.T)[0, 1]) < 4.0 / np.sqrt(500)


def test_an_inner_point_takes_every_cell_of_its_block_equally_often():
    """A recipe that took the first cell of each block would still be a Latin hypercube at both levels."""
    within = np.concatenate([np.floor(draw(5, 20, 3, seed)[:5] * 20).ravel() % 4 for seed in range(300)])
    counts = np.bincount(within.astype(int), minlength=4)
    assert np.abs(counts / counts.sum() - 0.25).max() < 4.0 * np.sqrt(0.25 * 0.75 / len(within))


def test_the_dimensions_are_permuted_independently():
    points = draw(20, 60, 5)
    for part in (points[:20], points):
        correlations = np.corrcoef(part.T)[np.triu_indices(5, 1)]
        assert np.abs(correlations).max() < 4.0 / np.sqrt(len(part))


def test_the_same_generator_gives_the_same_points_and_another_gives_others():
    np.testing.assert_array_equal(draw(4, 8, 3, seed=1), draw(4, 8, 3, seed=1))
    assert (draw(4, 8, 3, seed=1) != draw(4, 8, 3, seed=2)).all()


def test_no_dimensions_give_points_without_coordinates():
    assert draw(2, 4, 0).shape == (4, 0)
