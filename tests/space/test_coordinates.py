"""The way back from features to unit coordinates, and functions of configurations as models of features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import farthing as ft
from farthing.policies.cost_models import STEP, CostOfConfig
from strategies import spaces_with_rows

BOOSTER = ft.Space(
    eta=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 16),
    booster=ft.Choice(["gbtree", "dart", "gblinear"]),
    drop=ft.Real(0.0, 0.5, when={"booster": "dart"}),
    bins=ft.Ordered([16, 64, 256]),
    mild=ft.Choice([False, True]),
)


@settings(max_examples=60, deadline=None)
@given(spaces_with_rows(most=4))
def test_coordinates_are_the_inverse_of_features(drawn):
    space, U = drawn
    F = space.features(U)
    np.testing.assert_array_equal(space.features(space.coordinates(F)), F)


@settings(max_examples=60, deadline=None)
@given(spaces_with_rows(most=4))
def test_coordinates_lead_back_to_the_same_configuration(drawn):
    """But for Ordered numbers so close that they have one position between them: models cannot tell those apart."""
    space, U = drawn
    for param in space.params.values():
        if isinstance(param, ft.Ordered) and len(set(param.positions.tolist())) < param.levels:
            return
    assert space.keys(space.coordinates(space.features(U))) == space.keys(U)


def test_inactive_parameters_stay_inactive():
    u = BOOSTER.encode({"eta": 0.1, "depth": 3, "booster": "gblinear", "bins": 64, "mild": True})
    back = BOOSTER.decode(BOOSTER.coordinates(BOOSTER.features(u[None]))[0])
    assert back == {"eta": 0.1, "depth": 3, "booster": "gblinear", "bins": 64, "mild": True}


def test_real_columns_are_those_of_reals_and_of_nothing_else():
    names = [BOOSTER.names[j] for j in BOOSTER.groups[BOOSTER.real_columns]]
    assert names == ["eta", "drop"]
    assert len(ft.Space(a=ft.Choice(["x", "y", "z"]), b=ft.Integer(1, 3)).real_columns) == 0


def law(configs):
    """Smooth in eta and drop, with a step for each other parameter."""
    mean = [
        np.sin(np.log(c["eta"])) + 3.0 * c.get("drop", 0.2) ** 2 + 0.1 * c["depth"] + 0.2 * len(c["booster"])
        for c in configs
    ]
    variance = [0.1 + c["eta"] ** 2 + c.get("drop", 0.0) for c in configs]
    return np.array(mean), np.array(variance)


MODEL = CostOfConfig(BOOSTER, law)


def test_a_function_of_configurations_is_read_through_features():
    U = BOOSTER.snap(np.random.default_rng(0).random((50, 6)))
    mean, variance = MODEL.predict(BOOSTER.features(U))
    expected = law(BOOSTER.decode_many(U))
    np.testing.assert_array_equal(mean, expected[0])
    np.testing.assert_array_equal(variance, expected[1])
    np.testing.assert_array_equal(MODEL.mean_at(BOOSTER.features(U)), expected[0])


def test_slopes_along_reals_are_those_of_the_function_and_zero_elsewhere():
    """Against central differences of the function itself at ten times the step, corners of the cube included."""
    rng = np.random.default_rng(1)
    inner = BOOSTER.snap(0.01 + 0.98 * rng.random((60, 6)))
    X = BOOSTER.features(inner)
    mean, variance, mean_slope, variance_slope = MODEL.predict_with_gradient(X)
    np.testing.assert_array_equal(np.array([mean, variance]), np.array(MODEL.predict(X)))
    reals = BOOSTER.real_columns
    others = np.setdiff1d(np.arange(X.shape[1]), reals)
    assert not mean_slope[:, others].any()
    assert not variance_slope[:, others].any()
    for column in reals:
        j, h = BOOSTER.groups[column], 10 * STEP
        up, down = inner.copy(), inner.copy()
        up[:, j], down[:, j] = up[:, j] + h, down[:, j] - h
        ends = [law(BOOSTER.decode_many(BOOSTER.snap(side))) for side in (up, down)]
        for slope, first, second in ((mean_slope, ends[0][0], ends[1][0]), (variance_slope, ends[0][1], ends[1][1])):
            np.testing.assert_allclose(slope[:, column], (first - second) / (2 * h), atol=0.02)
    inactive = ~BOOSTER.active(inner)[:, 3]
    assert 10 < inactive.sum() < 60
    assert not mean_slope[inactive, reals[1]].any()


def test_slopes_exist_in_the_corners():
    corners = BOOSTER.snap(np.array([np.zeros(6), np.ones(6), [0, 0, 0.5, 1, 1, 1], [1, 0, 0.5, 0, 1, 1]], dtype=float))
    _, _, mean_slope, _ = MODEL.predict_with_gradient(BOOSTER.features(corners))
    expected = np.cos(np.log(1e-4)) * np.log(1e4)  # d sin(log eta) / du at eta = 1e-4
    assert mean_slope[0, 0] == pytest.approx(expected, abs=0.05)
    assert mean_slope[1, 0] == pytest.approx(np.cos(0.0) * np.log(1e4), abs=0.05)
    drop = BOOSTER.real_columns[1]
    assert mean_slope[2, drop] == pytest.approx(6.0 * 0.5 * 0.5, abs=0.01)
    assert mean_slope[3, drop] == pytest.approx(0.0, abs=0.01)


def test_a_function_is_not_asked_about_what_the_space_forbids():
    space = ft.Space(a=ft.Real(0, 1), b=ft.Real(0, 1), forbid=lambda c: c["a"] >= c["b"])

    def gap(configs):
        assert all(c["b"] > c["a"] for c in configs)
        return np.log([c["b"] - c["a"] for c in configs]), np.ones(len(configs))

    model = CostOfConfig(space, gap)
    X = np.array([[0.2, 0.7], [0.7, 0.2], [0.1, 0.2], [0.3, 0.3 + STEP / 2]])
    mean, variance, mean_slope, _ = model.predict_with_gradient(X)
    np.testing.assert_allclose(mean[[0, 2]], np.log([0.5, 0.1]))
    assert mean[1] == mean[0]
    assert (variance == 1.0).all()
    np.testing.assert_allclose(mean_slope[0], [-2.0, 2.0], rtol=1e-3)
    assert not mean_slope[1].any()
    assert mean_slope[3, 0] == 0.0  # the difference quotient would reach across the border
    for only in (X[[1]], X[:0]):
        assert all(np.isfinite(part).all() for part in model.predict_with_gradient(only))
        assert len(model.predict(only)[0]) == len(only)
