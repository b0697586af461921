"""The EI-cost front against brute force: all pairs, a scan over alphas, a dense grid, every configuration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.acquisitions.cost import TIE, PerCost, contextual
from farthing.acquisitions.maximize import maximize
from farthing.acquisitions.pareto import (
    INDISTINCT,
    Front,
    Landscape,
    alpha_interval,
    candidates,
    front_among,
    non_dominated,
    persistence,
)
from farthing.errors import InvalidArgument
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
MIXED = Space(n=Integer(1, 20), m=Integer(1, 9), kind=Choice(["a", "b", "c"]))

few_numbers = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), max_size=30)


def by_all_pairs(points):
    """The non-dominated ones, of duplicates the first, by cost."""

    def dominates(j, i):
        (c, e), (d, f) = points[j], points[i]
        return c <= d and e >= f and ((c, e) != (d, f) or j < i)

    kept = [i for i in range(len(points)) if not any(dominates(j, i) for j in range(len(points)))]
    return sorted(kept, key=lambda i: points[i][0])


@given(few_numbers)
def test_what_is_kept_is_what_no_pair_rules_out_ties_and_duplicates_included(points):
    c, e = np.array(points, dtype=float).reshape(-1, 2).T
    assert non_dominated(c, e).tolist() == by_all_pairs(points)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_among_many_is_what_no_pair_rules_out(seed):
    c, e = np.random.default_rng(seed).normal(size=(2, 300))
    assert non_dominated(c, e).tolist() == by_all_pairs(list(zip(c.tolist(), e.tolist(), strict=True)))


def test_a_million_points_are_no_matter_of_pairs():
    c, e = np.random.default_rng(0).normal(size=(2, 1_000_000))
    kept = non_dominated(c, e)
    assert np.all(np.diff(c[kept]) > 0.0)
    assert np.all(np.diff(e[kept]) > 0.0)
    assert c[kept[0]] == c.min()
    assert e[kept[-1]] == e.max()


@pytest.mark.parametrize("seed", range(20))
def test_alphas_are_those_at_which_a_scan_finds_the_point(seed):
    c, e = np.random.default_rng(seed).normal(size=(2, 12))
    alphas = np.concatenate([np.linspace(0.0, 20.0, 4001), np.geomspace(20.0, 1e6, 500)])
    winner = np.argmax(e[:, None] - alphas * c[:, None], axis=0)
    for index in range(len(c)):
        found = alphas[winner == index]
        interval = alpha_interval(c, e, index)
        if interval is None:
            assert not len(found)
        else:
            low, high = interval
            inside = (alphas > low + 1e-6) & (alphas < high - 1e-6)
            np.testing.assert_array_equal(winner[inside], index)
            assert not len(found) or (low - 1e-6 <= found.min() and found.max() <= high + 1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_ei_is_alpha_0_and_the_cheapest_point_is_alpha_without_end(seed):
    c, e = np.random.default_rng(seed).normal(size=(2, 9))
    assert alpha_interval(c, e, int(np.argmax(e)))[0] == 0.0
    assert alpha_interval(c, e, int(np.argmin(c)))[1] == np.inf


def test_alphas_of_special_points():
    line = np.array([0.0, 0.1, 0.3, 0.7])
    assert alpha_interval(line, 3.0 * line, 1) == pytest.approx((3.0, 3.0), abs=1e-6)  # three in a row
    assert alpha_interval(np.array([2.0]), np.array([1.0]), 0) == (0.0, np.inf)
    dent = np.array([0.0, 0.9, 1.0])
    assert alpha_interval(np.array([0.0, 1.0, 2.0]), dent, 1) == pytest.approx((0.1, 0.9), abs=1e-6)
    assert alpha_interval(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.1, 1.0]), 1) is None
    assert alpha_interval(np.array([1.0, 1.0]), np.array([0.0, 1.0]), 0) is None  # dominated at equal cost
    assert alpha_interval(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1) is None  # dearer and worse


def test_tolerance_forgives_a_point_that_is_short_by_less():
    c, e = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.999, 2.0])
    assert alpha_interval(c, e, 1) is None
    assert alpha_interval(c, e, 1, tolerance=0.002) == pytest.approx((0.999, 1.001))


def landscape(seed: int, space: Space = SQUARE) -> Landscape:
    """A random posterior of the value, and log cost as a line or as a process."""
    rng = np.random.default_rng(seed)
    X = space.features(space.snap(rng.random((10, len(space)))))
    value = gp.fit(X, np.sin(X @ rng.normal(size=X.shape[1]) * 4.0) + (X**2).sum(axis=1), space.groups)
    log_cost = X @ (2.0 * rng.normal(size=X.shape[1])) + 0.05 * rng.normal(size=10)
    cost = gp.fit(X, log_cost, space.groups) if seed % 3 == 0 else lines.fit(X, log_cost, space.groups)
    return Landscape(LogEI(value, float(value.y.min())), cost, FreshSpace(space, History(seed=0)))


def picked(seed: int, tradeoff: float, space: Space = SQUARE, pool=None) -> tuple[Landscape, Front]:
    """A front and where EI, EIpu and CEI pick."""
    state, p = landscape(seed, space), len(space)

    def search(acquisition):
        return maximize(acquisition, state.domain, np.empty((0, p)), np.random.default_rng(seed), pool)

    found = search(state.improvement)
    picks = {
        "EI": found.U[0],
        "EIpu": search(PerCost(state.improvement, state.log_cost, 1.0)).U[0],
        "CEI": contextual(state.improvement, state.log_cost, state.domain, found, tradeoff).U[0],
    }
    return state, front_among(state, candidates(state, search), picks, "CEI")


@pytest.mark.parametrize("seed", range(20))
def test_every_pick_is_on_the_front_or_short_of_it_by_less_than_a_search_can_tell(seed):
    state, front = picked(seed, (0.0, 0.3, 0.7, 0.9)[seed % 4])
    for name, pick in front.picks.items():
        c, e = state.at(pick.u[None, :])
        np.testing.assert_allclose([pick.log_cost, pick.log_ei], [c[0], e[0]], atol=1e-8)
        assert 0.0 <= front.shortfall(c, e)[0] + 1e-9 <= 0.01, name


@pytest.mark.parametrize("seed", range(20))
def test_no_point_of_a_grid_is_far_above_the_front_where_improvement_is_useful(seed):
    state, front = picked(seed, 0.7)
    c, e = state.at(GRID)
    useful = e >= front.log_ei[-1] + np.log(0.05)
    above = -front.shortfall(c[useful] + 0.15, e[useful])  # a sixth of the cost more: the front has gaps
    assert above.max(initial=-np.inf) <= 0.25


@pytest.mark.parametrize("seed", range(30))
def test_alphas_lead_to_the_pick_of_contextual_ei_on_a_grid_and_where_there_is_none_no_alpha_does(seed):
    state, front = picked(seed, (0.2, 0.5, 0.8)[seed % 3])
    pick = front.picks["CEI"]
    c, e = state.at(np.concatenate([GRID, front.U]))
    if front.alphas is None:
        alphas = np.concatenate([np.linspace(0.0, 10.0, 2001), np.geomspace(10.0, 1e5, 500)])
        ahead = [np.max(e - alpha * c) - (pick.log_ei - alpha * pick.log_cost) for alpha in alphas]
        assert min(ahead) > INDISTINCT / 2
    else:
        alpha = min(np.mean(front.alphas), front.alphas[0] + 1.0)
        assert np.max(e - alpha * c) <= pick.log_ei - alpha * pick.log_cost + 0.02


def test_some_picks_of_contextual_ei_are_off_the_hull_and_some_are_not():
    assert {picked(seed, 0.5)[1].alphas is None for seed in range(6)} == {True, False}


@pytest.mark.parametrize("seed", range(10))
def test_no_tradeoff_leads_to_alpha_0(seed):
    _, front = picked(seed, 0.0)
    assert front.alphas is not None
    assert front.alphas[0] <= INDISTINCT
    assert front.picks["CEI"].log_ei == pytest.approx(front.log_ei[-1], abs=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_a_whole_tradeoff_leads_to_the_cheap_end_of_the_front(seed):
    _, front = picked(seed, 1.0)
    assert front.picks["CEI"].log_cost <= front.log_cost[0] + 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_on_a_space_that_can_be_listed_it_is_the_front_of_all_configurations(seed):
    every = MIXED.encode_many(MIXED.enumerate())
    state, front = picked(seed, 0.7, MIXED, pool=every)
    c, e = state.at(every)
    best = non_dominated(np.round(c, 9), e)
    np.testing.assert_allclose(front.log_cost, c[best], atol=1e-6)
    np.testing.assert_allclose(front.log_ei, e[best], atol=1e-6)


def test_costs_that_differ_by_rounding_are_one_point_of_the_front():
    state = landscape(1)
    flat = Landscape(state.improvement, _Flat(), state.domain)
    front = front_among(flat, GRID, {"CEI": GRID[0]}, "CEI")
    assert len(front.U) == 1
    assert front.log_ei[0] == pytest.approx(state.at(GRID)[1].max(), abs=1e-9)
    assert front.alphas is None


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_of_nearly_equal_costs_leaves_points_that_are_apart_and_none_far_above_them(seed):
    c = np.sort(np.random.default_rng(seed).random(400) * 1e-4)
    e = np.arange(400.0)
    world = Landscape(lambda X: X[:, 1], _First(), _Line())  # type: ignore
    front = front_among(world, np.column_stack([c, e]), {}, "CEI")
    assert np.all(np.diff(front.log_cost) > TIE)
    assert np.all(front.shortfall(c, e) >= 0.0)
    assert np.all(front.shortfall(front.log_cost, front.log_ei) == 0.0)


class _Flat(CostModel):
    """A cost that is the same everywhere, but for rounding."""

    def predict(self, X):
        return 1e-12 * X[:, 0], np.ones(len(X))


def test_a_front_stays_as_it_is_while_nothing_is_learned():
    state, front = picked(2, 0.7)
    after = persistence(front, front, state)
    np.testing.assert_allclose(after.log_cost, front.log_cost, atol=1e-9)
    np.testing.assert_allclose(after.log_ei, front.log_ei, atol=1e-9)
    assert after.share == 1.0


def test_what_became_dominated_does_not_persist():
    """A hand-made world: cost is the coordinate, EI at the second of three points falls below that of the first."""
    U = np.array([[0.0], [0.5], [1.0]])
    before = Front(U, U[:, 0], np.array([1.0, 2.0, 3.0]), {}, None)
    world = Landscape(lambda X: np.where(X[:, 0] == 0.5, 0.5, 1.0 + X[:, 0]), _First(), _Line())  # type: ignore
    now = Front(U[[0, 2]], np.array([0.0, 1.0]), np.array([1.0, 2.0]), {}, None)
    after = persistence(before, now, world)
    assert after.kept.tolist() == [True, False, True]
    assert after.share == pytest.approx(2 / 3)
    np.testing.assert_array_equal(after.log_ei, [1.0, 0.5, 2.0])


def test_what_a_new_point_dominates_does_not_persist():
    U = np.array([[0.5], [1.0]])
    before = Front(U, U[:, 0], np.array([1.5, 2.0]), {}, None)
    world = Landscape(lambda X: 1.0 + X[:, 0], _First(), _Line())  # type: ignore
    now = Front(np.array([[0.2], [1.0]]), np.array([0.2, 1.0]), np.array([1.7, 2.0]), {}, None)
    assert persistence(before, now, world).kept.tolist() == [False, True]


class _First(CostModel):
    def predict(self, X):
        return X[:, 0], np.ones(len(X))


class _Line:
    def features(self, U):
        return U


def test_shortfall_is_what_the_front_has_more_for_the_same_money():
    front = Front(np.zeros((2, 1)), np.array([0.0, 1.0]), np.array([1.0, 2.0]), {}, None)
    short = front.shortfall(np.array([-1.0, 0.5, 1.0, 3.0]), np.array([0.0, 0.0, 2.0, 2.5]))
    np.testing.assert_allclose(short, [-np.inf, 1.0, 0.0, -0.5])


@pytest.mark.parametrize(
    ("c", "e"), [([0.0, 0.0], [1.0, 2.0]), ([0.0, 1.0], [2.0, 1.0]), ([0.0], [1.0, 2.0]), ([], [])]
)
def test_what_is_no_front_is_refused(c, e):
    with pytest.raises(InvalidArgument, match="Front"):
        Front(np.zeros((len(c), 1)), np.array(c), np.array(e), {}, None)
