"""Counts of operations, and prices for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from farthing.errors import InvalidArgument
from farthing.surrogates.cost import flops
from farthing.surrogates.cost.flops import SHARE_STRENGTH, fit, phi_conv, phi_linear, phi_pool, phi_quad
from farthing.surrogates.cost.lines import HUBER, student_spread


def test_phi_quad_sums_products_of_neighbouring_layers():
    assert phi_quad([3, 5, 7, 2]) == 3 * 5 + 5 * 7 + 7 * 2
    assert phi_quad([3]) == 0.0


def test_phi_linear_sums_layers():
    assert phi_linear([3, 5, 7, 2]) == 17.0


def test_phi_conv_starts_with_the_colours():
    assert phi_conv(28, 3, 2, [8, 16, 4]) == 28**2 * 3**2 * (2 * 8 + 8 * 16 + 16 * 4)


def test_phi_pool_weighs_channels_by_their_ratio():
    assert phi_pool(28, [1.0, 0.25], [8, 16]) == 28**2 * (1.0 * 8 + 0.25 * 16)
    with pytest.raises(ValueError):
        phi_pool(28, [1.0], [8, 16])


def test_epochs_multiply():
    layers = [3, 5]
    assert phi_quad(layers, epochs=4) == 4 * phi_quad(layers)
    assert phi_linear(layers, epochs=4) == 4 * phi_linear(layers)
    assert phi_conv(8, 3, 1, layers, epochs=4) == 4 * phi_conv(8, 3, 1, layers)
    assert phi_pool(8, [1, 1], layers, epochs=4) == 4 * phi_pool(8, [1, 1], layers)


def networks(n: int, seed: int = 0) -> np.ndarray:
    """phi_quad and phi_linear of random networks of four layers."""
    sizes = np.random.default_rng(seed).integers(10, 300, (n, 4))
    return np.array([[phi_quad(row), phi_linear(row)] for row in sizes.tolist()])


PRICES = np.array([2e-6, 3e-4, 0.05])


def cost_of(Phi: np.ndarray) -> np.ndarray:
    return Phi @ PRICES[:-1] + PRICES[-1]


def test_prices_are_recovered():
    Phi = networks(60)
    model = fit(Phi, cost_of(Phi))
    np.testing.assert_allclose(model.prices, PRICES, rtol=0.02)
    np.testing.assert_allclose(model.predict(Phi)[0], np.log(cost_of(Phi)), atol=2e-3)


def test_no_price_is_negative():
    Phi = networks(40)
    model = fit(Phi, 1.0 / Phi[:, 0])
    assert (model.prices >= 0.0).all()
    assert np.isfinite(model.predict(Phi)).all()


def test_relative_errors_count():
    """The cheap half, a ten-thousandth of the cost, is priced as well as the dear half."""
    rng = np.random.default_rng(0)
    Phi = np.concatenate([rng.uniform(1, 10, (20, 1)), rng.uniform(1e4, 1e5, (20, 1))])
    cost = (3.0 * Phi[:, 0] + 1.0) * np.exp(0.1 * rng.standard_normal(40))
    errors = fit(Phi, cost).predict(Phi)[0] - np.log(3.0 * Phi[:, 0] + 1.0)
    assert np.abs(errors).max() < 0.15


def test_log_costs_are_not_biased_by_noise():
    rng = np.random.default_rng(1)
    Phi, P = networks(400), networks(100, 9)
    noisy = cost_of(Phi) * np.exp(0.4 * rng.standard_normal(400))
    assert np.mean(fit(Phi, noisy).predict(P)[0] - np.log(cost_of(P))) == pytest.approx(0.0, abs=0.06)


def test_prices_minimise_hubers_loss_of_the_log_errors(monkeypatch):
    monkeypatch.setattr(flops, "SHARE_STRENGTH", 1e-12)
    monkeypatch.setattr(flops, "TOLERANCE", 1e-13)
    monkeypatch.setattr(flops, "ITERATIONS", 500)
    rng = np.random.default_rng(5)
    Phi = networks(30)
    cost = cost_of(Phi) * np.exp(0.4 * rng.standard_t(2, 30))
    model = fit(Phi, cost)
    bound = HUBER * np.sqrt(model.noise / student_spread(30))

    def loss(log_prices: np.ndarray) -> float:
        size = np.abs(np.log(cost) - np.log(Phi @ np.exp(log_prices[:2]) + np.exp(log_prices[2])))
        return float(np.where(size <= bound, 0.5 * size**2, bound * size - 0.5 * bound**2).sum())

    starts = [np.log(PRICES), np.log(np.maximum(model.prices, 1e-12))]
    best = min(minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000}).fun for start in starts)
    assert loss(np.log(np.maximum(model.prices, 1e-12))) == pytest.approx(best, abs=1e-4)
    assert loss(np.log(1.2 * np.maximum(model.prices, 1e-12))) > best + 0.01


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_one_outlier_barely_moves_the_fit(factor):
    rng = np.random.default_rng(2)
    Phi = networks(40)
    cost = cost_of(Phi) * np.exp(0.05 * rng.standard_normal(40))
    struck = cost.copy()
    struck[11] *= factor
    moved = np.abs(fit(Phi, struck).predict(Phi)[0] - fit(Phi, cost).predict(Phi)[0])
    assert moved.max() < 0.3


def test_ninety_percent_intervals_hold_eighty_to_ninety_seven():
    rng = np.random.default_rng(3)
    held = []
    for seed in range(30):
        Phi, P, noise = networks(15, seed), networks(60, 1000 + seed), 0.1 + 0.4 * rng.random()
        mean, variance = fit(Phi, cost_of(Phi) * np.exp(noise * rng.standard_normal(15))).predict(P)
        seen = np.log(cost_of(P)) + noise * rng.standard_normal(60)
        held.append(np.abs(seen - mean) < 1.645 * np.sqrt(variance))
    assert 0.80 <= np.mean(held) <= 0.97


def test_variance_is_that_of_the_errors_and_the_leverage():
    """Exact costs, so all weights are 1; rows are relative to the cost, the prior's to the shares."""
    Phi, P = networks(40), networks(5, 8)
    model = fit(Phi, cost_of(Phi))
    rows, new = (np.column_stack([part, np.ones(len(part))]) for part in (Phi, P))
    relative, asked = rows / (rows @ model.prices)[:, None], new / (new @ model.prices)[:, None]
    A = relative.T @ relative + SHARE_STRENGTH * np.diag(1.0 / model.units**2)
    u = np.einsum("ij,ji->i", asked, np.linalg.solve(A, asked.T))
    np.testing.assert_allclose(model.predict(P)[1], model.noise * (1.0 + u), rtol=1e-6)
    np.testing.assert_allclose(model.units * rows.mean(axis=0), np.exp(np.log(cost_of(Phi)).mean()))


def test_without_features_the_intercept_is_known_as_a_mean_is():
    _, variance = fit(np.empty((25, 0)), np.full(25, 3.0)).predict(np.empty((1, 0)))
    expected = 3.0 * 0.3**2 / (3.0 + 24.0) * student_spread(25) * (1.0 + 1.0 / (25.0 + SHARE_STRENGTH))
    assert variance[0] == pytest.approx(expected)


def test_the_features_not_seen_at_work_are_less_sure():
    rng = np.random.default_rng(4)
    Phi = np.column_stack([rng.uniform(1, 2, 30), rng.uniform(0.0, 0.2, 30)])
    model = fit(Phi, Phi.sum(axis=1))
    usual, odd = model.predict(np.array([[1.5, 0.1], [0.1, 3.0]]))[1]
    assert odd > 1.5 * usual


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_evaluations_are_enough(n):
    Phi = networks(n)
    mean, variance = fit(Phi, cost_of(Phi)).predict(Phi)
    np.testing.assert_allclose(mean, np.log(cost_of(Phi)), atol=0.2)
    assert (variance >= 0.3**2 * 0.5).all()


HOSTILE = {
    "zero costs": (networks(6), np.zeros(6)),
    "eight decades": (networks(9), 10.0 ** np.linspace(-4, 4, 9)),
    "a column of zeros": (np.column_stack([networks(6), np.zeros(6)]), np.arange(6.0)),
    "constant costs": (networks(6), np.full(6, 7.0)),
    "duplicates": (np.repeat(networks(1), 5, axis=0), np.arange(1.0, 6.0)),
    "huge counts": (networks(6) * 1e15, cost_of(networks(6))),
    "no features": (np.empty((4, 0)), np.arange(1.0, 5.0)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_gives_finite_predictions(name):
    Phi, cost = HOSTILE[name]
    mean, variance = fit(Phi, cost).predict(Phi)
    assert np.isfinite(mean).all()
    assert (np.isfinite(variance) & (variance > 0.0)).all()


def test_features_that_do_not_count_are_refused():
    with pytest.raises(InvalidArgument, match=r"cost_features: expected finite counts of at least 0, got -1\.0"):
        fit(np.array([[-1.0], [2.0]]), np.ones(2))
    with pytest.raises(InvalidArgument, match="cost_features: expected finite counts of at least 0, got nan"):
        flops.fit(np.array([[1.0]]), np.ones(1)).predict(np.array([[np.nan]]))
