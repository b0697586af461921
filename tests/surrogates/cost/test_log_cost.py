"""Costs as logs, features as logs, and processes on log costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

from farthing.errors import InvalidArgument
from farthing.surrogates import gp
from farthing.surrogates.cost import lines, log_cost
from farthing.surrogates.cost.choice import Average
from farthing.surrogates.cost.log_cost import CostProcess, LogFeatures, OnLogFeatures, logs

GROUPS = np.array([0, 1, 2, 2, 2, 3])


def drawn(n: int = 18, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, a choice of three, one number without effect."""
    rng = np.random.default_rng(seed)
    options = (rng.integers(3, size=n)[:, None] == np.arange(3)) / np.sqrt(2.0)
    Z = np.column_stack([rng.random((n, 2)), options, rng.random(n)])
    return Z, 2.0 * Z[:, 0] + np.sin(5.0 * Z[:, 1]) + Z[:, 3] + 0.1 * rng.standard_normal(n)


def variants(Z: np.ndarray, b: np.ndarray) -> dict[str, CostProcess]:
    line = lines.fit_sizes(Z, b, GROUPS)[2]
    return {
        "plain": log_cost.process(Z, b, GROUPS),
        "on a line": log_cost.process(Z, b, GROUPS, trend=line),
        "selected": log_cost.process(Z, b, GROUPS, selected=[1, 2]),
    }


VARIANTS = variants(*drawn())
every_variant = pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS.keys())


def test_zero_counts_as_a_tenth_of_the_smallest_positive_cost():
    np.testing.assert_allclose(logs(np.array([0.0, 1e-5, 1e3])), np.log([1e-6, 1e-5, 1e3]))
    np.testing.assert_allclose(logs(np.array([5e-324, 1e300])), np.log([5e-324, 1e300]))
    np.testing.assert_array_equal(logs(np.zeros(3)), np.zeros(3))


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_what_is_no_cost_is_refused(cost):
    with pytest.raises(InvalidArgument, match=f"costs: expected finite numbers of at least 0, got {cost}"):
        logs(np.array([1.0, cost]))


def test_log_features_are_the_scaled_logs_of_the_values():
    """Rising and falling ranges; a ratio of 1 leaves the column."""
    x = np.linspace(0.0, 1.0, 7)
    values = np.column_stack([4.0 + x * (64.0 - 4.0), 10.0 + x * (0.1 - 10.0)])
    wanted = np.log(values / values[0]) / np.log(values[-1] / values[0])
    Z = LogFeatures(np.array([16.0, 0.01, 1.0]))(np.column_stack([x, x, x]))
    np.testing.assert_allclose(Z, np.column_stack([wanted, x]), atol=1e-9)


def test_slopes_of_log_features_are_those_of_finite_differences():
    features, x = LogFeatures(np.array([16.0, 0.01, 1.0])), np.array([0.3, 0.6, 0.2])
    slope = approx_fprime(x, lambda at: features(at[None])[0], 1e-8).diagonal()
    np.testing.assert_allclose(features.slope(x[None])[0], slope, rtol=1e-5)


@every_variant
def test_gradients_are_those_of_finite_differences(model):
    mapped = OnLogFeatures(model, LogFeatures(np.array([30.0, 1.0, 1.0, 1.0, 1.0, 5.0])))
    for x in np.random.default_rng(5).random((4, 6)):
        mean, variance, mean_slope, variance_slope = (part[0] for part in mapped.predict_with_gradient(x[None]))
        assert (mean, variance) == pytest.approx([part[0] for part in mapped.predict(x[None])])
        for slope, part in ((mean_slope, 0), (variance_slope, 1)):
            wanted = approx_fprime(x, lambda at, part=part: mapped.predict(at[None])[part][0], 1e-6)
            np.testing.assert_allclose(slope, wanted, atol=1e-4)


def test_the_plain_process_is_the_exact_one_with_its_noise():
    Z, b = drawn()
    model, exact = VARIANTS["plain"], gp.fit(Z, b, GROUPS)
    np.testing.assert_allclose(model.predict(Z)[0], exact.predict(Z)[0])
    np.testing.assert_allclose(model.predict(Z)[1], exact.predict(Z)[1] + exact.noise)


def test_means_and_variances_of_line_and_residual_add():
    Z, b = drawn()
    model = VARIANTS["on a line"]
    assert model.trend is not None
    line, uncertain = model.trend.trend(Z)
    exact = gp.fit(Z, b - line, GROUPS)
    np.testing.assert_allclose(model.predict(Z)[0], line + exact.predict(Z)[0])
    np.testing.assert_allclose(model.predict(Z)[1], uncertain + exact.predict(Z)[1] + exact.noise)


def test_a_process_on_some_parameters_sees_no_others():
    Z, _ = drawn()
    elsewhere = Z.copy()
    elsewhere[:, [0, 5]] = 0.9
    for part, same in zip(VARIANTS["selected"].predict(Z), VARIANTS["selected"].predict(elsewhere), strict=True):
        np.testing.assert_array_equal(part, same)


@pytest.mark.parametrize("name", ["plain", "selected"])
def test_leaving_one_out_is_conditioning_without_it(name):
    _, b = drawn()
    whole = VARIANTS[name].process
    residuals, variance = VARIANTS[name].leave_one_out()
    K = whole.variance * gp.matern52(gp.squared_distances(whole._scaled, whole._scaled)) + whole.noise * np.eye(18)
    for i in (0, 7, 17):
        rest = np.arange(18) != i
        k = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        assert residuals[i] == pytest.approx(b[i] - whole.mean - k @ (b[rest] - whole.mean), abs=1e-7)
        assert variance[i] == pytest.approx(K[i, i] - k @ K[rest, i], rel=1e-6)
    expected = norm(0.0, np.sqrt(variance)).logpdf(residuals)
    np.testing.assert_allclose(VARIANTS[name].log_densities(), expected)


def test_leaving_one_out_refits_the_line_too(monkeypatch):
    """At the Huber weights and hyperparameters of the whole fit; the costs seen bend no mean here."""
    monkeypatch.setattr("farthing.surrogates.cost.lines.HUBER", 1e9)
    monkeypatch.setattr("farthing.surrogates.cost.lines.KAPPA", 1.0)
    monkeypatch.setattr(lines.LinearCost, "_bend", lambda self, mean: (mean, np.ones_like(mean)))
    Z, b = drawn()
    owned = [np.flatnonzero(np.equal(GROUPS, j)) for j in range(4)]
    line = lines.huber(Z, b, (0, 2), owned, np.ones(18))
    model = log_cost.process(Z, b, GROUPS, trend=line)
    whole = model.process
    residuals, variance = model.leave_one_out()
    K = whole.variance * gp.matern52(gp.squared_distances(whole._scaled, whole._scaled)) + whole.noise * np.eye(18)
    for i in range(18):
        rest = np.arange(18) != i
        without = lines.huber(Z[rest], b[rest], (0, 2), owned, np.ones(17))
        left = b - without.trend(Z)[0] - whole.mean
        k = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        assert residuals[i] == pytest.approx(left[i] - k @ left[rest], abs=1e-7)
        u = without.trend(Z[i : i + 1])[1][0] / without.noise
        assert variance[i] == pytest.approx(K[i, i] - k @ K[rest, i] + line.noise * u, rel=1e-6)


def test_without_a_refit_hyperparameters_stay():
    Z, b = drawn()
    warm = gp.Hyperparameters((0.1, 0.2, 0.3, 0.4), -3.0, 5)
    assert log_cost.process(Z, b, GROUPS, warm=warm, refit=False).process.hyperparameters == warm
    assert log_cost.process(Z, b, GROUPS, warm=warm).process.hyperparameters != warm


def test_a_line_carries_the_process_beyond_the_data():
    """Off the data a plain process goes back to its mean; on a line it goes on rising."""
    rng = np.random.default_rng(0)
    Z = 0.5 * rng.random((15, 2))
    b = 6.0 * Z[:, 0] + 0.05 * rng.standard_normal(15)
    on_line = log_cost.process(Z, b, trend=lines.fit(Z, b))
    corner = np.array([[0.8, 0.2]])
    assert on_line.predict(corner)[0][0] == pytest.approx(4.8, abs=0.5)


@pytest.mark.parametrize(
    "cost", [np.zeros(9), 10.0 ** np.linspace(-4, 4, 9), np.append(np.zeros(4), 10.0 ** np.arange(-3.0, 2.0))]
)
def test_zero_costs_and_eight_decades_survive(cost):
    Z = np.random.default_rng(0).random((9, 2))
    b = logs(cost)
    for model in (log_cost.process(Z, b), log_cost.process(Z, b, trend=lines.fit(Z, b)), lines.fit(Z, b)):
        for part in (*model.predict_with_gradient(Z), model.log_densities()):
            assert np.isfinite(part).all()


@pytest.mark.parametrize("with_trend", [False, True])
def test_the_mean_alone_is_the_mean_of_the_prediction(with_trend):
    """The short way, without variances, and its gradient."""
    rng = np.random.default_rng(3)
    Z, P = rng.random((20, 3)), rng.random((7, 3))
    b = np.sin(4.0 * Z[:, 0]) + 2.0 * Z[:, 2]
    line = lines.fit_sizes(Z, b)[3]
    process = log_cost.process(Z, b, trend=line if with_trend else None)
    average = Average((process, line), np.array([0.3, 0.7]))
    for model in (process, line, average, OnLogFeatures(average, LogFeatures(np.array([50.0, 1.0, 0.2])))):
        mean, _, slope, _ = model.predict_with_gradient(P)
        np.testing.assert_allclose(model.mean_at(P), mean, rtol=0, atol=1e-9)
        short, short_slope = model.mean_with_gradient(P)
        np.testing.assert_allclose(short, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(short_slope, slope, rtol=0, atol=1e-9)
