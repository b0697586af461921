"""Batched projected L-BFGS against SciPy, one start at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from farthing.numerics.optimize import minimize_rows

TIGHT = {"rounds": 500, "ftol": 0.0, "gtol": 1e-7}


def rosenbrock(low: float, high: float):
    """The valley of Rosenbrock on [low, high]^p, in unit coordinates; its optimum is where all x are 1."""
    width = high - low

    def function(U, rows=None):
        X = low + width * U
        rise = X[:, 1:] - X[:, :-1] ** 2
        f = (100.0 * rise**2 + (1.0 - X[:, :-1]) ** 2).sum(axis=1)
        G = np.zeros_like(X)
        G[:, :-1] += -400.0 * rise * X[:, :-1] - 2.0 * (1.0 - X[:, :-1])
        G[:, 1:] += 200.0 * rise
        return f, width * G

    return function


def quadratic(A: np.ndarray, centre: np.ndarray):
    """|A (u - centre)|^2 / 2."""

    def function(U, rows=None):
        R = (U - centre) @ A.T
        return 0.5 * (R**2).sum(axis=1), R @ A

    return function


def by_scipy(function, start: np.ndarray) -> float:
    def alone(u):
        f, G = function(u[None, :])
        return f[0], G[0]

    bounds = [(0.0, 1.0)] * len(start)
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    return float(minimize(alone, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-1.0, 0.5), (1.2, 2.0)], ids=["inside", "above", "below"])
@pytest.mark.parametrize("p", [2, 3])
def test_rosenbrock_ends_as_low_as_scipy_ends(p, low, high):
    """Inside the box and beyond either end of it, from each of 16 starts; with more than 3 dimensions a second
    valley would make the comparison one of luck."""
    function = rosenbrock(low, high)
    starts = np.random.default_rng(p).random((16, p))
    points, values = minimize_rows(function, starts, **TIGHT)
    np.testing.assert_allclose(values, function(points)[0], rtol=1e-12)
    best = np.array([by_scipy(function, start) for start in starts])
    assert (values <= best + 1e-6 * (1.0 + best)).all()


@pytest.mark.parametrize("where", ["inside", "one side", "corner"])
@pytest.mark.parametrize("p", [1, 2, 6, 20])
def test_a_quadratic_ends_at_its_least_point_in_the_box(p, where):
    """Against bounded least squares, an active-set method that shares no step with L-BFGS."""
    rng = np.random.default_rng([p, len(where)])
    A = np.eye(p) + 0.5 * rng.standard_normal((p, p)) / np.sqrt(p)
    centre = rng.uniform(0.2, 0.8, p)
    if where == "one side":
        centre[0] = 1.4
    if where == "corner":
        centre = np.where(rng.random(p) < 0.5, -0.3, 1.3)
    expected = lsq_linear(A, A @ centre, bounds=(0.0, 1.0), method="bvls", tol=1e-14)
    points, values = minimize_rows(quadratic(A, centre), rng.random((8, p)), **TIGHT)
    np.testing.assert_allclose(points, np.tile(expected.x, (8, 1)), atol=1e-5)
    np.testing.assert_allclose(values, expected.cost, atol=1e-9)
    if where != "inside":
        assert ((expected.x == 0.0) | (expected.x == 1.0)).any()


def test_the_optimum_of_a_long_narrow_bowl_is_found():
    """Curvatures four decades apart: steepest descent would still be on its way."""
    rng = np.random.default_rng(5)
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    A = np.logspace(-1, 1, 6)[:, None] * Q
    points, _ = minimize_rows(quadratic(A, np.full(6, 0.4)), rng.random((8, 6)), **TIGHT)
    np.testing.assert_allclose(points, 0.4, atol=1e-4)


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 40])
def test_no_row_ends_above_its_start_or_outside_the_box(rounds):
    """Whatever the number of rounds, on a function with many valleys, and the value is that of the point."""

    def waves(X, rows=None):
        return np.sin(25.0 * X).sum(axis=1) + X[:, 0], 25.0 * np.cos(25.0 * X) + np.eye(X.shape[1])[0]

    starts = np.random.default_rng(rounds).random((64, 3))
    points, values = minimize_rows(waves, starts, rounds=rounds)
    assert (values <= waves(starts)[0]).all()
    assert ((points >= 0.0) & (points <= 1.0)).all()
    np.testing.assert_allclose(values, waves(points)[0], rtol=1e-12)


def test_the_function_is_only_asked_about_points_in_the_box():
    asked = []

    def tilted(X, rows=None):
        asked.append(X.copy())
        return (X - 1.5).sum(axis=1) + ((X - 0.4) ** 2).sum(axis=1), 1.0 + 2.0 * (X - 0.4)

    minimize_rows(tilted, np.random.default_rng(0).uniform(-1.0, 2.0, (10, 4)))
    assert all(((X >= 0.0) & (X <= 1.0)).all() for X in asked)


def test_the_number_of_calls_is_at_most_the_number_of_rounds():
    calls = 0
    function = rosenbrock(-2.0, 2.0)

    def counted(X, rows=None):
        nonlocal calls
        calls += 1
        return function(X)

    minimize_rows(counted, np.random.default_rng(0).random((10, 2)), rounds=25, ftol=0.0, gtol=0.0)
    assert calls == 25


def test_starts_outside_the_box_count_as_their_nearest_point_in_it():
    function = quadratic(np.eye(2), np.array([0.5, 0.5]))
    outside, inside = np.array([[-3.0, 0.2], [0.1, 7.0]]), np.array([[0.0, 0.2], [0.1, 1.0]])
    np.testing.assert_array_equal(minimize_rows(function, outside)[0], minimize_rows(function, inside)[0])


def test_a_row_ends_alone_where_it_ends_among_others():
    """Rows that finish early, late, never, or are not finite do not change what becomes of the others."""
    smooth = rosenbrock(-2.0, 2.0)

    def function(X, rows=None):
        f, G = smooth(X)
        lost = X[:, 0] > 0.98
        return np.where(lost, np.nan, f), np.where(lost[:, None], np.nan, G)

    starts = np.random.default_rng(3).random((24, 2))
    starts[5] = 0.75  # the optimum: finished before it begins
    starts[9, 0] = 0.99  # not finite
    points, values = minimize_rows(function, starts)
    for start, point, value in zip(starts, points, values, strict=True):
        alone_point, alone_value = minimize_rows(function, start[None, :])
        np.testing.assert_allclose(point, alone_point[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(value, alone_value[0], rtol=1e-7, atol=1e-12)


def test_each_row_may_have_a_function_of_its_own():
    """The function is told which start a row came from, whichever rows have finished before it."""
    rng = np.random.default_rng(0)
    centres, steepness = rng.random((30, 3)), 10.0 ** rng.uniform(-3.0, 2.0, 30)
    centres[4] = starts_at = np.full(3, 0.5)  # finished before it begins

    def function(X, rows):
        gap = X - centres[rows]
        return steepness[rows] * (gap**2).sum(axis=1), 2.0 * steepness[rows, None] * gap

    points, values = minimize_rows(function, np.tile(starts_at, (30, 1)), rounds=500, ftol=0.0, gtol=1e-9)
    np.testing.assert_allclose(points, centres, atol=1e-4)
    np.testing.assert_allclose(values, function(points, np.arange(30))[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_wall_of_values_that_are_not_finite_is_backed_away_from(bad):
    """The optimum lies beside a region without values; the way there leads through it and must be shortened."""

    def function(X, rows=None):
        beyond = X[:, 0] > 0.7
        f, G = ((X - 0.65) ** 2).sum(axis=1) * 50.0, 100.0 * (X - 0.65)
        return np.where(beyond, bad, f), np.where(beyond[:, None], np.nan, G)

    starts = np.random.default_rng(1).random((20, 2)) * np.array([0.6, 1.0])
    points, values = minimize_rows(function, starts, **TIGHT)
    np.testing.assert_allclose(points, 0.65, atol=1e-4)
    assert np.isfinite(values).all()


def test_minus_infinity_is_not_taken_for_a_gain():
    """A value that is not finite says that something broke, not that the optimum was found."""

    def function(X, rows=None):
        broken = X[:, 0] < 0.1
        return np.where(broken, -np.inf, X[:, 0]), np.ones_like(X)

    points, values = minimize_rows(function, np.array([[0.5], [0.9]]))
    assert np.isfinite(values).all()
    assert (points[:, 0] >= 0.1).all()


def test_a_start_without_a_finite_value_is_given_back_as_it_is():
    def nowhere(X, rows=None):
        return np.full(len(X), np.nan), np.full(X.shape, np.nan)

    starts = np.random.default_rng(0).random((3, 2))
    points, values = minimize_rows(nowhere, starts)
    np.testing.assert_array_equal(points, starts)
    assert np.isnan(values).all()


def test_gradients_that_are_not_finite_where_the_value_is_end_the_row_and_not_the_run():
    def function(X, rows=None):
        G = 2.0 * (X - 0.3)
        G[X[:, 0] > 0.8] = np.nan
        return ((X - 0.3) ** 2).sum(axis=1), G

    starts = np.array([[0.9, 0.9], [0.5, 0.1]])
    points, values = minimize_rows(function, starts)
    assert values[0] <= function(starts)[0][0]
    np.testing.assert_allclose(points[1], 0.3, atol=1e-3)


def test_the_memory_of_the_caller_is_left_alone():
    starts = np.random.default_rng(0).random((4, 2))
    before = starts.copy()
    minimize_rows(rosenbrock(-2.0, 2.0), starts)
    np.testing.assert_array_equal(starts, before)


@pytest.mark.parametrize(("b", "p"), [(0, 3), (4, 0), (0, 0)])
def test_no_rows_or_no_coordinates_are_answered_with_as_many(b, p):
    def flat(X, rows=None):
        return np.ones(len(X)), np.zeros_like(X)

    points, values = minimize_rows(flat, np.empty((b, p)))
    assert points.shape == (b, p)
    assert values.shape == (b,)
    assert (values == 1.0).all()


def test_a_flat_function_leaves_every_row_at_its_start():
    starts = np.random.default_rng(0).random((5, 3))
    points, _ = minimize_rows(lambda X, rows: (np.ones(len(X)), np.zeros_like(X)), starts)
    np.testing.assert_array_equal(points, starts)
