"""Contextual EI as a constrained optimum, against brute force on a dense grid."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.acquisitions.cost import Contextual, PerCost, contextual
from farthing.acquisitions.maximize import maximize
from farthing.history import History
from farthing.policies.candidates import FreshSpace
from farthing.space import Choice, Integer, Real, Space
from farthing.surrogates import gp
from farthing.surrogates.cost import lines
from farthing.surrogates.cost.log_cost import CostModel
from oracles.log_ei import LogEI

SQUARE = Space(a=Real(0, 1), b=Real(0, 1))
SIDE = np.linspace(0.0, 1.0, 151)
GRID = np.stack(np.meshgrid(SIDE, SIDE, indexing="ij"), axis=-1).reshape(-1, 2)


def state(seed: int, space: Space = SQUARE):
    """A random posterior of the value and a model of log cost: a line in one or both parameters, or a process."""
    rng = np.random.default_rng(seed)
    U = space.snap(rng.random((10, len(space))))
    X = space.features(U)
    wave = rng.normal(size=X.shape[1]) * 4.0
    value = gp.fit(X, np.sin(X @ wave) + (X**2).sum(axis=1), space.groups)
    weights = 3.0 * rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.7)
    log_cost = X @ weights + 0.05 * rng.normal(size=10)
    cost = gp.fit(X, log_cost, space.groups) if seed % 3 == 0 else lines.fit(X, log_cost, space.groups)
    return LogEI(value, float(value.y.min())), cost, FreshSpace(space, History(seed=0))


def solve(seed: int, tradeoff: float, space: Space = SQUARE):
    improvement, cost, domain = state(seed, space)
    found = maximize(improvement, domain, np.empty((0, len(space))), np.random.default_rng(seed))
    chosen = contextual(improvement, cost, domain, found, tradeoff)
    return improvement, cost, domain, found, chosen


@pytest.mark.parametrize("seed", range(100))
def test_the_answer_is_feasible_and_as_cheap_as_the_cheapest_feasible_point_of_a_grid(seed):
    tradeoff = (0.3, 0.5, 0.7, 0.9)[seed % 4]
    improvement, cost, domain, found, chosen = solve(seed, tradeoff)
    x = domain.features(chosen.U[:1])
    threshold = found.utility[0] + np.log1p(-tradeoff)
    assert improvement(x)[0] >= threshold - 1e-9

    on_grid, its_cost = improvement(GRID), cost.predict(GRID)[0]
    cheapest = its_cost[on_grid >= threshold].min(initial=np.inf)
    slopes = np.abs(cost.predict_with_gradient(GRID)[2]).max()
    resolution = slopes / 150
    assert cost.predict(x)[0][0] <= cheapest + resolution + 1e-4  # a hundredth of a percent where cost is nearly flat
    assert cost.predict(x)[0][0] <= cost.predict(domain.features(found.U[:1]))[0][0] + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_no_tradeoff_is_the_maximum_of_ei(seed):
    *_, found, chosen = solve(seed, 0.0)
    np.testing.assert_array_equal(chosen.U, found.U)


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_tradeoff_is_the_cheapest_point_of_all(seed):
    _, cost, domain, _, chosen = solve(seed, 1.0)
    ours, grid = cost.predict(domain.features(chosen.U[:1]))[0][0], cost.predict(GRID)[0]
    assert ours <= grid.min() + 0.02 * (grid.max() - grid.min()) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_is_on_the_front_where_the_cheapest_points_are_a_whole_face(seed):
    """Cost depends on the first parameter alone: among points of equal cost the one of largest EI is taken."""
    improvement, _, domain = state(seed)
    X = np.random.default_rng(seed).random((8, 2))
    cost = lines.fit(X[:, :1], 3.0 * X[:, 0])
    flat = _FirstOnly(cost)
    found = maximize(improvement, domain, np.empty((0, 2)), np.random.default_rng(seed))
    x = domain.features(contextual(improvement, flat, domain, found, 0.95).U[:1])
    along = np.column_stack([np.full(2001, x[0, 0]), np.linspace(0.0, 1.0, 2001)])
    assert improvement(x)[0] >= improvement(along).max() - 1e-3


class _FirstOnly(CostModel):
    def __init__(self, model):
        self.model = model

    def predict(self, X):
        return self.model.predict(X[:, :1])

    def predict_with_gradient(self, X):
        mean, variance, mean_slope, variance_slope = self.model.predict_with_gradient(X[:, :1])
        zero = np.zeros((len(X), X.shape[1] - 1))
        return mean, variance, np.hstack([mean_slope, zero]), np.hstack([variance_slope, zero])


MIXED = Space(n=Integer(1, 40), m=Integer(1, 9), kind=Choice(["a", "b", "c"]))


@pytest.mark.parametrize("seed", range(20))
def test_on_a_discrete_space_it_is_the_cheapest_of_all_configurations_that_qualify(seed):
    improvement, cost, domain, found, chosen = solve(seed, 0.7, MIXED)
    every = MIXED.features(MIXED.encode_many(MIXED.enumerate()))
    feasible = improvement(every) >= found.utility[0] + np.log1p(-0.7)
    ours = cost.predict(domain.features(chosen.U[:1]))[0][0]
    assert ours <= np.quantile(cost.predict(every)[0][feasible], 0.02) + 1e-9


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0, 2.5])
def test_ei_per_cost_is_the_quotient_and_its_gradient_the_slope_of_it(alpha):
    improvement, cost, _ = state(1)
    X = np.random.default_rng(5).random((6, 2))
    acquisition = PerCost(improvement, cost, alpha)
    quotient = np.exp(improvement(X)) / np.exp(cost.predict(X)[0]) ** alpha
    np.testing.assert_allclose(np.exp(acquisition(X)), quotient, rtol=1e-10)
    value, slope = acquisition.with_gradient(X)
    numeric = [(acquisition(X + h) - acquisition(X - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(value, acquisition(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slope, np.array(numeric).T, rtol=1e-3, atol=1e-3)


def test_utility_prefers_the_cheaper_then_the_better_and_refuses_what_improves_too_little():
    utility = Contextual(None, None, best=-1.0, threshold=-2.0)
    values = utility.of(np.array([-1.0, -1.5, -1.5, -2.1]), np.array([3.0, 2.0, 2.0 + 1e-9, 0.0]))
    assert values[1] > values[0]
    assert values[3] == -np.inf
    tied = utility.of(np.array([-1.9, -1.1]), np.array([2.0, 2.0 + 1e-9]))
    assert tied[1] > tied[0]
