"""The Matern-5/2 kernel against scikit-learn, its decay against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from farthing.numerics.linalg import squared_distances
from farthing.surrogates.kernels import matern52, matern52_with_decay


@pytest.mark.parametrize("f", [1, 3, 8])
def test_the_kernel_is_the_matern_kernel_of_scikit_learn(f):
    rng = np.random.default_rng(f)
    A, B, scales = rng.random((20, f)), rng.random((15, f)), rng.uniform(0.05, 3.0, f)
    ours = matern52(squared_distances(A / scales, B / scales))
    np.testing.assert_allclose(ours, Matern(length_scale=scales, nu=2.5)(A, B), rtol=1e-10, atol=1e-14)


def test_squared_distances_are_those_of_the_differences():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    expected = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(A, B), expected, rtol=1e-12)


def test_squared_distances_of_a_point_to_itself_are_never_below_zero():
    """Far from the origin the products cancel, and their rounding must not reach a square root."""
    A = 1e3 + np.random.default_rng(0).random((50, 3))
    s = squared_distances(A, A)
    assert (s >= 0.0).all()
    assert np.diag(s).max() < 1e-8


def test_the_kernel_is_one_at_distance_zero_and_vanishes_far_away():
    np.testing.assert_array_equal(matern52(np.zeros(3)), 1.0)
    far = matern52(np.array([1e4, 1e8, 1e300]))
    assert (far >= 0.0).all()
    assert (far < 1e-90).all()


@pytest.mark.parametrize("s", [1e-6, 1e-3, 0.1, 1.0, 7.0, 50.0])
def test_decay_is_minus_twice_the_slope_in_the_squared_distance(s):
    h = 1e-5 * s
    slope = (matern52(np.array([s + h])) - matern52(np.array([s - h]))) / (2.0 * h)
    np.testing.assert_allclose(matern52_with_decay(np.array([s]))[1], -2.0 * slope, rtol=1e-5)


def test_decay_is_finite_at_distance_zero():
    assert matern52_with_decay(np.zeros(1))[1][0] == pytest.approx(5.0 / 3.0, rel=1e-15)


def test_both_forms_agree_on_the_kernel():
    s = np.concatenate([[0.0], np.logspace(-12, 4, 60)])
    np.testing.assert_allclose(matern52_with_decay(s.copy())[0], matern52(s.copy()), rtol=1e-14)


def test_decay_gives_the_slope_in_an_input_and_in_a_log_length_scale():
    """The two identities of the module's docstring, by central differences."""
    rng = np.random.default_rng(1)
    x, b, log_l, h = rng.random(3), rng.random(3), rng.uniform(-1.0, 0.5, 3), 1e-5

    def k(x, log_l):
        return matern52(squared_distances((x / np.exp(log_l))[None, :], (b / np.exp(log_l))[None, :]))[0, 0]

    gap = (x - b) / np.exp(log_l)
    decay = matern52_with_decay(np.array([gap @ gap]))[1][0]
    for j in range(3):
        e = h * np.eye(3)[j]
        by_input = (k(x + e, log_l) - k(x - e, log_l)) / (2.0 * h)
        by_scale = (k(x, log_l + e) - k(x, log_l - e)) / (2.0 * h)
        assert by_input == pytest.approx(-decay * gap[j] / np.exp(log_l[j]), rel=1e-6)
        assert by_scale == pytest.approx(decay * gap[j] ** 2, rel=1e-6)
