"""The Gittins index: its equation by an independent root finder, its gradient by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from farthing.acquisitions.affordable import IfAffordable
from farthing.acquisitions.gittins import HIGHEST, LessExpectedCost, MinusIndex, gittins_index
from farthing.surrogates import gp
from farthing.surrogates.fantasies import Fantasies

RNG = np.random.default_rng(0)
X = RNG.random((20, 3))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2
PENDING, QUERY = RNG.random((3, 3)), RNG.random((6, 3))


@pytest.fixture(scope="module")
def value() -> gp.GP:
    return gp.from_hyperparameters(X, Y, gp.Hyperparameters((0.0, 0.0, 0.5), -3.0))


@pytest.fixture(scope="module")
def log_cost() -> gp.GP:
    return gp.from_hyperparameters(X, 2.0 * X[:, 2] - X[:, 0], gp.Hyperparameters((0.5, 0.5, 0.0), -2.0))


def slopes(function, points, h=1e-6):
    return np.stack([(function(points + h * e) - function(points - h * e)) / (2 * h) for e in np.eye(3)], axis=1)


@pytest.mark.parametrize("bar", [1e-6, 1e-2, 1.0, 30.0])
def test_improving_on_the_index_is_worth_just_the_bar(bar):
    """Expected improvement over g, integrated, is the bar: no formula of the code is used."""
    means, s = np.array([[0.3, -0.5], [2.0, 1.0]]), np.array([0.7, 0.05])
    for row, g in enumerate(gittins_index(means, s, np.log(np.full(2, bar)))):

        def improvement(target, row=row):
            each = [
                quad(lambda y, m=m: (target - y) * norm.pdf(y, m, s[row]), m - 9 * s[row], target, epsabs=1e-14)[0]
                for m in means[row]
                if target > m - 9 * s[row]
            ]
            return sum(each) / 2 - bar

        found = brentq(improvement, means[row].min() - 8 * s[row], means[row].max() + 2 * bar + 1, xtol=1e-12)
        assert g == pytest.approx(found, abs=1e-6 * s[row])


@pytest.mark.parametrize("log_bar", [-700.0, -300.0, 0.0, HIGHEST, 1e4])
def test_it_is_finite_and_grows_with_the_bar_and_the_mean(log_bar):
    means, s = np.array([[-1e3], [0.0], [1e3]]), np.array([1e-9, 1.0, 1e3])
    at, above = (gittins_index(means, s, np.full(3, b)) for b in (log_bar, log_bar + 1.0))
    assert np.isfinite(at).all()
    assert (above >= at).all()
    assert np.allclose(gittins_index(means + 1.0, s, np.full(3, log_bar)), at + 1.0)


@pytest.mark.parametrize("log_price", [-9.0, -2.0, 3.0])
@pytest.mark.parametrize("pending", [np.empty((0, 3)), PENDING])
def test_its_gradient_is_its_slope(value, log_cost, pending, log_price):
    fantasies = Fantasies.of(value, -0.8, pending, np.random.default_rng(1))
    index = MinusIndex(fantasies, IfAffordable(LessExpectedCost(log_cost, log_price), log_cost, 0.5))
    found, gradient = index.with_gradient(QUERY)
    np.testing.assert_allclose(found, index(QUERY), rtol=1e-9)
    np.testing.assert_allclose(gradient, slopes(index, QUERY), rtol=2e-4, atol=1e-6)


def test_the_expected_cost_is_that_of_a_log_normal(log_cost):
    mean, variance = log_cost.predict(QUERY)
    drawn = np.exp(mean + np.sqrt(variance) * np.random.default_rng(2).standard_normal((200_000, len(QUERY))))
    error = 5.0 * drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(np.exp(-LessExpectedCost(log_cost, 0.0)(QUERY)) - drawn.mean(axis=0)) < error).all()


def test_the_least_index_is_below_the_target_exactly_where_some_ei_is_worth_its_cost(value, log_cost):
    """What the stopping rule rests on: min g < t if and only if max EI(t) / (price E[c]) > 1."""
    from farthing.acquisitions.improvement import MeanLogEI

    fantasies = Fantasies.of(value, float(Y.min()), np.empty((0, 3)), np.random.default_rng(0))
    points = np.random.default_rng(3).random((200, 3))
    for log_price in np.linspace(-12.0, 4.0, 33):
        cost = LessExpectedCost(log_cost, float(log_price))
        worth_it = (MeanLogEI(fantasies)(points) + cost(points)).max() > 0.0
        assert worth_it == (-MinusIndex(fantasies, cost)(points).max() < Y.min())
