"""Ways of thinking: which observations the models know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.history.ways import MOST_FEW, Way
from farthing.numerics.rows import few_rows


@given(n=st.integers(0, 600), most=st.integers(2, 300), seed=st.integers(0, 9), valued=st.booleans())
def test_few_rows_are_few_ascending_and_hold_the_best(n, most, seed, valued):
    values = np.random.default_rng(seed).standard_normal(n) if valued else None
    rows = few_rows(n, values, most)
    assert len(rows) == min(n, most)
    assert np.all(np.diff(rows) > 0)
    assert all(0 <= row < n for row in rows)
    if values is not None and n > most:
        assert set(np.argsort(values, kind="stable")[: most // 2]) <= set(rows)


@pytest.mark.parametrize("way", [Way.FULL, Way.KEPT, Way.NONE])
def test_only_one_way_leaves_observations_out(way):
    assert len(way.rows(10 * MOST_FEW)) == 10 * MOST_FEW
    assert len(Way.FEW.rows(10 * MOST_FEW)) == MOST_FEW
    assert Way.FEW.of("abc") == ["a", "b", "c"]


def test_ways_are_ordered_from_the_most_careful():
    assert list(Way) == [Way.FULL, Way.KEPT, Way.FEW, Way.NONE]
