"""The cost process over configurations and steps: its loss, and what it does with odd data."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.cost import linear_in_steps
from farthing.surrogates.cost.linear_in_steps import LEAST_SHARE, MOST_VARIANCE, LinearInSteps, Loss


def data(n: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, t = rng.random((n, 3)), rng.integers(1, 51, n).astype(float)
    return X, t, t * (1.0 + X[:, 0]) + rng.normal(size=n)


def loss_of(X: np.ndarray, t: np.ndarray, b: np.ndarray) -> Loss:
    return Loss(X, b, linear_in_steps.noise_of(t), np.array([0, 1, 1]), 2)


class TestLoss:
    def test_its_gradient_is_that_of_finite_differences(self):
        X, t, c = data()
        loss = loss_of(X, t, (c / t - 1.5) / 0.4)
        for theta in (np.array([0.3, -0.5, -4.0]), np.array([-1.0, 1.0, -8.0]), np.array([2.0, 2.0, 1.0])):
            steps = 1e-5 * np.eye(3)
            found = [(loss(theta + e)[0] - loss(theta - e)[0]) / 2e-5 for e in steps]
            np.testing.assert_allclose(loss(theta)[1], found, rtol=1e-5, atol=1e-6)

    def test_it_is_the_density_of_the_total_costs(self):
        """Up to a constant: minus the log density of c under K_c = v K_x t t' + sigma^2, at the best mean and v."""
        X, t, c = data()
        b = (c / t - 1.5) / 0.4
        loss = loss_of(X, t, b)
        thetas = [np.array([0.3, -0.5, -4.0]), np.array([-0.5, 0.5, -2.0])]

        def density(theta: np.ndarray) -> float:
            distance = (((X[:, None] - X) / np.exp(theta[:2])[[0, 1, 1]]) ** 2).sum(axis=2)
            K = np.exp(-0.5 * distance) * np.outer(t, t) + np.exp(theta[2]) * t.max() ** 2 * np.eye(len(t))
            weights = np.linalg.solve(K, t)
            residual = t * b - t * (weights @ (t * b)) / (weights @ t)
            q = residual @ np.linalg.solve(K, residual)
            return (len(t) + 1.0) / 2.0 * np.log(q + 1.0) + np.linalg.slogdet(K)[1] / 2.0 + loss.prior(theta)[0]

        assert loss(thetas[0])[0] - loss(thetas[1])[0] == pytest.approx(density(thetas[0]) - density(thetas[1]))


class TestModel:
    def test_the_mean_cost_is_that_of_the_process(self):
        X, t, c = data()
        model = LinearInSteps.of(X, t, c)
        mean, variance = model.predict(X)
        np.testing.assert_allclose(np.exp(mean + 0.5 * variance), model.process.predict(X)[0], rtol=1e-9)

    def test_units_of_cost_and_of_steps_do_not_matter(self):
        X, t, c = data()
        one, other = LinearInSteps.of(X, t, c), LinearInSteps.of(X, 1e3 * t, 1e6 * c)
        asked = np.random.default_rng(1).random((5, 3))
        np.testing.assert_allclose(one.predict(asked)[0] + np.log(1e3), other.predict(asked)[0], rtol=1e-4)

    @pytest.mark.parametrize(
        ("t", "c"),
        [([3.0], [6.0]), ([1.0, 50.0], [0.0, 0.0]), ([2.0, 2.0, 2.0], [4.0, 4.0, 4.0]), ([1.0, 9.0], [1e-9, 1e12])],
        ids=["one run", "free", "equal", "far apart"],
    )
    def test_odd_costs_give_finite_predictions(self, t, c):
        X = np.linspace(0.0, 1.0, len(t))[:, None]
        mean, variance = LinearInSteps.of(X, np.array(t), np.array(c)).predict(np.array([[0.0], [0.5], [30.0]]))
        assert np.all(np.isfinite(mean))
        assert np.all((variance >= 0.0) & (variance <= MOST_VARIANCE))

    def test_costs_stay_positive_where_the_process_is_not(self):
        X = np.array([[0.0], [0.1], [0.2], [0.3]])
        model = LinearInSteps.of(X, np.full(4, 10.0), np.array([400.0, 300.0, 200.0, 100.0]))
        assert model.process.predict(np.array([[0.5]]))[0][0] < 0.0
        mean, variance = model.predict(np.array([[0.5]]))
        assert np.exp(mean[0] + 0.5 * variance[0]) == pytest.approx(LEAST_SHARE * 10.0)
