"""Expected improvement averaged over fantasies, and weighed by the chance that it can be paid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from farthing.acquisitions.affordable import IfAffordable
from farthing.acquisitions.improvement import Believed, MeanLogEI
from farthing.surrogates import gp
from farthing.surrogates.fantasies import Fantasies
from oracles.log_ei import LogEI

RNG = np.random.default_rng(0)
X = RNG.random((20, 3))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.standard_normal(20)
PENDING, QUERY = RNG.random((3, 3)), RNG.random((6, 3))


@pytest.fixture(scope="module")
def process() -> gp.GP:
    return gp.from_hyperparameters(X, Y, gp.Hyperparameters((0.0, 0.0, 0.5), -3.0))


def slopes(function, points, h=1e-6):
    return np.stack([(function(points + h * e) - function(points - h * e)) / (2 * h) for e in np.eye(3)], axis=1)


def test_without_pending_evaluations_it_is_log_ei(process):
    fantasies = Fantasies.of(process, -0.8, np.empty((0, 3)), np.random.default_rng(0))
    np.testing.assert_allclose(MeanLogEI(fantasies)(QUERY), LogEI(process, -0.8)(QUERY), rtol=1e-10)
    ours, theirs = MeanLogEI(fantasies).with_gradient(QUERY), LogEI(process, -0.8).with_gradient(QUERY)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-8, atol=1e-10)


def test_it_is_the_mean_of_ei_over_processes_conditioned_one_by_one(process):
    fantasies = Fantasies.of(process, -0.8, PENDING, np.random.default_rng(1), count=4)
    each = []
    for k in range(4):
        drawn = fantasies.Y[len(X) :, k]
        conditioned = process.condition(PENDING, drawn)
        each.append(np.exp(LogEI(conditioned, min(-0.8, drawn.min()))(QUERY)))
    np.testing.assert_allclose(MeanLogEI(fantasies)(QUERY), np.log(np.mean(each, axis=0)), rtol=1e-8)


def test_its_gradient_is_its_slope(process):
    acquisition = MeanLogEI(Fantasies.of(process, -0.8, PENDING, np.random.default_rng(1)))
    value, gradient = acquisition.with_gradient(QUERY)
    np.testing.assert_allclose(value, acquisition(QUERY), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(acquisition, QUERY), rtol=1e-4, atol=1e-6)


def test_fantasies_are_drawn_from_the_joint_posterior_with_noise(process):
    count = 40_000
    drawn = Fantasies.of(process, 0.0, PENDING, np.random.default_rng(2), count=count).Y[len(X) :]
    mean, covariance = process.covariance(PENDING)
    covariance = covariance + process.noise * np.eye(3)
    error = 5.0 * np.sqrt(np.diag(covariance) / count)
    assert (np.abs(drawn.mean(axis=1) - mean) < error).all()
    assert np.abs(np.cov(drawn) - covariance).max() < 5.0 * np.sqrt(2.0 / count) * covariance.max()


def test_extending_one_by_one_equals_conditioning_on_all_that_was_drawn(process):
    rng = np.random.default_rng(3)
    grown = Fantasies.of(process, -0.8, PENDING[:1], rng).extended(PENDING[1:2], rng)
    for k in (0, 7):
        whole = process.condition(PENDING[:2], grown.Y[len(X) :, k])
        np.testing.assert_allclose(grown.predict(QUERY)[0][:, k], whole.predict(QUERY)[0], rtol=1e-8)
        np.testing.assert_allclose(grown.predict(QUERY)[1], whole.predict(QUERY)[1], rtol=1e-8)


def test_a_pending_point_is_not_worth_a_second_evaluation(process):
    before = MeanLogEI(Fantasies.of(process, -0.8, np.empty((0, 3)), np.random.default_rng(0)))(PENDING[:1])
    after = MeanLogEI(Fantasies.of(process, -0.8, PENDING[:1], np.random.default_rng(0)))(PENDING[:1])
    assert after[0] < before[0]


def test_belief_varies_by_what_one_evaluation_explains(process):
    """The variance of the mean after one more evaluation is what that takes from the variance."""
    fantasies = Fantasies.of(process, -0.8, PENDING, np.random.default_rng(1))
    mean, believed = Believed(fantasies, process.noise).predict(QUERY)
    now = fantasies.process
    left = [now.condition(x[None], np.zeros(1)).predict(x[None])[1][0] for x in QUERY]
    np.testing.assert_allclose(believed, now.predict(QUERY)[1] - left, rtol=1e-6)
    np.testing.assert_array_equal(mean, fantasies.predict(QUERY)[0])


def test_without_noise_belief_is_what_is_true(process):
    fantasies = Fantasies.of(process, -0.8, PENDING, np.random.default_rng(1))
    np.testing.assert_allclose(MeanLogEI(Believed(fantasies, 0.0))(QUERY), MeanLogEI(fantasies)(QUERY), rtol=1e-12)


def test_the_gradient_of_belief_is_its_slope(process):
    acquisition = MeanLogEI(Believed(Fantasies.of(process, -0.8, PENDING, np.random.default_rng(1)), process.noise))
    value, gradient = acquisition.with_gradient(QUERY)
    np.testing.assert_allclose(value, acquisition(QUERY), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(acquisition, QUERY), rtol=1e-4, atol=1e-6)


def test_measuring_the_best_point_again_is_worth_less_than_its_uncertainty_suggests(process):
    best = X[[int(np.argmin(process.mean_at(X)))]]
    target = float(process.mean_at(best)[0])
    fantasies = Fantasies.of(process, target, np.empty((0, 3)), np.random.default_rng(0))
    explained = process.predict(best)[1][0] / (process.predict(best)[1][0] + process.noise)
    gain = MeanLogEI(Believed(fantasies, process.noise))(best) - MeanLogEI(fantasies)(best)
    np.testing.assert_allclose(gain, 0.5 * np.log(explained), rtol=1e-6)  # at the target, EI is proportional to it


def test_affordability_adds_the_log_of_the_chance_and_its_slope(process):
    cost = gp.from_hyperparameters(X, 2.0 * X[:, 0], gp.Hyperparameters((0.0, 0.0, 0.5), -3.0))
    plain, left = LogEI(process, -0.8), 0.7
    weighed = IfAffordable(plain, cost, left)
    mean, variance = cost.predict(QUERY)
    chance = norm.cdf(left, loc=mean, scale=np.sqrt(variance))
    np.testing.assert_allclose(weighed(QUERY), plain(QUERY) + np.log(chance), rtol=1e-8)
    value, gradient = weighed.with_gradient(QUERY)
    np.testing.assert_allclose(value, weighed(QUERY), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(weighed, QUERY), rtol=1e-3, atol=1e-5)
