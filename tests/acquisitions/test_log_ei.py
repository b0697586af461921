"""log EI against quadrature and Monte Carlo, its gradient against finite differences, down to the deepest tail."""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from farthing.surrogates import gp
from oracles.log_ei import LogEI


@dataclass(frozen=True)
class Tilted:
    """A posterior in closed form: mean = level + tilt . x, log variance = log_variance + bend . x."""

    level: float
    tilt: np.ndarray
    log_variance: float
    bend: np.ndarray

    def predict(self, X):
        return self.level + X @ self.tilt, np.exp(self.log_variance + X @ self.bend)

    def predict_with_gradient(self, X):
        mean, variance = self.predict(X)
        return mean, variance, np.tile(self.tilt, (len(X), 1)), variance[:, None] * self.bend


def fitted(seed: int, d: int = 2, n: int = 12) -> gp.GP:
    rng = np.random.default_rng([seed, d, n])
    X = rng.random((n, d))
    return gp.fit(X, np.sin(5.0 * X @ rng.standard_normal(d)) + 0.05 * rng.standard_normal(n))


def constant(mean: float, sd: float) -> Tilted:
    return Tilted(mean, np.zeros(1), 2.0 * np.log(sd), np.zeros(1))


@pytest.mark.parametrize("sd", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("z", [-40.0, -15.0, -5.0, -1.0, 0.0, 0.5, 3.0, 10.0])
def test_log_ei_is_the_log_of_the_integral_of_the_improvement(z, sd):
    """The integral of (t - y)+ under a normal by quadrature in 30 digits, from certain gain to z = -40."""
    mean, context = 2.0, mpmath.mp.clone()
    context.dps = 30
    target = mean + z * sd
    exact_z = (context.mpf(target) - mean) / context.mpf(sd)  # the target is rounded; the tail would see it
    nodes = [0, 0.01, 0.1, 0.5, 2, 10, 60]
    integral = context.quad(lambda gain: gain * context.npdf(exact_z - gain), nodes)
    value = LogEI(constant(mean, sd), target)(np.zeros((1, 1)))[0]
    assert value == pytest.approx(float(context.log(integral) + context.log(sd)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_ei_is_the_mean_improvement_of_draws_from_the_posterior(seed):
    """Monte Carlo on a fitted process, within five of its own standard errors."""
    model, rng = fitted(seed), np.random.default_rng(seed)
    P, target = rng.random((20, 2)), float(model.y.min())
    mean, variance = model.predict(P)
    draws = mean + np.sqrt(variance) * rng.standard_normal((40_000, 20))
    gains = np.maximum(target - draws, 0.0)
    error = gains.std(axis=0) / np.sqrt(len(gains))
    seen = (gains > 0.0).sum(axis=0) > 100  # below, the standard error knows nothing
    assert seen.sum() >= 5
    ei = np.exp(LogEI(model, target)(P))
    assert (np.abs(ei - gains.mean(axis=0))[seen] <= 5.0 * error[seen]).all()


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("below", [-1.0, 0.0, 0.5, 3.0])
def test_the_gradient_on_a_fitted_process_is_its_central_difference(d, below):
    """With the target at the best mean, above it, and so far below that improving is next to impossible."""
    model, h = fitted(0, d, 15), 1e-5
    P = np.random.default_rng(d).random((25, d))
    acquisition = LogEI(model, float(model.predict(model.X)[0].min()) - below)
    values, slopes = acquisition.with_gradient(P)
    np.testing.assert_allclose(values, acquisition(P), rtol=1e-9, atol=1e-9)
    for j in range(d):
        e = h * np.eye(d)[j]
        expected = (acquisition(P + e) - acquisition(P - e)) / (2.0 * h)
        np.testing.assert_allclose(slopes[:, j], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("z", [-1000.0, -40.0, -13.0, -11.0, -1.5, -0.5, 0.0, 4.0, 30.0])
def test_the_gradient_is_right_in_every_branch_and_deep_in_the_tail(z):
    """Mean and variance both move; at z = -40, EI is 1e-352 and its logarithm must still have a direction."""
    surrogate = Tilted(1.0, np.array([0.7, -0.2, 0.0]), np.log(0.04), np.array([0.3, 0.0, -0.5]))
    x, h = np.array([[0.4, 0.6, 0.5]]), 1e-5
    mean, variance = surrogate.predict(x)
    acquisition = LogEI(surrogate, float(mean[0] + z * np.sqrt(variance[0])))
    _, slope = acquisition.with_gradient(x)
    for j, e in enumerate(h * np.eye(3)):
        expected = (acquisition(x + e) - acquisition(x - e)) / (2.0 * h)
        assert slope[0, j] == pytest.approx(expected[0], rel=1e-5, abs=1e-6)


def test_a_larger_target_is_easier_to_beat():
    model, P = fitted(1), np.random.default_rng(0).random((30, 2))
    spread = float(np.ptp(model.y))
    targets = model.y.min() + spread * np.concatenate([-np.logspace(3, -3, 20), np.linspace(0.0, 2.0, 20)])
    values = np.array([LogEI(model, float(target))(P) for target in targets])
    assert np.isfinite(values).all()
    assert (np.diff(values, axis=0) > 0.0).all()


@pytest.mark.parametrize("z", [-30.0, -3.0, 0.0, 3.0])
def test_a_lower_mean_and_a_wider_posterior_promise_more(z):
    means, sds = np.linspace(-1.0, 1.0, 20), np.linspace(0.5, 2.0, 20)
    origin = np.zeros((1, 1))
    by_mean = [LogEI(constant(mean, 1.0), z)(origin)[0] for mean in means]
    by_sd = [LogEI(constant(0.0, sd), z)(origin)[0] for sd in sds]
    assert (np.diff(by_mean) < 0.0).all()
    assert (np.diff(by_sd) > 0.0).all()


def test_units_only_shift_log_ei():
    """EI is in the units of the value: ten times the value, log 10 more everywhere, the same maximiser."""
    model, P = fitted(2), np.random.default_rng(0).random((30, 2))
    scaled = gp.from_hyperparameters(model.X, 10.0 * model.y, model.hyperparameters)
    target = float(model.y.min())
    np.testing.assert_allclose(LogEI(scaled, 10.0 * target)(P), LogEI(model, target)(P) + np.log(10.0), rtol=1e-7)


def test_observed_points_without_noise_promise_least_but_stay_finite():
    X = np.linspace(0.0, 1.0, 6)[:, None]
    model = gp.from_hyperparameters(X, np.cos(4.0 * X[:, 0]), gp.Hyperparameters((np.log(0.3),), np.log(1e-8)))
    acquisition = LogEI(model, float(model.y.min()))
    values, slopes = acquisition.with_gradient(np.concatenate([X, X + 0.1]))
    assert np.isfinite(values).all()
    assert np.isfinite(slopes).all()
    assert values[:6].max() < values[6:].max() - 3.0


def test_constant_values_leave_exploring_as_the_only_promise():
    """Nothing is known to be better: the point of largest variance is the point of largest EI."""
    X = np.random.default_rng(0).random((5, 2))
    model, P = gp.fit(X, np.full(5, 3.0)), np.random.default_rng(1).random((50, 2))
    values = LogEI(model, float(model.predict(X)[0].min()))(P)
    assert np.argmax(values) == np.argmax(model.predict(P)[1])
