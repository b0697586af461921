"""The loss of the process over curves, against a dense density and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from farthing.surrogates.curves import unconstrained
from farthing.surrogates.curves.unconstrained import Hyperparameters, Loss, Probes
from oracles.falling_curves import T_MAX, every_kernel, hyperparameters, state


@every_kernel
def test_the_loss_is_the_marginal_likelihood_and_its_gradient_agrees_with_differences(kernel: str) -> None:
    X, t, y = state()
    y = (y - y.mean()) / y.std()
    loss = Loss(X, t / T_MAX, y, np.array([0, 1]), 2, kernel)
    theta = hyperparameters(kernel).theta + 0.1
    value, gradient = loss(theta)
    step = 1e-5 * np.eye(len(theta))
    np.testing.assert_allclose(gradient, [(loss(theta + e)[0] - loss(theta - e)[0]) / 2e-5 for e in step], atol=1e-5)

    def dense(theta: np.ndarray) -> float:
        """-log density at the best mean and variance, and the priors, less what does not depend on theta."""
        model = unconstrained.from_hyperparameters(
            X, t, y, Hyperparameters(kernel, tuple(theta[:2]), theta[2], tuple(theta[3:])), T_MAX
        )
        K = model.prior(Probes.values(X, t / T_MAX), Probes.values(X, t / T_MAX)) + np.exp(theta[2]) * np.eye(len(y))
        density = multivariate_normal(np.full(len(y), model.mean), model.variance * K).logpdf(y)
        z = (theta - loss.prior.mean) / loss.prior.sd
        # the prior on the variance: one observation at the variance of y, 1
        return -density + 0.5 * np.log(model.variance) + 0.5 / model.variance + 0.5 * float(z @ z)

    other = theta + 0.3
    assert value - loss(other)[0] == pytest.approx(dense(theta) - dense(other), abs=1e-6)
