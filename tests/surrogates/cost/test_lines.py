"""Lines through log costs: against brute force, finite differences and costs drawn from known lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import t

from farthing.surrogates.cost import lines
from farthing.surrogates.cost.lines import (
    BEYOND,
    HUBER,
    KAPPA,
    NOISE_PRIOR,
    NOISE_STRENGTH,
    RIDGE,
    LinearCost,
    fit,
    fit_sizes,
    huber,
)
from oracles.lines import ONES, drawn, one_hot


def model_of(Z: np.ndarray, b: np.ndarray, selected: tuple[int, ...] = (0, 1, 2)) -> LinearCost:
    return huber(Z, b, selected, ONES, np.ones(len(b)))


def test_the_fit_minimises_hubers_loss_and_the_ridge(monkeypatch):
    monkeypatch.setattr(lines, "TOLERANCE", 1e-13)
    monkeypatch.setattr(lines, "ITERATIONS", 500)
    Z, b = drawn()
    model = model_of(Z, b)
    bound = HUBER * model.scale

    def loss(p: np.ndarray) -> float:
        size = np.abs(b - p[0] - Z @ p[1:])
        rho = np.where(size <= bound, 0.5 * size**2, bound * size - 0.5 * bound**2)
        return float(rho.sum() + 0.5 * RIDGE * p[1:] @ p[1:])

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    assert (np.abs(model.residuals) > bound).sum() >= 3
    np.testing.assert_allclose(model.weights, best[1:], atol=1e-5)
    np.testing.assert_allclose(model.intercept - model.centre @ model.weights, best[0], atol=1e-5)
    np.testing.assert_allclose(model.v, np.minimum(1.0, bound / np.abs(b - best[0] - Z @ best[1:])), atol=1e-5)


def test_one_outlier_a_thousand_times_too_large_barely_moves_the_fit():
    rng = np.random.default_rng(3)
    Z = rng.random((30, 3))
    b = 1.0 + 3.0 * Z[:, 0] + 0.1 * rng.standard_normal(30)
    struck = b.copy()
    struck[7] += np.log(1e3)
    P = rng.random((50, 3))
    moved = np.abs(fit(Z, struck).predict(P)[0] - fit(Z, b).predict(P)[0])
    squares = np.abs(np.linalg.lstsq(np.column_stack([np.ones(30), Z]), struck - b, rcond=None)[0])
    assert moved.max() < 0.15
    assert squares.max() > 3 * moved.max()  # least squares would not have shrugged


def weighted_line(Z: np.ndarray, b: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients (intercept first), their covariance over s^2, and s^2, by the normal equations."""
    H = np.column_stack([np.ones(len(b)), Z])
    A = H.T @ (v[:, None] * H) + RIDGE * np.diag([0.0, *np.ones(Z.shape[1])])
    p = np.linalg.solve(A, H.T @ (v * b))
    Q = v @ (b - H @ p) ** 2 + RIDGE * p[1:] @ p[1:]
    return p, np.linalg.inv(A), (NOISE_STRENGTH * NOISE_PRIOR**2 + Q / KAPPA) / (NOISE_STRENGTH + len(b) - 1)


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_leaving_one_out_is_refitting_without_it(n):
    Z, b = drawn(n)
    model = model_of(Z, b)
    model = settled(model, Z, b)
    residuals, square = model.leave_one_out()
    for i in range(n):
        rest = np.arange(n) != i
        p, covariance, s2 = weighted_line(Z[rest], b[rest], model.v[rest])
        h = np.append(1.0, Z[i])
        assert residuals[i] == pytest.approx(b[i] - h @ p, abs=1e-8)
        assert square[i] == pytest.approx(s2 * (1.0 + h @ covariance @ h), rel=1e-6)
        expected = t(NOISE_STRENGTH + n - 2, h @ p, np.sqrt(s2 * (1.0 + h @ covariance @ h))).logpdf(b[i])
        assert model.log_densities()[i] == pytest.approx(expected, abs=1e-6)


def settled(model: LinearCost, Z: np.ndarray, b: np.ndarray) -> LinearCost:
    """The same model with intercept, weights, scale and basis exactly those of its weights v."""
    intercept, centre, weights, L, residuals, scale = lines._weighted(Z[:, model.columns], b, model.v)
    half = np.linalg.solve(np.tril(L), (Z[:, model.columns] - centre).T).T
    basis = np.column_stack([np.full(len(b), model.v.sum() ** -0.5), half])
    return replace(
        model, intercept=intercept, centre=centre, weights=weights, L=L, residuals=residuals, scale=scale, basis=basis
    )


def test_mean_and_variance_are_those_of_the_normal_equations():
    Z, b = drawn()
    model = settled(model_of(Z, b), Z, b)
    p, covariance, s2 = weighted_line(Z, b, model.v)
    H = np.column_stack([np.ones(30), Z])
    mean, variance = model.predict(Z)
    inside = (mean > b.min()) & (mean < b.max())
    freedom = NOISE_STRENGTH + 29
    np.testing.assert_allclose(mean[inside], (H @ p)[inside], atol=1e-9)
    u = np.einsum("ij,jk,ik->i", H, covariance, H)
    np.testing.assert_allclose(variance, s2 * freedom / (freedom - 2.0) * (1.0 + u), rtol=1e-9)


def test_gradients_are_those_of_finite_differences():
    """Inside the costs seen and far outside them, with a choice among the columns."""
    rng = np.random.default_rng(1)
    Z = np.column_stack([rng.random((20, 2)), one_hot(rng.integers(3, size=20), 3)])
    b = 4.0 * Z[:, 0] + 2.0 * Z[:, 3]
    for model in fit_sizes(Z, b, [0, 1, 2, 2, 2]).values():
        for z in np.concatenate([rng.random((3, 5)), rng.uniform(-2.0, 3.0, (5, 5))]):
            mean_slope, variance_slope = (part[0] for part in model.predict_with_gradient(z[None])[2:])
            for slope, part in ((mean_slope, 0), (variance_slope, 1)):
                wanted = approx_fprime(z, lambda at, part=part, m=model: m.predict(at[None])[part][0], 1e-7)
                np.testing.assert_allclose(slope, wanted, atol=1e-5)
            np.testing.assert_array_equal(
                np.concatenate(model.predict_with_gradient(z[None])[:2]), np.concatenate(model.predict(z[None]))
            )


def test_variance_grows_outside_the_data():
    rng = np.random.default_rng(0)
    Z = 0.4 + 0.2 * rng.random((12, 2))
    model = fit(Z, 3.0 * Z[:, 0] + 3.0 * Z[:, 1])
    along = np.repeat(np.array([0.5, 0.7, 0.85, 1.0])[:, None], 2, axis=1)
    variance = model.predict(along)[1]
    assert (np.diff(variance) > 0.0).all()
    assert variance[0] >= model.noise


def test_the_mean_bends_beyond_the_costs_seen_but_keeps_its_order():
    Z = np.linspace(0.45, 0.55, 20)[:, None]
    b = 20.0 * Z[:, 0]
    model = fit(Z, b)
    far = np.linspace(-50.0, 50.0, 201)[:, None]
    mean = model.predict(far)[0]
    room = np.ptp(b) + BEYOND * model.scale
    assert (np.diff(mean) >= 0.0).all()
    assert mean.max() <= b.max() + room
    assert mean.min() >= b.min() - room
    assert mean.max() > b.max() + 0.9 * room


def test_the_number_of_parameters_follows_the_leave_one_out_density():
    Z, b = drawn(25, noise=0.1)
    models = fit_sizes(Z, b)
    best = max(models, key=lambda size: models[size].log_densities().sum())
    assert len(fit(Z, b).selected) == best


def test_two_evaluations_give_little_more_than_their_geometric_mean():
    Z = np.array([[0.2, 0.5], [0.8, 0.5]])
    model = fit(Z, np.array([0.0, 3.0]))
    mean, variance = model.predict(np.array([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]]))
    assert 0.0 < mean[0] < mean[1] < mean[2] < 3.0
    assert mean[1] == pytest.approx(1.5)
    assert (variance > NOISE_PRIOR**2).all()


def test_a_second_evaluation_already_helps():
    """Over random lines in one of three parameters, two costs predict better than their mean does."""
    rng = np.random.default_rng(0)
    lines, means = [], []
    for _ in range(200):
        Z, P, slope = rng.random((2, 3)), rng.random((50, 3)), rng.normal(0.0, 3.0)
        b, truth = slope * Z[:, 0], slope * P[:, 0]
        lines.append(np.mean((fit_sizes(Z, b)[3].predict(P)[0] - truth) ** 2))
        means.append(np.mean((b.mean() - truth) ** 2))
    assert np.mean(lines) < 0.95 * np.mean(means)


@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_ninety_percent_intervals_hold_eighty_to_ninety_seven(n):
    rng = np.random.default_rng(n)
    held = []
    for _ in range(60):
        w = np.where(rng.random(4) < 0.5, rng.normal(0.0, 2.0, 4), 0.0)
        Z, P = rng.random((n, 4)), rng.random((60, 4))
        noise = 0.1 + 0.4 * rng.random()
        b = Z @ w + noise * rng.standard_normal(n)
        mean, variance = fit_sizes(Z, b)[4].predict(P)
        seen = P @ w + noise * rng.standard_normal(60)
        held.append(np.abs(seen - mean) < 1.645 * np.sqrt(variance))
    assert 0.80 <= np.mean(held) <= 0.97


HOSTILE = {
    "one point": (np.full((1, 3), 0.5), np.array([2.0])),
    "two equal points": (np.full((2, 3), 0.5), np.array([2.0, 2.0])),
    "duplicates that do not agree": (np.full((4, 3), 0.5), np.arange(4.0)),
    "constant costs": (np.random.default_rng(0).random((9, 3)), np.full(9, -3.0)),
    "twenty decades": (np.random.default_rng(1).random((9, 3)), np.linspace(-23.0, 23.0, 9)),
    "a constant column": (np.random.default_rng(2).random((9, 3)) * [1, 0, 1], np.arange(9.0)),
    "one parameter": (np.random.default_rng(3).random((5, 1)), np.arange(5.0)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_gives_finite_predictions_and_positive_variances(name):
    Z, b = HOSTILE[name]
    P = np.random.default_rng(0).random((10, Z.shape[1]))
    for model in [fit(Z, b), *fit_sizes(Z, b).values()]:
        for part in (*model.predict_with_gradient(P), *model.leave_one_out(), model.log_densities()):
            assert np.isfinite(part).all()
        assert (model.predict(P)[1] > 0.0).all()
        assert np.isfinite(model.log_evidence)
