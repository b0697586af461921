"""The warp of outputs: order kept, undone by its inverse, and not impressed by one diverged run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.surrogates import gp
from farthing.surrogates.outputs import Warp

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def readings(draw: st.DrawFn) -> np.ndarray:
    """Distinct values of three digits, of either sign, over twelve decades, now and then with a run at 1e9."""
    digits = st.integers(-999, 999)
    exponents = draw(st.sampled_from([(0, 0), (-2, 2), (-6, 3)]))
    # Read as decimals: products would make two different floats of 28e-4 and 280e-5.
    numbers = st.tuples(digits, st.integers(*exponents)).map(lambda pair: float(f"{pair[0]}e{pair[1]}"))
    values = draw(st.lists(numbers, min_size=2, max_size=30, unique=True))
    return np.unique([*values, *([1e9] if draw(st.booleans()) else [])])


HOSTILE = {
    "one": np.array([3.0]),
    "two": np.array([3.0, 4.0]),
    "constant": np.full(9, 2.5),
    "zero": np.zeros(9),
    "all but one equal": np.array([1.0] * 9 + [2.0]),
    "half equal to the best": np.array([0.0] * 6 + [1.0, 2.0, 3.0]),
    "twelve decades": 10.0 ** np.linspace(-6, 6, 25),
    "twelve decades below zero": -(10.0 ** np.linspace(-6, 6, 25)),
    "an outlier of 1e9": np.append(np.linspace(0.0, 1.0, 19), 1e9),
    "an outlier of -1e9": np.append(np.linspace(0.0, 1.0, 19), -1e9),
    "both": np.append(np.linspace(0.0, 1.0, 19), [1e9, -1e9]),
    "1e300": 1e300 * np.linspace(-1.0, 1.0, 11),
    "the largest floats": np.finfo(float).max * np.linspace(-1.0, 1.0, 11),
    "two near the largest float": np.array([1.6e308, 1.7e308]),
    "one such twice": np.full(2, 1.7e308),
    "both ends of the floats": np.array([-1.7e308, 1.7e308, 1.7e308]),
    "1e-300": 1e-300 * np.linspace(-1.0, 1.0, 11),
    "a spread of 1e-178": np.array([-1.0, 0.0, 0.0, 4e-178, 1.0, 1.0]),
    "denormal": 5e-324 * np.arange(11),
    "from the smallest to the largest": np.array([5e-324, 1e-300, 1e-30, 1.0, 1e30, 1e300]),
}


@settings(deadline=None, max_examples=200)
@given(readings())
def test_the_order_of_distinct_values_is_kept(y):
    warped = Warp.of(y)(y)
    assert np.isfinite(warped).all()
    assert (np.diff(warped) > 0.0).all()


@settings(deadline=None, max_examples=200)
@given(st.lists(finite, min_size=1, max_size=20), st.lists(finite, min_size=2, max_size=20))
def test_no_two_finite_values_ever_change_places(seen, asked):
    """Values that the warp was not made for, too; at the ends of the floats they may become equal."""
    asked = np.sort(asked)
    warped = Warp.of(np.array(seen))(asked)
    assert np.isfinite(warped).all()
    assert (np.diff(warped) >= 0.0).all()


@settings(deadline=None, max_examples=200)
@given(readings())
def test_the_inverse_leads_back(y):
    warp = Warp.of(y)
    error, distance = np.abs(warp.inverse(warp(y)) - y), np.abs(y - np.median(y))
    rounding = 1e-12 * (abs(np.median(y)) + np.median(y) - y.min())
    assert (error <= 1e-6 * distance + rounding).all()
    below = y <= np.median(y)  # where the search for a minimum takes place
    assert (error <= 1e-9 * distance + rounding)[below].all()


@settings(deadline=None, max_examples=100)
@given(readings(), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10))
def test_the_inverse_of_any_posterior_mean_is_finite_and_in_order(y, means):
    """A surrogate may predict anything; its prediction is shown in the user's units."""
    values = Warp.of(y).inverse(np.sort(means))
    assert np.isfinite(values).all()
    assert (values[1:] >= values[:-1]).all()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_stay_finite_and_in_order(name):
    y = np.sort(HOSTILE[name])
    warp = Warp.of(y)
    warped = warp(y)
    assert np.isfinite(warped).all()
    assert (np.diff(warped) >= 0.0).all()
    assert np.isfinite(warp.inverse(warped)).all()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_process_on_warped_hostile_values_predicts_finitely(name):
    """What the policies do, from the smallest float to the largest."""
    y = HOSTILE[name]
    X = np.random.default_rng(0).random((len(y), 2))
    model = gp.fit(X, Warp.of(y)(y))
    mean, variance = model.predict(np.random.default_rng(1).random((20, 2)))
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance > 0.0).all()


def half_spread(z: np.ndarray) -> float:
    """The width of the middle half."""
    low, high = np.quantile(z, [0.25, 0.75])
    return float(high - low)


@pytest.mark.parametrize("outlier", [1e3, 1e9, 1e30, 1e300])
def test_one_diverged_run_among_twenty_does_not_flatten_the_rest(outlier):
    """Seen by a process, which standardises: the other 19 keep at least a third of the spread they have alone.

    Their standard deviation does in each of 20 samples, the width of their middle half on average.
    """
    halves = []
    for seed in range(20):
        rest = np.random.default_rng(seed).standard_normal(19)
        y = np.append(rest, outlier)
        warped, alone = Warp.of(y)(y), Warp.of(rest)(rest)
        assert warped[:19].std() / warped.std() >= 1.0 / 3.0
        halves.append(half_spread(warped[:19]) / warped.std() / (half_spread(alone) / alone.std()))
    assert np.mean(halves) >= 1.0 / 3.0


def test_the_identity_would_be_flattened():
    """So that the claim above says something."""
    y = np.append(np.random.default_rng(0).standard_normal(19), 1e9)
    assert y[:19].std() / y.std() < 1e-8


@pytest.mark.parametrize("seed", range(5))
def test_normal_values_are_hardly_bent(seed):
    """A line through the warped values of a normal sample leaves less than 2 % of their variance."""
    y = 7.0 + 0.1 * np.random.default_rng(seed).standard_normal(60)
    assert np.corrcoef(Warp.of(y)(y), y)[0, 1] ** 2 > 0.98


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, -1e6), (3.0, 1e3)])
def test_other_units_give_the_same_warped_values(scale, shift):
    y = np.exp(np.random.default_rng(0).standard_normal(30))
    np.testing.assert_allclose(Warp.of(scale * y + shift)(scale * y + shift), Warp.of(y)(y), rtol=1e-6, atol=1e-6)


def test_a_plateau_is_not_looked_at_ever_closer():
    """A search that stays at one accuracy sees all other values where it saw them before."""
    seen = np.array([-0.98, -0.977, -0.97, -0.95, -0.9, -0.6, -0.1])
    stayed = np.concatenate([seen, np.full(100, -0.98)])
    np.testing.assert_allclose(Warp.of(stayed)(seen), Warp.of(seen)(seen))


def test_one_warp_serves_values_it_has_not_seen():
    """The best value so far and a new one are compared under one map, whatever made it."""
    warp = Warp.of(np.random.default_rng(0).standard_normal(20))
    grid = np.linspace(-10.0, 10.0, 400)
    warped = warp(grid)
    assert (np.diff(warped) > 0.0).all()
    np.testing.assert_allclose(warp.inverse(warped), grid, atol=1e-7)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_posterior_mean_on_hostile_values_leads_beyond_the_floats(name):
    values = Warp.of(HOSTILE[name]).inverse(np.array([-1e6, -1e3, -30.0, 0.0, 30.0, 1e3, 1e6]))
    assert np.isfinite(values).all()
    assert (values[1:] >= values[:-1]).all()
