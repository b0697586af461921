"""The average of cost models, against draws and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from farthing.surrogates.cost import log_cost
from farthing.surrogates.cost.choice import Average


class Normal(log_cost.CostModel):
    """A model that says the same mean + slope . x and variance everywhere."""

    def __init__(self, mean: float, slope: float, variance: float) -> None:
        self.mean, self.slope, self.variance = mean, slope, variance

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.mean + self.slope * X[:, 0], self.variance + 0.1 * X[:, 1]

    def predict_with_gradient(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        zero = np.zeros(len(X))
        mean_slope = np.column_stack([zero + self.slope, zero])
        return *self.predict(X), mean_slope, np.column_stack([zero, zero + 0.1])


def test_mean_and_variance_are_those_of_the_mixture():
    average = Average((Normal(0.0, 1.0, 0.5), Normal(3.0, -1.0, 0.1)), np.array([0.7, 0.3]))
    x = np.array([[0.4, 0.2]])
    rng = np.random.default_rng(0)
    first = rng.random(400_000) < 0.7
    means, variances = zip(*(model.predict(x) for model in average.models), strict=True)
    draws = np.where(
        first,
        rng.normal(means[0][0], np.sqrt(variances[0][0]), len(first)),
        rng.normal(means[1][0], np.sqrt(variances[1][0]), len(first)),
    )
    mean, variance = average.predict(x)
    assert mean[0] == pytest.approx(draws.mean(), abs=0.01)
    assert variance[0] == pytest.approx(draws.var(), rel=0.01)


def test_gradients_of_the_mixture_are_those_of_finite_differences():
    average = Average((Normal(0.0, 1.0, 0.5), Normal(3.0, -1.0, 0.1), Normal(1.0, 2.0, 0.3)), np.array([0.5, 0.3, 0.2]))
    x = np.array([0.4, 0.2])
    _, _, mean_slope, variance_slope = average.predict_with_gradient(x[None])
    for slope, part in ((mean_slope, 0), (variance_slope, 1)):
        wanted = approx_fprime(x, lambda at, part=part: average.predict(at[None])[part][0], 1e-7)
        np.testing.assert_allclose(slope[0], wanted, atol=1e-5)
