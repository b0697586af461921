"""Earlier studies' offset, scale and weight: against brute force, on pairs made for it, and with a misleading one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from farthing.acquisitions.improvement import MeanLogEI
from farthing.surrogates import fitting, gp, trended
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.outputs import Warp
from farthing.surrogates.trended import SCALE_SD, Earlier, Trend, believed, trend_of

GROUPS = np.arange(2)


def valley(X, at=0.6):
    return (X[:, 0] - at) ** 2 + 0.5 * np.sin(4 * X[:, 1])


def earlier(f=valley, n=40, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return Earlier.of(X, f(X), GROUPS, GROUPS)


def own_process(f, n, seed=1):
    """As a study has it: of warped values."""
    X = np.random.default_rng(seed).random((n, 2))
    return gp.fit(X, Warp.of(f(X))(f(X)), GROUPS, None, fitting.MEDIUM)


def error_at(model, f):
    """Root mean squared error of predictions elsewhere, in standard deviations of the truth."""
    new = np.random.default_rng(9).random((200, 2))
    truth = Warp.of(f(model.X))(f(new))
    return float(np.sqrt(np.mean((model.mean_at(new) - truth) ** 2)) / truth.std())


def test_each_value_is_predicted_from_the_others_as_by_brute_force() -> None:
    """C is built in full, one row is left out at a time; offset and variance are those of all values."""
    own, m = own_process(valley, 9), np.random.default_rng(5).standard_normal(9)
    z = gp.standardised(own.y)[0]
    C = own.L @ own.L.T + SCALE_SD**2 * np.outer(m, m)
    one, rest, P = np.ones(9), z - m, np.linalg.inv(C)
    offset = one @ P @ rest / (one @ P @ one)
    r = rest - offset
    variance = (r @ P @ r + 1.0) / (9 + 1.0)
    expected = []
    for i in range(9):
        others = np.delete(np.arange(9), i)
        solved = np.linalg.solve(C[np.ix_(others, others)], C[others, i])
        error, spread2 = r[i] - solved @ r[others], variance * (C[i, i] - solved @ C[others, i])
        expected.append(-0.5 * (error**2 / spread2 + np.log(2 * np.pi * spread2)))
    densities, scale = trended._left_out(own, z, m)
    np.testing.assert_allclose(densities, expected, rtol=1e-7)
    assert scale == pytest.approx(1.0 + SCALE_SD**2 * m @ P @ r)


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (50.0, 1e-3), (-2.0, 300.0)])
def test_offset_and_scale_of_a_related_study_are_learned(offset, scale) -> None:
    """With 8 values of the same function in other units, predictions elsewhere have less than half the error of those
    without the earlier study."""

    def truth(X):
        return offset + scale * valley(X)

    own = own_process(truth, 8)
    trend = trend_of(own, [earlier()])
    assert trend is not None
    assert error_at(trended.trended(own, trend), truth) < 0.5 * error_at(own, truth)


def test_a_misleading_study_is_outvoted_by_a_good_one_and_by_the_values_themselves() -> None:
    noise = np.random.default_rng(2)
    X = noise.random((40, 2))
    shuffled = Earlier.of(X, noise.permutation(valley(X)), GROUPS, GROUPS)
    own = own_process(valley, 10)
    weights, scales = believed(own, np.column_stack([s.at(own.X) for s in (earlier(), shuffled)]))
    assert weights[0] > 0.9
    assert scales[0] > 0.5
    assert weights[1] * scales[1] < 0.01
    alone = trend_of(own, [shuffled])
    if alone is not None:
        assert error_at(trended.trended(own, alone), valley) < 1.1 * error_at(own, valley)


def test_the_opposite_of_the_values_is_not_believed() -> None:
    own = own_process(valley, 10)
    assert trend_of(own, [earlier(lambda X: -valley(X))]) is None


def test_without_earlier_studies_there_is_no_trend() -> None:
    assert trend_of(own_process(valley, 5), []) is None


def test_gradients_are_those_of_finite_differences_also_with_running_trials() -> None:
    own = own_process(lambda X: valley(X, 0.5), 7)
    trend = Trend((earlier(), earlier(seed=4)), (0.4, 0.3))
    model = trended.trended(own, trend)
    pending = np.array([[0.2, 0.9], [0.7, 0.1]])
    ei = MeanLogEI(Fantasies.of(model, float(model.y.min()), pending, np.random.default_rng(0)))
    X, h = np.array([[0.31, 0.52], [0.8, 0.33]]), 1e-6
    for f, slope in (
        (lambda X: model.predict(X)[0], model.predict_with_gradient(X)[2]),
        (lambda X: model.mean_at(X), model.mean_with_gradient(X)[1]),
        (lambda X: model.predict(X)[1], model.predict_with_gradient(X)[3]),
        (ei, ei.with_gradient(X)[1]),
    ):
        numeric = np.column_stack([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(2)])
        np.testing.assert_allclose(slope, numeric, rtol=2e-4, atol=1e-6)


def test_fantasies_of_a_trended_process_are_those_of_its_residuals_and_the_trend() -> None:
    own = own_process(lambda X: valley(X, 0.5), 7)
    trend = Trend((earlier(),), (0.4,))
    model, pending, new = trended.trended(own, trend), np.array([[0.2, 0.9]]), np.array([[0.5, 0.4], [0.2, 0.8]])
    residual = gp.from_hyperparameters(own.X, own.y - trend.at(own.X), model.hyperparameters, GROUPS)
    plain = replace(residual, variance=own.variance)
    target = float(model.y.min())
    whole, rest = (Fantasies.of(m, target, pending, np.random.default_rng(0)) for m in (model, plain))
    np.testing.assert_allclose(whole.predict(new)[0], rest.predict(new)[0] + trend.at(new)[:, None], rtol=1e-9)
    np.testing.assert_allclose(whole.predict(new)[1], rest.predict(new)[1], rtol=1e-9)
    grown = whole.extended(new[:1], np.random.default_rng(1))
    again = rest.extended(new[:1], np.random.default_rng(1))
    np.testing.assert_allclose(grown.Y[-1], again.Y[-1] + trend.at(new[:1]), rtol=1e-9)
