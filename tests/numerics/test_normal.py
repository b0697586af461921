"""log h against mpmath, over every branch and its seams."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from farthing.numerics.normal import DIRECT_ABOVE, FRACTION_BELOW, log_h

mpmath_context = mpmath.mp.clone()
mpmath_context.dps = 60  # h(-1e6) loses 24 digits to cancellation: what is left is more than enough


def exact(z: float) -> tuple[float, float]:
    """log h and its derivative Phi / h, by the textbook form in 60 digits."""
    mp = mpmath_context
    x = mp.mpf(z)
    phi = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
    cdf = mp.erfc(-x / mp.sqrt(2)) / 2
    h = phi + x * cdf
    return mp.log(h), cdf / h


def around(point: float) -> np.ndarray:
    """Points at distances from one unit to one rounding on both sides of a seam, and the seam."""
    gaps = np.logspace(-16, 0, 60)
    return np.concatenate(
        [point - gaps, [np.nextafter(point, -np.inf), point, np.nextafter(point, np.inf)], point + gaps]
    )


GRIDS = {
    "left tail": -np.logspace(0, 6, 300),
    "between the seams": np.linspace(-13.0, 0.0, 400),
    "right": np.linspace(0.0, 40.0, 200),
    "around zero": np.concatenate([-np.logspace(-300, -1, 60), [0.0], np.logspace(-300, -1, 60)]),
    "around the seam of the direct form": around(DIRECT_ABOVE),
    "around the seam of the fraction": around(FRACTION_BELOW),
    "around -1": around(-1.0),
    "around -12": around(-12.0),
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_log_h_and_its_slope_have_the_accuracy_their_docstring_states(grid):
    value, slope = log_h(grid)
    for z, one_value, one_slope in zip(grid, value, slope, strict=True):
        true_value, true_slope = exact(float(z))
        assert abs(one_value - true_value) <= 1e-12 * max(1.0, abs(true_value)), z
        assert abs(one_slope - true_slope) <= 1e-9 * abs(true_slope), z


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 4), (2, 0), (2, 3, 4)])
def test_log_h_keeps_the_shape_and_gives_each_entry_what_it_has_alone(shape):
    z = np.random.default_rng(0).uniform(-30.0, 10.0, size=shape)
    value, slope = log_h(z)
    assert value.shape == slope.shape == shape
    for index in np.ndindex(shape):
        alone = log_h(z[index].reshape(1))
        assert value[index] == alone[0][0]
        assert slope[index] == alone[1][0]


def test_log_h_leaves_its_argument_as_it_was():
    z = np.array([-1e6, -13.0, -5.0, 0.0, 40.0])
    before = z.copy()
    log_h(z)
    np.testing.assert_array_equal(z, before)


def test_log_h_is_finite_and_silent_up_to_the_ends_of_its_range():
    """Warnings are errors here, so that an overflow on the way would be seen."""
    z = np.array([-1e150, -1e100, -1e20, -1e8, 1e8, 1e20, 1e100, 1e150])
    value, slope = log_h(z)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(value[4:], np.log(z[4:]), rtol=1e-12)  # h(z) -> z
    np.testing.assert_allclose(slope[:4], -z[:4], rtol=1e-12)  # (log h)' -> -z


def test_log_h_increases():
    z = np.concatenate([-np.logspace(6, 0, 500)[:-1], np.linspace(-1.0, 40.0, 500)])
    value, slope = log_h(z)
    assert (np.diff(value) > 0.0).all()
    assert (slope > 0.0).all()
