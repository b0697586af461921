"""The maximiser against brute force: dense grids, full enumerations, and the pool it starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from farthing import Choice, Integer, Ordered, Real, Space
from farthing.acquisitions.maximize import PER_SPREAD, POOL, SPREADS, Ranking, maximize, perturbed
from farthing.designs.filling import sobol
from farthing.history import History
from farthing.policies.candidates import FreshSpace
from farthing.surrogates import gp
from oracles.log_ei import LogEI

SQUARE = Space(x=Real(0.0, 1.0), y=Real(0.0, 1.0))
GRID_SPACE = Space(
    width=Integer(1, 12),
    depth=Integer(1, 10),
    kind=Choice(["a", "b", "c", "d"]),
    rate=Ordered([1, 2, 4, 8, 16, 32, 64]),
)
MIXED = Space(
    booster=Choice(["gbtree", "dart", "linear"]),
    depth=Integer(1, 16, when={"booster": {"gbtree", "dart"}}),
    drop=Real(0.0, 0.5, when={"booster": "dart"}),
    rate=Real(1e-4, 1.0, log=True),
    batch=Ordered([16, 32, 64, 128]),
)
SPACES = {"continuous": SQUARE, "discrete": GRID_SPACE, "mixed with conditions": MIXED}


@dataclass(frozen=True)
class State:
    """A fitted process somewhere in a study: what a maximisation is given."""

    fresh: FreshSpace
    acquisition: LogEI
    anchors: np.ndarray

    def utility(self, U: np.ndarray) -> np.ndarray:
        return self.acquisition(self.fresh.features(U))


def state(space: Space, seed: int) -> State:
    """Between 6 and 40 evaluations of a random smooth function of the features."""
    rng = np.random.default_rng([seed, len(space)])
    fresh = FreshSpace(space, History(seed=0))
    U = space.snap(rng.random((int(rng.integers(6, 41)), len(space))))
    X = space.features(U)
    tilt, bend, centre = rng.standard_normal((3, X.shape[1]))
    y = np.sin(4.0 * X @ tilt) + ((X - 0.5 - 0.3 * centre) ** 2 @ np.abs(bend)) + 0.01 * rng.standard_normal(len(X))
    model = gp.fit(X, y, space.groups)
    target = float(model.predict(X)[0].min())
    return State(fresh, LogEI(model, target), U[np.argsort(y)[:3]])


def found(s: State, seed: int = 0) -> Ranking:
    return maximize(s.acquisition, s.fresh, s.anchors, np.random.default_rng(seed))


every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


@every_space
@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_never_worse_than_the_best_of_the_pool(space, seed):
    """The pool is drawn again from a generator of the same seed."""
    s, rng = state(space, seed), np.random.default_rng(seed)
    pool = [sobol(POOL, len(space), rng), perturbed(s.anchors, space.levels, rng)]
    best = s.utility(space.snap(np.concatenate(pool))).max()
    assert found(s, seed).utility[0] >= best - 1e-12


@every_space
@pytest.mark.parametrize("seed", range(6))
def test_every_ranked_point_is_a_configuration_with_its_own_utility_best_first(space, seed):
    s = state(space, seed)
    ranking = found(s)
    np.testing.assert_array_equal(space.snap(ranking.U), ranking.U)
    np.testing.assert_allclose(s.utility(ranking.U), ranking.utility, rtol=1e-8, atol=1e-8)
    assert (np.diff(ranking.utility) <= 0.0).all()
    assert len(ranking.U) >= POOL


def test_in_two_dimensions_it_is_as_good_as_a_dense_grid():
    """Within 1e-3 in log EI of the best of 90,000 grid points, in at least 18 of 20 states."""
    axis = np.linspace(0.0, 1.0, 301)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    gaps = []
    for seed in range(20):
        s = state(SQUARE, seed)
        gaps.append(s.utility(grid).max() - found(s).utility[0])
    assert np.sum(np.array(gaps) <= 1e-3) >= 18, gaps


def test_on_a_finite_space_too_large_to_list_it_finds_the_best_of_all():
    """Of 3,360 configurations, against scoring each of them: in at least 18 of 20 states."""
    everything = GRID_SPACE.encode_many(GRID_SPACE.enumerate())
    assert len(everything) == 3360
    gaps = []
    for seed in range(20):
        s = state(GRID_SPACE, seed)
        gaps.append(s.utility(everything).max() - found(s).utility[0])
    assert np.min(gaps) >= -1e-9  # nothing is better than the best
    assert np.sum(np.array(gaps) <= 1e-9) >= 18, gaps


def test_on_a_mixed_space_it_is_as_good_as_many_random_points():
    """In at least 18 of 20 states no worse than the best of 40,000."""
    U = MIXED.snap(np.random.default_rng(0).random((40_000, len(MIXED))))
    gaps = []
    for seed in range(20):
        s = state(MIXED, seed)
        gaps.append(s.utility(U).max() - found(s).utility[0])
    assert np.sum(np.array(gaps) <= 1e-3) >= 18, gaps


@dataclass(frozen=True)
class Hill:
    """A utility with one top, at `top` in feature space."""

    top: np.ndarray
    width: float = 1.0

    def __call__(self, X):
        return -(((X - self.top) / self.width) ** 2).sum(axis=1)

    def with_gradient(self, X):
        return self(X), -2.0 * (X - self.top) / self.width**2


def test_a_hill_is_climbed_to_its_top():
    """Eight dimensions and no anchors: the pool comes nowhere near, only the gradient leads there."""
    space = Space({f"x{j}": Real(0.0, 1.0) for j in range(8)})
    top = np.random.default_rng(0).uniform(0.1, 0.9, 8)
    fresh = FreshSpace(space, History(seed=0))
    ranking = maximize(Hill(top, 0.1), fresh, np.empty((0, 8)), np.random.default_rng(0))
    np.testing.assert_allclose(ranking.U[0], top, atol=1e-3)


def test_a_top_beyond_the_bounds_is_met_at_the_bounds():
    top = np.array([1.7, -0.4])
    ranking = maximize(Hill(top), FreshSpace(SQUARE, History(seed=0)), np.empty((0, 2)), np.random.default_rng(0))
    np.testing.assert_array_equal(ranking.U[0], [1.0, 0.0])


@dataclass(frozen=True)
class Ridge:
    """Features (level, x, three of a choice): the best x depends on the level, the best level is 137 of 200."""

    def __call__(self, X):
        return self.with_gradient(X)[0]

    def with_gradient(self, X):
        level, x, b = X[:, 0] - 137.5 / 200, X[:, 1] - 0.2 - 0.6 * X[:, 0], X[:, 3]
        slope = np.zeros_like(X)
        slope[:, 0], slope[:, 1], slope[:, 3] = 1.2e4 * x - 8e4 * level, -2e4 * x, 1.0
        return -4e4 * level**2 - 1e4 * x**2 + b, slope


def test_discrete_and_continuous_moves_take_turns():
    """The level moves while x is wrong for it, then x follows: one round of each would end beside the top."""
    space = Space(level=Integer(0, 199), x=Real(0.0, 1.0), kind=Choice(["a", "b", "c"]))
    ranking = maximize(Ridge(), FreshSpace(space, History(seed=0)), np.empty((0, 3)), np.random.default_rng(0))
    config = space.decode(ranking.U[0])
    assert (config["level"], config["kind"]) == (137, "b")
    assert config["x"] == pytest.approx(0.2 + 0.6 * 137.5 / 200, abs=1e-4)


@dataclass(frozen=True)
class Bump:
    """Flat, gradient and all, but for a bump of radius 0.06 around `top`."""

    top: np.ndarray

    def __call__(self, X):
        return self.with_gradient(X)[0]

    def with_gradient(self, X):
        inside = np.maximum(1.0 - ((X - self.top) ** 2).sum(axis=1) / 0.06**2, 0.0)
        return inside**2, -4.0 * inside[:, None] * (X - self.top) / 0.06**2


def test_a_bump_beside_an_anchor_is_found_where_no_evenly_spread_point_sees_it():
    space = Space({f"x{j}": Real(0.0, 1.0) for j in range(4)})
    fresh, anchor = FreshSpace(space, History(seed=0)), np.full((1, 4), 0.4)
    bump = Bump(anchor[0] + 0.04)  # 0.08 away, so that the anchor itself sees nothing

    def times_found(anchors):
        rankings = [maximize(bump, fresh, anchors, np.random.default_rng(seed)) for seed in range(10)]
        return sum(ranking.utility[0] > 0.99 for ranking in rankings)

    assert times_found(anchor) >= 6
    assert times_found(np.empty((0, 4))) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_taken_and_forbidden_configurations_are_never_ranked(seed):
    s = state(GRID_SPACE, seed)
    space = Space(GRID_SPACE.params, forbid=[{"kind": "b"}, {"width": {1, 2, 3}, "depth": 10}])
    fresh = FreshSpace(space, History(seed=0))
    first = maximize(s.acquisition, fresh, s.anchors, np.random.default_rng(seed))
    best = fresh.claim(first.U)
    second = maximize(s.acquisition, fresh, s.anchors, np.random.default_rng(seed))
    keys = set(space.keys(second.U))
    assert space.key(best) not in keys
    assert fresh.admissible(second.U).all()
    assert all(space.allows(config) for config in space.decode_many(second.U[:200]))
    everything = space.encode_many(space.enumerate())
    values = s.utility(everything)[fresh.admissible(everything)]
    assert second.utility[0] <= values.max() + 1e-9


def test_a_forbidden_top_is_answered_with_the_best_beside_it():
    """A climb that ends where it must not is not taken, and what it started from is not lost."""
    space = Space(x=Real(0.0, 1.0), y=Real(0.0, 1.0), forbid=lambda config: config["x"] > 0.5)
    ranking = maximize(
        Hill(np.array([0.8, 0.3])), FreshSpace(space, History(seed=0)), np.empty((0, 2)), np.random.default_rng(0)
    )
    assert (ranking.U[:, 0] <= 0.5).all()
    assert ranking.U[0, 0] > 0.4
    assert ranking.U[0, 1] == pytest.approx(0.3, abs=0.15)


def test_where_nothing_is_admissible_the_ranking_is_empty():
    space = Space(x=Real(0.0, 1.0), forbid=lambda config: True)
    ranking = maximize(
        Hill(np.array([0.5])), FreshSpace(space, History(seed=0)), np.array([[0.2]]), np.random.default_rng(0)
    )
    assert ranking.U.shape == (0, 1)
    assert ranking.utility.shape == (0,)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_without_a_finite_utility_are_not_ranked(bad):
    class Broken(Hill):
        def __call__(self, X):
            return np.where(X[:, 0] > 0.6, bad, super().__call__(X))

        def with_gradient(self, X):
            return self(X), np.where(X[:, :1] > 0.6, np.nan, super().with_gradient(X)[1])

    fresh = FreshSpace(SQUARE, History(seed=0))
    ranking = maximize(Broken(np.array([0.5, 0.5])), fresh, np.array([[0.9, 0.9]]), np.random.default_rng(0))
    assert np.isfinite(ranking.utility).all()
    assert (ranking.U[:, 0] <= 0.6).all()
    np.testing.assert_allclose(ranking.U[0], 0.5, atol=1e-2)


def test_a_listed_pool_takes_the_place_of_the_drawn_one():
    space = Space(a=Integer(1, 6), b=Choice(["x", "y", "z"]))
    fresh, pool = FreshSpace(space, History(seed=0)), FreshSpace(space, History(seed=0)).listed()
    hill = Hill(space.features(space.encode({"a": 4, "b": "z"})[None, :])[0])
    ranking = maximize(hill, fresh, np.empty((0, 2)), np.random.default_rng(0), pool)
    assert space.decode(ranking.U[0]) == {"a": 4, "b": "z"}
    assert {space.key(config) for config in space.enumerate()} == set(space.keys(ranking.U))


@every_space
def test_the_same_generator_gives_the_same_ranking(space):
    s = state(space, 1)
    one, two, other = found(s, 3), found(s, 3), found(s, 4)
    np.testing.assert_array_equal(one.U, two.U)
    np.testing.assert_array_equal(one.utility, two.utility)
    assert one.U.shape != other.U.shape or (one.U != other.U).any()


@every_space
def test_perturbed_points_stay_in_the_cube_and_are_as_many_as_stated(space):
    anchors = np.array([[0.0] * len(space), [1.0] * len(space), [0.5] * len(space)])
    moved = perturbed(anchors, space.levels, np.random.default_rng(0))
    assert moved.shape == (PER_SPREAD * len(SPREADS), len(space))
    assert ((moved >= 0.0) & (moved <= 1.0)).all()


def test_perturbing_moves_continuous_coordinates_a_little_and_redraws_some_discrete_ones():
    """A discrete coordinate stays exactly where it is or is drawn anew; it never drifts."""
    levels, anchor = (None, 7, None, 3), np.array([[0.3, 0.5, 0.6, 0.5]])
    moved = np.concatenate([perturbed(anchor, levels, np.random.default_rng(seed)) for seed in range(40)])
    continuous, discrete = moved[:, [0, 2]], moved[:, [1, 3]]
    assert (continuous != anchor[0, [0, 2]]).all()
    for column, centre in zip(continuous.T, (0.3, 0.6), strict=True):
        sizes = np.abs(column - centre).reshape(40, len(SPREADS), PER_SPREAD)
        medians = np.median(sizes, axis=(0, 2))  # of |normal|: 0.6745 standard deviations
        np.testing.assert_allclose(medians, 0.6745 * np.array(SPREADS), rtol=0.2)
    redrawn = discrete != 0.5
    assert redrawn.mean() == pytest.approx(1 / 4, abs=0.03)
    fresh = discrete[redrawn]
    counts = np.histogram(fresh, bins=10, range=(0.0, 1.0))[0]
    assert counts.min() > 0.7 * counts.mean()
    assert counts.max() < 1.3 * counts.mean()


def test_perturbing_makes_use_of_every_anchor_and_leaves_them_alone():
    anchors = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.8]])
    before = anchors.copy()
    moved = perturbed(anchors, (None, None), np.random.default_rng(0))
    nearest = np.argmin(((moved[:, None, :] - anchors) ** 2).sum(axis=2), axis=1)
    assert (np.bincount(nearest, minlength=3) >= PER_SPREAD * len(SPREADS) // 5).all()
    np.testing.assert_array_equal(anchors, before)


def test_without_anchors_nothing_is_perturbed():
    assert perturbed(np.empty((0, 3)), (None, 4, None), np.random.default_rng(0)).shape == (0, 3)
