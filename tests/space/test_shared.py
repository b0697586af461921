"""Places of other spaces' configurations against the definition of features, and straight lines beyond the range."""

from __future__ import annotations

import math

import numpy as np
import pytest

import farthing as ft
from farthing.record.reader import read_study
from farthing.space.shared import nearest_config, place_of, same_config, shared_features, shared_points

SPACE = ft.Space(
    rate=ft.Real(1e-4, 1e-1, log=True), width=ft.Real(-1, 3), depth=ft.Integer(2, 9),
    units=ft.Integer(4, 4096, log=True), batch=ft.Ordered([16, 32, 128], log=True),
    size=ft.Ordered(["small", "large", "huge"]),
    kind=ft.Choice(["a", "b", "c"]), flag=ft.Choice([True, False]), drop=ft.Real(0, 1, when={"kind": "b"}),
)  # fmt: skip


def test_of_its_own_configurations_a_space_has_the_features_that_it_always_has() -> None:
    configs = SPACE.decode_many(np.random.default_rng(0).random((60, len(SPACE))))
    found = shared_points(SPACE, configs)
    X, columns = shared_features(SPACE, found.names, found.places)
    assert found.names == SPACE.names
    assert columns.tolist() == list(range(len(SPACE.groups)))
    np.testing.assert_allclose(X, SPACE.features(SPACE.encode_many(configs)), atol=1e-12)


@pytest.mark.parametrize(
    ("param", "inside", "value"),
    [
        (ft.Real(0, 2), (0.5, 1.5), 3.7), (ft.Real(0, 2), (0.5, 1.5), -3.0),
        (ft.Real(1e-3, 1, log=True), (0.01, 0.1), 30.0), (ft.Real(10, 11, log=True), (10.1, 10.8), 9.0),
        (ft.Integer(3, 8), (4, 6), 11), (ft.Integer(3, 8), (4, 6), 5.5),
        (ft.Ordered([1, 2, 8]), (2, 8), 12), (ft.Ordered([1, 2, 8], log=True), (1, 8), 64),
        (ft.Ordered([8, 2]), (8, 2), 3),
    ],
)  # fmt: skip
def test_other_numbers_lie_on_the_line_through_the_places_of_two_of_its_own(param, inside, value) -> None:
    """Brute force: two values of the space and their features give the line; on a log scale it is one in the log."""
    space = ft.Space(x=param)
    low, high = space.features(space.encode_many([{"x": x} for x in inside]))[:, 0]
    scale = math.log if param.log else float
    share = (scale(value) - scale(inside[0])) / (scale(inside[1]) - scale(inside[0]))
    assert place_of(param, value) == pytest.approx(low + share * (high - low), abs=1e-9)


def test_integers_on_a_log_scale_keep_their_order_beyond_the_range() -> None:
    param = ft.Integer(4, 64, log=True)
    places = [place_of(param, value) for value in (1, 2, 4, 5, 8, 64, 65, 128, 1024)]
    assert places == sorted(set(places))
    assert places[2] == param.unit(0)
    assert places[5] == param.unit(60)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        (ft.Real(0, 1), "a"), (ft.Real(0, 1), math.nan), (ft.Real(1, 2, log=True), -1.0), (ft.Choice(["a"]), "b"),
        (ft.Choice([1, 2]), True), (ft.Ordered(["s", "l"]), "m"), (ft.Ordered([5]), 6), (ft.Integer(1, 4), None),
    ],
)  # fmt: skip
def test_a_value_without_a_place_has_none(param, value) -> None:
    assert place_of(param, value) is None


def test_what_is_not_shared_is_left_out_and_a_config_with_a_foreign_option_too() -> None:
    configs = [{"kind": "a", "width": 0.0, "other": 1}, {"kind": "z", "width": 1.0, "other": 1}, {"kind": "c"}]
    found = shared_points(SPACE, configs)
    assert found.names == ("width", "kind")
    assert found.rows.tolist() == [0, 2]
    np.testing.assert_array_equal(found.places, [[0.25, 0.0], [math.nan, 2.0]])
    X, columns = shared_features(SPACE, found.names, found.places)
    assert sorted(set(SPACE.groups[columns].tolist())) == [SPACE.names.index(name) for name in found.names]
    np.testing.assert_allclose(X[:, 0], [0.25, 0.5])  # inactive: in the middle


def test_the_nearest_config_of_a_place_is_the_config_itself_or_the_end_of_the_range() -> None:
    config = SPACE.decode(np.random.default_rng(3).random(len(SPACE)))
    found = shared_points(SPACE, [config])
    assert nearest_config(SPACE, found.names, found.places[0], np.full(len(SPACE), 0.5)) == config
    assert nearest_config(ft.Space(x=ft.Real(0, 1)), ("x",), [7.0], np.array([0.5])) == {"x": 1.0}


def test_an_option_that_a_file_can_only_describe_is_found_again(tmp_path) -> None:
    space = ft.Space(f=ft.Choice([min, max, math.fsum]))
    with ft.Study(space, "2 evaluations", storage=tmp_path / "s.db", seed=0) as study:
        study.add({"f": max}, value=1.0, cost=1.0)
    (trial,) = read_study(tmp_path / "s.db").trials
    assert trial.config["f"] is not max
    assert shared_points(space, [trial.config]).places.tolist() == [[1.0]]
    assert same_config(space, trial.config) == {"f": max}
