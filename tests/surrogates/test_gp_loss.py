"""The loss that a fit minimises, against its formula, and its gradient against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.fitting import LONG, MEDIUM
from farthing.surrogates.gp import Loss
from oracles import dense_gp
from oracles.dense_gp import CASES

HAVE_SPREAD = [name for name, case in CASES.items() if len(case.y) > 1]


def thetas(g: int) -> list[np.ndarray]:
    """Short and long scales, little and much noise."""
    rng = np.random.default_rng(g)
    return [np.append(rng.uniform(-1.5, 2.5, g), log_noise) for log_noise in (-9.0, -6.0, -3.0, 0.0, 2.0)]


def loss_of(name: str, m: float = LONG) -> tuple[Loss, np.ndarray, int]:
    case = CASES[name]
    g = int(case.groups.max()) + 1
    z = dense_gp.standardised(case.y)
    return Loss(case.X, z, case.groups, g, m), z, g


@pytest.mark.parametrize(("m", "median"), [(LONG, np.exp(np.sqrt(2.0))), (MEDIUM, 1.0)])
@pytest.mark.parametrize("name", HAVE_SPREAD)
def test_the_loss_is_its_formula(name, m, median):
    loss, z, g = loss_of(name, m)
    for theta in thetas(g):
        expected = dense_gp.loss(CASES[name].X, z, CASES[name].groups, theta, np.log(median))
        assert loss(theta)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", HAVE_SPREAD)
def test_the_gradient_of_the_loss_is_its_central_difference(name):
    loss, _, g = loss_of(name)
    h = 1e-5
    for theta in thetas(g):
        gradient = loss(theta)[1]
        assert gradient.shape == theta.shape
        for j in range(g + 1):
            e = h * np.eye(g + 1)[j]
            expected = (loss(theta + e)[0] - loss(theta - e)[0]) / (2.0 * h)
            assert gradient[j] == pytest.approx(expected, rel=2e-5, abs=2e-6), (theta, j)


def test_outputs_without_spread_leave_a_loss_with_a_gradient():
    """All outputs 0: what is left is the determinant and the priors."""
    X = np.random.default_rng(0).random((6, 2))
    loss, h = Loss(X, np.zeros(6), np.arange(2), 2), 1e-5
    theta = np.array([0.3, -0.4, -5.0])
    value, gradient = loss(theta)
    assert value == pytest.approx(dense_gp.loss(X, np.zeros(6), np.arange(2), theta), rel=1e-10)
    for j, e in enumerate(h * np.eye(3)):
        assert gradient[j] == pytest.approx((loss(theta + e)[0] - loss(theta - e)[0]) / (2 * h), rel=1e-5)


def test_a_call_does_not_change_the_next_one():
    """Work arrays are kept between calls; what they held must not be."""
    loss, _, g = loss_of("three dimensions")
    first, second, _, _, last = thetas(g)
    before_value, before_gradient = loss(first)
    loss(second)
    loss(last)
    again_value, again_gradient = loss(first)
    assert again_value == before_value
    np.testing.assert_array_equal(again_gradient, before_gradient)


def test_inputs_far_from_the_origin_give_the_loss_they_give_near_it():
    """Only differences count; products of large coordinates would lose the digits that hold them."""
    case = CASES["three dimensions"]
    z = dense_gp.standardised(case.y)
    theta = thetas(3)[1]
    near = Loss(case.X, z, case.groups, 3)(theta)
    far = Loss(case.X + 1000.0, z, case.groups, 3)(theta)
    assert far[0] == pytest.approx(near[0], rel=1e-7)
    np.testing.assert_allclose(far[1], near[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("log_noise", [np.log(1e-8), np.log(1e2)])
def test_the_ends_of_the_noise_are_finite_even_for_duplicates(log_noise):
    X = np.repeat(np.random.default_rng(0).random((5, 2)), 4, axis=0)
    y = np.random.default_rng(1).standard_normal(20)
    for log_scale in (np.log(5e-3), 0.0, np.log(1e3)):
        value, gradient = Loss(X, y, np.arange(2), 2)(np.array([log_scale, log_scale, log_noise]))
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
