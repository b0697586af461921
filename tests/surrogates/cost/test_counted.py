"""A process on the user's counts: alone, and averaged with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from farthing.surrogates.cost import flops
from farthing.surrogates.cost.choice import choose
from farthing.surrogates.cost.counted import OnCounts
from farthing.surrogates.cost.log_cost import CostModel, LogFeatures
from oracles.dense_gp import DenseGP
from oracles.network_costs import MLP, Counting, networks

FEATURES = LogFeatures(np.array([1.0, 40.0, 1.0]))


class Smooth(CostModel):
    """Counts exp(3 x) of three parameters, with their slopes."""

    def __init__(self, X: np.ndarray, cost: np.ndarray) -> None:
        self.fitted = flops.fit(np.exp(3.0 * X), cost)

    def predict(self, X):
        return self.fitted.predict(np.exp(3.0 * X))

    def predict_with_gradient(self, X):
        h, slopes = 1e-6, []
        for j in range(3):
            up, down = (self.predict(X + sign * h * np.eye(3)[j]) for sign in (1.0, -1.0))
            slopes.append([(u - d) / (2.0 * h) for u, d in zip(up, down, strict=True)])
        mean_slope, variance_slope = np.array(slopes).transpose(1, 2, 0)
        return *self.predict(X), mean_slope, variance_slope

    def log_densities(self):
        return self.fitted.log_densities()


def fitted(share: float = 1.0) -> OnCounts:
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    cost = np.exp(3.0 * X).sum(axis=1) * np.exp(0.4 * np.sin(5.0 * X[:, 0]) + 0.02 * rng.standard_normal(25))
    chosen = choose(X, np.log(cost), [0, 1, 2], FEATURES.ratios, own=Smooth(X, cost), model="gp-flops").model
    assert isinstance(chosen, OnCounts)
    return replace(chosen, share=share)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_gradients_are_those_of_finite_differences(share):
    model, P, h = fitted(share), np.random.default_rng(1).uniform(0.1, 0.9, (6, 3)), 1e-5
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(P)
    np.testing.assert_allclose([mean, variance], model.predict(P))
    np.testing.assert_allclose(model.mean_at(P), mean)
    np.testing.assert_allclose(model.mean_with_gradient(P)[1], mean_slope)
    for j in range(3):
        up, down = (model.predict(P + sign * h * np.eye(3)[j]) for sign in (1.0, -1.0))
        np.testing.assert_allclose(mean_slope[:, j], (up[0] - down[0]) / (2.0 * h), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(variance_slope[:, j], (up[1] - down[1]) / (2.0 * h), rtol=1e-3, atol=1e-6)


def test_a_share_is_the_mixture_of_the_counts_and_the_process_on_them():
    P = np.random.default_rng(2).random((9, 3))
    laws, weights = [fitted().own.predict(P), fitted().predict(P)], [0.7, 0.3]
    mean = sum(w * m for w, (m, _) in zip(weights, laws, strict=True))
    second = sum(w * (v + m**2) for w, (m, v) in zip(weights, laws, strict=True))
    ours = fitted(0.3).predict(P)
    np.testing.assert_allclose(ours[0], mean)
    np.testing.assert_allclose(ours[1], second - mean**2)


def test_its_variance_is_that_of_the_prices_of_the_process_and_of_the_noise():
    model, P = fitted(), np.random.default_rng(3).random((9, 3))
    prices = model.own.predict(P)[1] - model.own.fitted.noise
    process = model.process.predict(FEATURES(P))[1]
    np.testing.assert_allclose(model.predict(P)[1], prices + process + model.process.noise)
    assert (prices > 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_leaving_one_out_is_fitting_prices_and_process_without_it(seed):
    """At the hyperparameters, mean and variance of the whole; to first order in the prices, as the closed form is."""
    n = 20
    X, b, own = networks(n, seed)
    everyone = np.arange(n)
    model = choose(X, b, MLP.groups, MLP.ratios, own=own(everyone), model="gp-flops").model
    Z = LogFeatures(np.asarray(MLP.ratios))(X)
    residuals, variance = model.leave_one_out()
    expected = []
    for i in everyone:
        rest = everyone[everyone != i]
        without: Counting = own(rest)
        left = b - without.predict(X)[0]
        mean, covariance = DenseGP.like(model.process, Z[rest], left[rest]).predict(Z[[i]])
        leverage = without.predict(X[[i]])[1][0] - without.fitted.noise
        expected.append([left[i] - mean[0], covariance[0, 0] + model.process.noise + leverage])
    errors, variances = np.array(expected).T
    apart = np.abs(residuals - errors) / errors.std()
    assert np.median(apart) < 0.02
    assert (apart < 0.1).mean() >= 0.9  # of the most influential one the prices move too far for a first order
    assert (np.abs(np.log(variance / variances)) < 0.1).mean() >= 0.9
    plain = model.process.leave_one_out()[0]
    assert np.abs(residuals - errors).sum() < np.abs(plain - errors).sum()  # as if prices had been known


def test_it_joins_the_average_where_counts_leave_something_out():
    """From 8 observations on; with the process on them the average is more accurate than with the counts alone."""
    errors = []
    for seed in range(4):
        X, b, own = networks(230, seed)
        seen, rest = np.arange(30), np.arange(30, 230)
        chosen = choose(X[seen], b[seen], MLP.groups, MLP.ratios, own=own(seen))
        assert chosen.weights["gp-flops"] > 0.3
        alone = choose(X[seen], b[seen], MLP.groups, MLP.ratios, own=own(seen), model="flops")
        errors.append([np.abs(c.model.predict(X[rest])[0] - b[rest]).mean() for c in (chosen, alone)])
    average, counts = np.mean(errors, axis=0)
    assert average < 0.7 * counts


def test_a_stored_leader_that_needs_counts_is_forgotten_without_them():
    X, b, own = networks(30, 0)
    first = choose(X, b, MLP.groups, MLP.ratios, own=own(np.arange(30)))
    stored = {**first.state, "leader": "gp-flops"}
    without = choose(X, b, MLP.groups, MLP.ratios, stored, refit=False)
    assert not any(name.startswith("gp") for name in without.weights)
