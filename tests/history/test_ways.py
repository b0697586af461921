"""Ways of thinking: which observations the models know."""

from __future__ import annotations

import pytest

from farthing.history.ways import MOST_FEW, Way
from farthing.numerics.rows import MOST_KNOWN


@pytest.mark.parametrize("way", [Way.FULL, Way.KEPT, Way.NONE])
def test_only_one_way_leaves_observations_out(way):
    assert len(way.rows(10 * MOST_FEW)) == 10 * MOST_FEW
    assert len(Way.FEW.rows(10 * MOST_FEW)) == MOST_FEW
    assert Way.FEW.of("abc") == ["a", "b", "c"]


def test_models_of_thousands_of_observations_know_some_in_every_way():
    assert [len(way.known(10 * MOST_KNOWN)) for way in (Way.FULL, Way.KEPT, Way.FEW)] == [MOST_KNOWN] * 2 + [MOST_FEW]
    assert Way.FULL.known(7).tolist() == list(range(7))


def test_ways_are_ordered_from_the_most_careful():
    assert list(Way) == [Way.FULL, Way.KEPT, Way.FEW, Way.NONE]
