"""Bounds learned from the biases of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.two_fidelity.paired import FREE, learned_bounds


def test_learned_bounds_hold_all_biases_and_tell_nothing_from_one():
    d = np.random.default_rng(0).normal(size=20)
    lower, upper = learned_bounds(d)
    assert lower < d.min() < d.max() < upper
    assert upper - lower == pytest.approx((d.max() - d.min()) * (1.0 + 2.0 / 19.0))
    assert learned_bounds(d, slack=10.0) == FREE
    assert learned_bounds(d[:1]) == learned_bounds(d[:0]) == learned_bounds(np.zeros(4)) == FREE
