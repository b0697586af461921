"""The loss of a process between bounds, against densities written out, and its gradient against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from farthing.surrogates import gp
from farthing.surrogates.two_fidelity.bounded import (
    MEAN_SD,
    MOST_OUTSIDE,
    Estimation,
    GaussianGP,
    Loss,
    Observations,
    best_theta,
    process,
)
from oracles import dense_gp

INF = np.inf
N, BOXED = 9, 6
THETA = np.array([-0.3, 0.4, -4.0, -0.6, -0.8])  # two scales, noise, mean, variance


def gaussian(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (((A[:, None, :] - B[None, :, :]) / scales) ** 2).sum(axis=2))


DENSE = {"matern52": dense_gp.kernel, "gaussian": gaussian}
every_kernel = pytest.mark.parametrize("kernel", ["matern52", "gaussian"])


def data(bounds=(-INF, INF), *, rho: float | None = 1.0, imputed: bool = False, boxed: int = BOXED) -> Observations:
    rng = np.random.default_rng(0)
    X, low = rng.random((N, 3)), rng.normal(size=N)
    d = -0.9 + 0.5 * np.sin(3.0 * X[:, 0])  # in (-0.9, -0.4)
    extra = np.zeros((N, N))
    extra[boxed:, boxed:] = 0.02 + 0.1 * np.eye(N - boxed)
    return Observations(X, low + d, low, np.array([0, 1, 1]), rho, bounds, boxed, extra if imputed else None)


def dense_covariance(case: Observations, theta: np.ndarray, kernel: str) -> np.ndarray:
    scales = np.exp(theta[:2])[case.groups]
    C = np.exp(theta[4]) * (DENSE[kernel](case.X, case.X, scales) + np.exp(theta[2]) * np.eye(len(case.y)))
    return C if case.extra is None else C + case.extra


def priors(theta: np.ndarray, bounded: bool) -> float:
    """Scales, noise, variance (less its constant) and, between bounds, the mean."""
    scales = ((theta[:2] - np.sqrt(2.0) - np.log(2.0) / 2.0) ** 2).sum() / 6.0
    noise = (theta[2] - gp.LOG_NOISE_MEAN) ** 2 / (2.0 * gp.LOG_NOISE_SD**2)
    variance = 0.5 * (theta[4] + np.exp(-theta[4]))
    return float(scales + noise + variance + bounded * theta[3] ** 2 / (2.0 * MEAN_SD**2))


def box(K: np.ndarray, mean: float, lower: float, upper: float) -> float:
    """Z by SciPy."""
    n = len(K)
    limits = np.full(n, lower), np.full(n, upper)
    accuracy = {"maxpts": 400_000, "abseps": 1e-7, "releps": 1e-7}
    return float(multivariate_normal.cdf(limits[1], np.full(n, mean), K, lower_limit=limits[0], **accuracy))


@every_kernel
@pytest.mark.parametrize("bounds", [(-1.0, 0.0), (-INF, 0.0), (-1.5, INF), (-1.0, -0.35)])
@pytest.mark.parametrize("imputed", [False, True])
def test_the_loss_is_minus_the_log_density_of_a_normal_cut_to_the_box(kernel, bounds, imputed):
    """Lemma 1, Eq. (3.5), by SciPy's density and its box probability."""
    case = data(bounds, imputed=imputed)
    C = dense_covariance(case, THETA, kernel)
    d = case.y - case.low
    log_density = multivariate_normal.logpdf(d, np.full(N, THETA[3]), C)
    log_z = np.log(box(C[:BOXED, :BOXED], THETA[3], *bounds))
    expected = -(log_density + 0.5 * N * np.log(2.0 * np.pi)) + log_z + priors(THETA, True)
    assert Loss(case, kernel, points=2**13)(THETA)[0] == pytest.approx(expected, abs=2e-3)
    assert Loss(case, kernel)(THETA)[0] == pytest.approx(expected, abs=0.03)  # the points a fit uses


@every_kernel
def test_both_levels_split_the_density_of_the_whole(kernel):
    """Lemma 1: log p(y_e, y_c) of the autoregressive model is the low level's part plus that of the bias."""
    rng = np.random.default_rng(3)
    rho, X = 0.7, rng.random((7, 2))
    C_e = 1.3 * (DENSE[kernel](X, X, np.array([0.5, 0.8])) + 0.01 * np.eye(7))
    theta = np.array([-0.2, 0.3, -3.0, -0.6, -0.8])
    n = 4  # the first four were completed
    case = Observations(X[:n], np.zeros(n), np.zeros(n), np.arange(2), rho, (-2.0, 0.5), n, np.zeros((n, n)))
    C_d = dense_covariance(case, theta, kernel)
    y_e = rng.multivariate_normal(np.full(7, 2.0), C_e)
    d = rng.uniform(-1.5, 0.2, n)
    y_c = rho * y_e[:n] + d
    A = np.eye(n, 7)  # picks the completed
    joint = np.block([[C_e, rho * C_e @ A.T], [rho * A @ C_e, rho**2 * A @ C_e @ A.T + C_d]])
    mean = np.concatenate([np.full(7, 2.0), np.full(n, rho * 2.0 + theta[3])])
    whole = multivariate_normal.logpdf(np.concatenate([y_e, y_c]), mean, joint) - np.log(box(C_d, theta[3], -2.0, 0.5))
    low = multivariate_normal.logpdf(y_e, np.full(7, 2.0), C_e)
    loss = Loss(replace(case, y=y_c, low=y_e[:n]), kernel, points=2**13)(theta)[0]
    bias = -(loss - priors(theta, True)) - 0.5 * n * np.log(2.0 * np.pi)
    assert low + bias == pytest.approx(whole, abs=2e-3)


CASES = {
    "closed forms": data(),
    "closed forms, rho free": data(rho=None),
    "between bounds": data((-1.0, 0.0)),
    "one bound": data((-INF, 0.0)),
    "bounds, rho free": data((-1.0, 0.0), rho=None),
    "bounds, rho at its end": replace(data((-1.0, 0.0), rho=None), factors=(1.3, 1.4)),
    "imputed": data(imputed=True),
    "imputed, bounds": data((-1.0, 0.0), imputed=True),
    "imputed, bounds, rho free": data((-1.0, 0.0), imputed=True, rho=None),
    "nothing boxed": data((-1.0, 0.0), imputed=True, boxed=0),
}


@every_kernel
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("noise", [-8.0, -4.0, 0.5])
def test_the_gradient_of_the_loss_is_its_central_difference(case, kernel, noise):
    theta = THETA[:3] if case.has_closed_forms else THETA
    theta = np.where(np.arange(len(theta)) == 2, noise, theta)
    loss, h = Loss(case, kernel), 1e-5
    gradient = loss(theta)[1]
    for j, e in enumerate(h * np.eye(len(theta))):
        expected = (loss(theta + e)[0] - loss(theta - e)[0]) / (2.0 * h)
        assert gradient[j] == pytest.approx(expected, rel=2e-5, abs=2e-5), j


def test_without_bounds_the_loss_is_that_of_a_plain_process():
    """The same value as in `gp`, but for the constant its closed form leaves out."""
    case = data(rho=0.0)
    z = dense_gp.standardised(case.y)
    ours, theirs = Loss(replace(case, y=z)), gp.Loss(case.X, z, case.groups, 2)
    thetas = [np.array([0.2, -0.5, -6.0]), np.array([1.0, 0.3, -2.0]), np.array([-1.0, 2.0, 0.5])]
    gaps = [ours(theta)[0] - theirs(theta)[0] for theta in thetas]
    assert gaps == pytest.approx([gaps[0]] * 3, abs=1e-9)
    for theta in thetas:
        np.testing.assert_allclose(ours(theta)[1], theirs(theta)[1], rtol=1e-7, atol=1e-9)


def test_closed_forms_are_where_the_open_loss_is_least():
    """Mean and variance of the closed form have no slope in the loss that leaves them open."""
    closed = data(rho=0.8)
    parts = Loss(closed).profiled(THETA[:3])
    opened = replace(closed, extra=np.zeros((N, N)))
    gradient = Loss(opened)(np.append(THETA[:3], [parts.mean, np.log(parts.variance)]))[1]
    np.testing.assert_allclose(gradient[3:], 0.0, atol=1e-7)


@pytest.mark.parametrize("bounds", [(-INF, INF), (-5.0, 5.0)])
def test_a_free_factor_is_the_best_of_all(bounds):
    case = data(bounds, rho=None)
    theta = THETA[:3] if case.has_closed_forms else THETA
    loss = Loss(case)
    best = loss.profiled(theta).rho
    for other in (best - 0.01, best + 0.01):
        assert Loss(replace(case, rho=other))(theta)[0] > loss(theta)[0]


def test_a_free_factor_stays_in_its_range():
    best = Loss(data((-1.0, 0.0), rho=None)).profiled(THETA).rho
    for ends in ((best + 0.1, best + 0.2), (best - 0.2, best - 0.1)):
        case = replace(data((-1.0, 0.0), rho=None), factors=ends)
        assert Loss(case).profiled(THETA).rho == min(ends, key=lambda end: abs(end - best))


def test_bounds_far_away_change_nothing():
    near = data(imputed=True)
    for bounds in ((-1e3, 1e3), (-INF, 1e3)):
        value, gradient = Loss(replace(near, bounds=bounds))(THETA)
        plain, slope = Loss(near)(THETA)
        prior = THETA[3] ** 2 / (2.0 * MEAN_SD**2)
        assert value - prior == pytest.approx(plain, abs=1e-12)
        np.testing.assert_allclose(np.delete(gradient, 3), np.delete(slope, 3), atol=1e-10)


class TestAMeanFarOutsideOfTheBounds:
    """A likelihood alone has no prior that keeps the mean near: Z becomes too small to be estimated."""

    EXACT = Estimation(priors=False, noise=False)
    SCALES = ([6.9, -0.3], [1.5, 1.5], [0.0, 0.0], [-2.0, -2.0])

    def loss(self, bounds=(-1.0, 0.0), points: int = 256) -> Loss:
        X = np.random.default_rng(2).random((12, 2))
        d = -0.5 + 0.4 * np.sin(3.0 * X[:, 1])
        case = Observations(X, d, np.zeros(12), np.arange(2), 0.0, bounds, 12)
        return Loss(case, "gaussian", points, self.EXACT)

    @pytest.mark.parametrize("scales", SCALES, ids=str)
    @pytest.mark.parametrize(("mean", "variance"), [(20.0, 1e-6), (-20.0, 1e-6), (10.0, 1e-4), (3.0, 1e-3)])
    def test_the_loss_is_infinite_there(self, scales, mean, variance):
        """One of -3e10 would be the best of all fits."""
        theta = np.array([*scales, np.log(1e-8), mean, np.log(variance)])
        assert self.loss()(theta)[0] == np.inf
        if mean > 0.0:
            assert self.loss((-INF, 0.0))(theta)[0] == np.inf
        else:  # inside
            assert np.isfinite(self.loss((-INF, 0.0))(theta)[0])

    @pytest.mark.parametrize("scales", SCALES, ids=str)
    @pytest.mark.parametrize("log_variance", [-8.0, -2.0, 2.0])
    def test_elsewhere_few_points_say_what_many_say(self, scales, log_variance):
        for share in (0.0, 0.5, 0.999):
            mean = share * MOST_OUTSIDE * np.exp(0.5 * log_variance)
            theta = np.array([*scales, np.log(1e-8), mean, log_variance])
            assert self.loss()(theta)[0] == pytest.approx(self.loss(points=2**13)(theta)[0], abs=0.6)

    def test_a_search_that_begins_there_comes_back(self):
        begin = np.array([6.9, -0.3, np.log(1e-8), 20.0, np.log(1e-6)])
        loss = self.loss()
        warm, cold = (best_theta(loss.data, "gaussian", begin, is_cold, self.EXACT) for is_cold in (False, True))
        usual = loss(best_theta(loss.data, "gaussian", None, True, self.EXACT))[0]
        assert loss(loss.begun(begin))[0] > loss(warm)[0] + 1e3
        assert loss(cold)[0] < usual + 0.1


@pytest.mark.parametrize("name", ["closed forms", "between bounds", "imputed, bounds, rho free"])
def test_a_search_ends_below_its_starts_and_a_warm_one_where_it_began(name):
    case = CASES[name]
    loss = Loss(case)
    cold = best_theta(case, "matern52", None, True)
    start = THETA[:3] if case.has_closed_forms else THETA
    assert loss(cold)[0] < loss(start)[0]
    warm = best_theta(case, "matern52", cold, False)
    assert loss(warm)[0] <= loss(cold)[0] + 1e-9


class TestTheGaussianKernel:
    """GaussianGP is the process of `gp` in everything but the kernel."""

    def model(self) -> tuple[GaussianGP, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(1)
        X = rng.random((8, 2))
        y = 3.0 + np.sin(4.0 * X[:, 0])
        h = gp.Hyperparameters((-0.5, 0.1), -5.0)
        model = process("gaussian", X, y, np.arange(2), h, 2.8, 0.6)
        assert isinstance(model, GaussianGP)
        return model, np.exp([-0.5, 0.1]), rng.random((15, 2))

    def dense(self, model, scales, P) -> tuple[np.ndarray, np.ndarray]:
        K = gaussian(model.X, model.X, scales) + np.exp(-5.0) * np.eye(len(model.X))
        cross = gaussian(P, model.X, scales)
        mean = 2.8 + cross @ np.linalg.solve(K, model.y - 2.8)
        return mean, 0.6 * (gaussian(P, P, scales) - cross @ np.linalg.solve(K, cross.T))

    def test_its_posterior_is_that_of_dense_algebra(self):
        model, scales, P = self.model()
        mean, covariance = self.dense(model, scales, P)
        np.testing.assert_allclose(model.predict(P)[0], mean, atol=1e-9)
        np.testing.assert_allclose(model.predict(P)[1], np.diag(covariance), atol=1e-9)
        np.testing.assert_allclose(model.covariance(P)[0], mean, atol=1e-9)
        np.testing.assert_allclose(model.covariance(P)[1], covariance, atol=1e-9)
        np.testing.assert_allclose(model.mean_at(P), mean, atol=1e-9)
        np.testing.assert_allclose(model.mean_with_gradient(P)[0], mean, atol=1e-9)

    def test_its_gradients_are_central_differences(self):
        model, _, P = self.model()
        mean, variance, mean_slope, variance_slope = model.predict_with_gradient(P)
        np.testing.assert_allclose((mean, variance), model.predict(P), rtol=1e-9)
        for j, e in enumerate(1e-5 * np.eye(2)):
            up, down = np.array(model.predict(P + e)), np.array(model.predict(P - e))
            np.testing.assert_allclose(np.array([mean_slope, variance_slope])[:, :, j], (up - down) / 2e-5, atol=1e-6)

    def test_conditioning_is_having_seen_all_the_data_at_once(self):
        model, scales, P = self.model()
        X_new, y_new = np.array([[0.2, 0.9], [0.6, 0.1]]), np.array([3.0, 2.0])
        grown = model.condition(X_new, y_new)
        mean, covariance = self.dense(grown, scales, P)
        assert isinstance(grown, GaussianGP)
        np.testing.assert_allclose(grown.predict(P)[0], mean, atol=1e-8)
        np.testing.assert_allclose(grown.predict(P)[1], np.diag(covariance), atol=1e-8)
