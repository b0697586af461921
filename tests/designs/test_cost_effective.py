"""The cost-effective initial design against the algorithm as printed, and against Sobol at the same cost."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.designs.cost_effective import distances, next_point
from farthing.designs.filling import sobol


def as_printed(log_cost, distance):
    """CArBO, Algorithm 1, lines 5 to 8, one exclusion after the other; of equal ones, what the other line excludes."""
    left = list(range(len(log_cost)))
    while len(left) > 1:
        left.remove(max(left, key=lambda i: (log_cost[i], -distance[i], -i)))
        if len(left) > 1:
            left.remove(min(left, key=lambda i: (distance[i], -log_cost[i], i)))
    return left[0]


@pytest.mark.parametrize("seed", range(30))
def test_the_point_left_is_the_one_the_algorithm_leaves(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    log_cost, distance = rng.integers(0, 20, count) / 4.0, rng.integers(0, 30, count) / 7.0
    rounding = 1.0 + 1e-14 * rng.standard_normal((2, count))
    assert next_point(log_cost * rounding[0], distance * rounding[1]) == as_printed(log_cost, distance)


def test_where_all_costs_are_equal_the_farthest_point_is_left():
    """As section 3 of the paper says: the algorithm is then the greedy one."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        distance = rng.random(200)
        assert next_point(np.zeros(200), distance) == np.argmax(distance)


def test_distances_are_to_the_nearest_point_of_the_design():
    rng = np.random.default_rng(0)
    candidates, design = rng.random((50, 3)), rng.random((7, 3))
    brute = np.linalg.norm(candidates[:, None] - design[None], axis=2).min(axis=1)
    np.testing.assert_allclose(distances(candidates, design), brute, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_where_most_of_the_square_is_cheap_it_is_filled_more_densely_than_by_sobol_at_the_same_cost(seed):
    """As in the paper's Figure 1, only the far edges are dear, by up to a hundred times. They are what it leaves out:
    the average distance to the design is what falls, the largest one is at those edges."""
    rng = np.random.default_rng(seed)
    candidates = sobol(2048, 2, rng)

    def log_cost(X):
        return np.log(100.0) * X.max(axis=1) ** 4

    plain = sobol(6, 2, rng)
    budget = np.exp(log_cost(plain)).sum()
    design = plain[[np.argmin(log_cost(plain))]]
    while True:
        x = candidates[[next_point(log_cost(candidates), distances(candidates, design))]]
        if np.exp(log_cost(np.concatenate([design, x]))).sum() > budget:
            break
        design = np.concatenate([design, x])
    everywhere = rng.random((4000, 2))
    assert len(design) > 3 * len(plain)
    assert distances(everywhere, design).mean() < 0.9 * distances(everywhere, plain).mean()
