"""Which of many observations a model knows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.numerics.rows import EXACT, MOST_FITTED, MOST_KNOWN, few_rows, fitted_rows


@given(n=st.integers(0, 600), most=st.integers(2, 300), seed=st.integers(0, 9), valued=st.booleans())
def test_few_rows_are_few_ascending_and_hold_the_best(n, most, seed, valued):
    values = np.random.default_rng(seed).standard_normal(n) if valued else None
    rows = few_rows(n, values, most)
    assert len(rows) == min(n, most)
    assert np.all(np.diff(rows) > 0)
    assert all(0 <= row < n for row in rows)
    if values is not None and n > most:
        assert set(np.argsort(values, kind="stable")[: most // 2]) <= set(rows)


@pytest.mark.parametrize(("n", "fitted"), [(1, 1), (EXACT, EXACT), (EXACT + 1, MOST_FITTED), (10_000, MOST_FITTED)])
def test_hyperparameters_are_found_from_all_up_to_a_thousand(n, fitted):
    assert len(fitted_rows(n, np.arange(n, dtype=np.float64))) == fitted


def test_up_to_a_thousand_nothing_is_left_out():
    """Else models of at most EXACT observations would not be exact."""
    assert MOST_KNOWN >= EXACT >= MOST_FITTED
