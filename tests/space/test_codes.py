"""What a model sees of a `Choice` with many options: `farthing.space.codes`."""

from __future__ import annotations

import numpy as np
import pytest

from farthing import Choice, Integer, Ordered, Real, Space
from farthing.numerics.linalg import squared_distances
from farthing.space.codes import COLUMNS, codes, levels_of

MANY = 100_000


def test_the_columns_of_a_choice_never_exceed_those_of_a_code():
    widths = {k: Space(kind=Choice(list(range(k)))).features([[0.3]]).shape[1] for k in (1, 2, 3, 128, 129, MANY)}
    assert widths == {1: 1, 2: 1, 3: 3, 128: 128, 129: COLUMNS, MANY: COLUMNS}


def test_up_to_128_options_have_a_column_each():
    space = Space(kind=Choice(list(range(COLUMNS))))
    F = space.features(space.encode_many(space.enumerate()))
    np.testing.assert_array_equal(F, np.eye(COLUMNS) / np.sqrt(2))


def test_different_options_are_nearly_at_distance_one_and_equal_ones_at_zero():
    """The spread of squared distances between random signs is 1 / sqrt(COLUMNS); all options are distinct."""
    levels = np.random.default_rng(0).choice(MANY, 600, replace=False)
    s = squared_distances(codes(levels), codes(levels))
    assert (np.diag(s) == 0.0).all()
    apart = s[np.triu_indices(len(s), 1)]
    assert abs(apart.mean() - 1.0) < 0.005
    assert abs(apart.std() - COLUMNS**-0.5) < 0.01
    assert 0.4 < apart.min() < apart.max() < 1.6
    assert len(np.unique(codes(np.arange(20_000)) > 0.0, axis=0)) == 20_000


def test_codes_are_the_same_on_every_machine_and_in_every_version():
    """Stored studies are resumed with them."""
    assert ["".join("+" if x > 0 else "-" for x in row[:24]) for row in codes(np.array([0, 1, 99_999]))] == [
        "+-+-++++++--++-+---+++-+",
        "-+--++++-+---+-+----+--+",
        "-----+-++---+-+++++++-++",
    ]
    assert np.unique(np.abs(codes(np.arange(50)))).tolist() == [1 / 16]


def test_an_inactive_choice_is_equally_far_from_every_option():
    space = Space(on=Choice([False, True]), kind=Choice(list(range(MANY)), when={"on": True}))
    off = space.features([[0.0, 0.7]])[:, 1:]
    others = space.features(np.column_stack([np.ones(50), np.linspace(0, 1, 50)]))[:, 1:]
    assert (squared_distances(off, others) == 0.5).all()


@pytest.mark.parametrize("k", [129, 5_000, MANY])
def test_levels_are_found_again_from_their_codes(k):
    levels = np.random.default_rng(1).integers(0, k, 300)
    assert (levels_of(codes(levels), k) == levels).all()


def test_coordinates_lead_back_from_the_features_of_any_space():
    space = Space(
        x=Real(0, 1), kind=Choice([str(i) for i in range(MANY)]), few=Choice(["a", "b", "c"]), n=Integer(1, 9),
        grid=Ordered(list(range(MANY))), falling=Ordered([5, 3, 2.5, 1]), sizes=Ordered([1, 10, 100], log=True),
        alone=Ordered(["only"]), child=Choice(list(range(500)), when={"few": {"a", "b"}}),
    )  # fmt: skip
    U = space.snap(np.random.default_rng(2).random((400, len(space))))
    np.testing.assert_allclose(space.coordinates(space.features(U)), U, atol=1e-12)


def test_a_grid_finds_the_nearest_value_and_the_first_of_two():
    space = Space(grid=Ordered([0, 1, 2, 4]))  # positions 0, 0.25, 0.5, 1
    seen = np.array([-1.0, 0.0, 0.1, 0.125, 0.13, 0.3, 0.75, 0.76, 2.0])
    found = [config["grid"] for config in space.decode_many(space.coordinates(seen[:, None]))]
    assert found == [0, 0, 0, 0, 1, 1, 2, 4, 4]
