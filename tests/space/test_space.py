"""Parameters, conditions and the translation between configurations and the unit cube."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InvalidArgument, InvalidConfig, InvalidSpace
from farthing.space import Choice, Integer, Ordered, Real, Space
from farthing.space.fields import same
from strategies import EXTREME_RANGES, choices, integers, ordereds, reals, spaces, spaces_with_rows, unit

quick = settings(max_examples=70, deadline=None)
hunt = settings(max_examples=200, deadline=None)

UNORDERED = "Ordered: values: expected numbers that rise or fall strictly (options without an order are a Choice)"


def boosters(**more: object) -> Space:
    """Two levels of conditions: `booster` -> `drop` -> `drop_rate`."""
    return Space(
        eta=Real(1e-4, 1.0, log=True),
        drop_rate=Real(0.0, 0.5, when={"drop": True}),
        drop=Choice([False, True], when={"booster": {"dart", "gblinear"}}),
        booster=Choice(["gbtree", "dart", "gblinear"]),
        depth=Integer(1, 16),
        **more,
    )


class TestRefusals:
    """Nonsense is refused with what was seen and what is accepted."""

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Real(3, 1), "Real: low: expected a number below high=1, got 3"),
            (lambda: Real(1, 1), "Real: low: expected a number below high=1, got 1"),
            (lambda: Real(0, 1, log=True), "Real: low: expected a number above 0 for log=True, got 0"),
            (lambda: Real(math.nan, 1), "Real: low: expected a finite number within ±1e+308, got nan"),
            (lambda: Real(0, math.inf), "Real: high: expected a finite number within ±1e+308, got inf"),
            (lambda: Real(0, 10**400), "Real: high: expected a finite number"),
            (lambda: Real(False, 1), "Real: low: expected a finite number within ±1e+308, got False"),
            (lambda: Real("0", 1), "Real: low: expected a finite number within ±1e+308, got '0'"),
            (lambda: Real(0, 1, log="yes"), "Real: log: expected True or False, got 'yes'"),
            (lambda: Real(0, 1, when="dart"), "Real: when: expected names of parameters and values"),
            (lambda: Real(0, 1, when={1: 2}), "Real: when: expected names of parameters and values"),
            (lambda: Integer(3, 3), "Integer: low: expected a whole number below high=3, got 3"),
            (lambda: Integer(1.5, 3), "Integer: low: expected a whole number within ±2**63, got 1.5"),
            (lambda: Integer(1, True), "Integer: high: expected a whole number within ±2**63, got True"),
            (lambda: Integer(1, math.inf), "Integer: high: expected a whole number within ±2**63, got inf"),
            (lambda: Integer(1, 9, step=0), "Integer: step: expected a whole number from 1 to high - low = 8, got 0"),
            (lambda: Integer(1, 9, step=9), "Integer: step: expected a whole number from 1 to high - low = 8, got 9"),
            (lambda: Integer(0, 9, log=True), "Integer: low: expected a whole number above 0 for log=True, got 0"),
            (
                lambda: Integer(0, 2**48),
                "Integer: number of values: expected at most 2**48 (use a larger step), got 281474976710657",
            ),
            (
                lambda: Integer(1, 2**41, log=True),
                "Integer: number of values: expected at most 2**40 with log=True (use a larger step), got 219902325555",
            ),
            (lambda: Ordered([]), "Ordered: values: expected at least one value, got []"),
            (lambda: Ordered([1, 3, 2]), f"{UNORDERED}, got [1, 3, 2]"),
            (lambda: Ordered([1, 1.0]), f"{UNORDERED}, got [1, 1.0]"),
            (lambda: Ordered([1, math.inf]), "Ordered: values: expected finite numbers, got [1, inf]"),
            (lambda: Ordered([0, 1], log=True), "Ordered: values: expected numbers above 0 for log=True, got [0, 1]"),
            (lambda: Ordered(["a", "b"], log=True), "Ordered: values: expected numbers for log=True, got ['a', 'b']"),
            (lambda: Ordered(["a", "b", "a"]), "Ordered: values[2]: expected a value other than values[0], got 'a'"),
            (lambda: Choice([]), "Choice: options: expected at least one value, got []"),
            (lambda: Choice("abc"), "Choice: options: expected a list or tuple, got 'abc'"),
            (lambda: Choice({"a", "b"}), "Choice: options: expected a list or tuple, got {"),
            (lambda: Choice(3), "Choice: options: expected a list or tuple, got 3"),
            (lambda: Choice(["a", "a"]), "Choice: options[1]: expected a value other than options[0], got 'a'"),
            (lambda: Choice([[1], [2], [1]]), "Choice: options[2]: expected a value other than options[0], got [1]"),
            (
                lambda: Choice([math.nan, float("nan")]),
                "Choice: options[1]: expected a value other than options[0], got nan",
            ),
        ],
    )
    def test_a_parameter_refuses_what_makes_no_sense(self, make, message):
        with pytest.raises(InvalidSpace) as error:
            make()
        assert str(error.value).startswith(message)

    @pytest.mark.parametrize(
        ("make", "parts"),
        [
            (lambda: Space(), ["at least one parameter", "Real(low, high)"]),
            (lambda: Space([Real(0, 1)]), ["params: expected names and parameters", "Real(low, high)"]),
            (lambda: Space(lr=(1e-5, 1e-1)), ["parameter 'lr'", "(1e-05, 0.1)", "expected Real(low, high)"]),
            (lambda: Space(lr=Real), ["parameter 'lr'", "expected Real(low, high)"]),
            (lambda: Space({3: Real(0, 1)}), ["name of a parameter: expected a text that is not empty", "got 3"]),
            (lambda: Space({"": Real(0, 1)}), ["name of a parameter: expected a text that is not empty", "got ''"]),
            (lambda: Space({"a": Real(0, 1)}, a=Real(0, 1)), ["parameter 'a'", "twice"]),
            (
                lambda: Space(booster=Choice(["x"]), drop_rate=Real(0, 1, when={"boster": "x"})),
                [
                    "parameter 'drop_rate': when refers to unknown parameter 'boster'",
                    "'booster', 'drop_rate'",
                ],
            ),
            (
                lambda: Space(a=Choice(["x", "y"]), b=Real(0, 1, when={"a": "z"})),
                ["parameter 'b': when['a']: expected one of 'x', 'y', got 'z'"],
            ),
            (
                lambda: Space(a=Choice(["x", "y"]), b=Real(0, 1, when={"a": ["x", "y"]})),
                ["parameter 'b'", "['x', 'y']", "or a set of them"],
            ),
            (
                lambda: Space(a=Choice(["x", "y"]), b=Real(0, 1, when={"a": set()})),
                ["parameter 'b': when names no value of 'a'", "one of 'x', 'y'"],
            ),
            (
                lambda: Space(a=Integer(1, 9, step=2), b=Real(0, 1, when={"a": 4})),
                ["parameter 'b': when['a']: expected an integer from 1 to 9 in steps of 2, got 4"],
            ),
            (
                lambda: Space(a=Real(0, 1), b=Real(0, 1, when={"a": 0.5})),
                ["parameter 'b': when refers to 'a', a Real", "Choice, Ordered or Integer"],
            ),
            (lambda: Space(a=Choice([1, 2], when={"a": 1})), ["parameter 'a'", "a -> a"]),
            (
                lambda: Space(
                    a=Choice([1, 2], when={"c": 1}),
                    b=Choice([1, 2], when={"a": 1}),
                    c=Choice([1, 2], when={"b": 1}),
                ),
                ["parameter 'a'", "a -> c -> b -> a"],
            ),
            (lambda: Space(a=Integer(1, 3), forbid={"a": 1}), ["a list of partial configs", "{'a': 1}"]),
            (lambda: Space(a=Integer(1, 3), forbid=[{}]), ["forbid[0]: expected names of parameters and values"]),
            (lambda: Space(a=Integer(1, 3), forbid=[{"a": 1}, {"b": 1}]), ["forbid[1]", "'b'", "are 'a'"]),
            (lambda: Space(a=Integer(1, 3), forbid=[{"a": {1, 7}}]), ["forbid[0]['a']", "1 to 3", "got 7"]),
            (lambda: Space(a=Real(0, 1), forbid=[{"a": 0.5}]), ["forbid[0]", "'a', a Real"]),
        ],
    )
    def test_a_space_names_the_parameter_and_what_is_accepted(self, make, parts):
        with pytest.raises(InvalidSpace) as error:
            make()
        assert [part for part in parts if part not in str(error.value)] == []

    @pytest.mark.parametrize(
        ("config", "parts"),
        [
            ([1], ["config: expected names of parameters and values", "[1]"]),
            ({"booster": "gbtree", "depth": 3}, ["'eta'", "missing", "a number from 0.0001 to 1.0"]),
            (
                {"eta": 0.1, "booster": "gbtree", "depth": 3, "x": 1},
                ["unknown parameter 'x'", "'eta', 'drop_rate'"],
            ),
            ({"eta": 2, "booster": "gbtree", "depth": 3}, ["'eta'", "got 2", "a number from 0.0001 to 1.0"]),
            ({"eta": True, "booster": "gbtree", "depth": 3}, ["'eta'", "got True"]),
            ({"eta": math.nan, "booster": "gbtree", "depth": 3}, ["'eta'", "got nan"]),
            ({"eta": 0.1, "booster": "gbtree", "depth": 3.5}, ["'depth'", "got 3.5", "from 1 to 16"]),
            ({"eta": 0.1, "booster": "tree", "depth": 3}, ["'booster'", "'tree'", "one of 'gbtree', 'dart'"]),
            ({"eta": 0.1, "booster": "dart", "drop": 1, "depth": 3}, ["'drop'", "got 1", "False, True"]),
            ({"eta": 0.1, "booster": "dart", "depth": 3}, ["'drop'", "missing", "one of False, True"]),
            (
                {"eta": 0.1, "booster": "gbtree", "depth": 3, "drop": False},
                ["'drop'", "got False", "only when 'booster' is 'dart' or 'gblinear'", "leave it out"],
            ),
            (
                {"eta": 0.1, "booster": "dart", "depth": 3, "drop": False, "drop_rate": 0.1},
                ["'drop_rate'", "got 0.1", "only when 'drop' is True"],
            ),
        ],
    )
    def test_an_invalid_config_is_refused_by_name_value_and_what_is_accepted(self, config, parts):
        with pytest.raises(InvalidConfig) as error:
            boosters().validate(config)
        assert [part for part in parts if part not in str(error.value)] == []

    def test_unit_coordinates_of_another_shape_are_refused(self):
        with pytest.raises(InvalidArgument, match=r"shape \(n, 5\), got \(2, 4\)"):
            boosters().snap(np.zeros((2, 4)))


class TestParameters:
    def test_numpy_scalars_are_numbers_and_become_plain_ones(self):
        real = Real(np.float32(0.5), np.int64(2))
        whole = Integer(np.int32(1), 5.0, step=np.uint8(2))
        grid = Ordered(np.array([1, 2, 4]))
        assert [type(x) for x in (real.low, real.high, whole.low, whole.high, whole.step)] == [float] * 2 + [int] * 3
        assert [type(value) for value in grid.values] == [int] * 3

    def test_options_of_equal_value_and_another_type_are_different_options(self):
        choice = Choice([1, True, 1.0, (1,), (True,), [1], [True]])
        assert [choice.find(option) for option in choice.options] == list(range(7))

    def test_unhashable_options_are_found_by_value(self):
        arrays = Choice([np.ones(2), np.zeros(2), np.ones(2, dtype=int), {"a": np.ones(1)}, [np.ones(1)]])
        copies = [np.ones(2), np.zeros(2), np.ones(2, dtype=int), {"a": np.ones(1)}, [np.ones(1)]]
        assert [arrays.find(copy) for copy in copies] == [0, 1, 2, 3, 4]
        assert arrays.find([np.zeros(1)]) is None

    def test_an_option_whose_equality_raises_is_only_itself(self):
        class Odd:
            __hash__ = None

            def __eq__(self, other):
                raise RuntimeError("no truth")

        first, second = Odd(), Odd()
        choice = Choice([first, second])
        assert (choice.find(second), choice.find(Odd())) == (1, None)

    def test_nan_is_found_and_a_numpy_scalar_stands_for_its_python_value(self):
        choice = Choice([math.nan, "a", 3])
        assert choice.find(float("nan")) == 0
        assert choice.find(np.str_("a")) == 1
        assert choice.find(np.int64(3)) == 2
        assert choice.find(3.0) is None

    def test_a_grid_of_numbers_finds_equal_numbers_of_any_type(self):
        grid = Ordered([16, 32.0, 64])
        assert [grid.find(x) for x in (16.0, np.int64(32), 64, 48, True, "16")] == [0, 1, 2, None, None, None]

    def test_parameters_are_equal_by_what_they_hold(self):
        assert Choice([np.ones(2)]) == Choice([np.ones(2)])
        assert Choice([1]) != Choice([True])
        assert Real(0, 1) == Real(0.0, 1.0) != Real(0, 2)
        assert Real(0, 1) != Integer(0, 1)
        assert len({Real(0, 1), Real(0.0, 1.0), Integer(0, 1)}) == 2

    def test_a_parameter_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            Real(0, 1).low = 3

    @pytest.mark.parametrize(
        "text",
        [
            "Real(0.0, 1.0)",
            "Real(1e-05, 0.1, log=True, when={'booster': 'dart'})",
            "Integer(1, 9, log=True, step=2)",
            "Ordered([1, 2, 4], log=True)",
            "Choice(['a', (1, 2), None])",
        ],
    )
    def test_the_repr_of_a_parameter_builds_it(self, text):
        assert repr(eval(text)) == text


class TestRoundTrip:
    """Encoding a decoded configuration leads back to exactly the same one."""

    @pytest.mark.parametrize(("low", "high", "log"), EXTREME_RANGES)
    def test_a_real_returns_exactly_on_any_range(self, low, high, log):
        param = Real(low, high, log=log)
        rng = np.random.default_rng(0)
        ends = np.array([0.0, 1.0, 1e-17, 1e-13, 1 - 1e-13, 1 - 1e-16])
        values = param.places(np.concatenate([ends, rng.random(3000), 1e-12 * rng.random(500)]))
        assert values[:2] == [low, high]
        assert all(low <= value <= high for value in values)
        assert param.places(param.units(values)) == values

    @hunt
    @given(reals(), st.lists(unit, min_size=1, max_size=20))
    def test_a_real_returns_exactly_from_anywhere(self, param, u):
        values = param.places(np.array(u))
        assert all(param.low <= value <= param.high for value in values)
        assert param.places(param.units(values)) == values
        assert param.places(np.array([0.0, 1.0])) == [param.low, param.high]

    @hunt
    @given(st.integers(1, 99999), st.integers(-12, 3), st.sampled_from([1e-16, 3.7e-15]))
    def test_a_typed_value_inside_a_log_range_returns_exactly(self, digits, exponent, low):
        value = float(f"{digits}e{exponent}")
        space = Space(x=Real(low, 1e9, log=True))
        assert space.decode(space.encode({"x": value})) == {"x": value}

    @quick
    @given(st.integers(0, 10**6))
    def test_a_typed_value_of_six_decimals_inside_a_linear_range_returns_exactly(self, millionths):
        space = Space(x=Real(-3, 2))
        value = float(f"{millionths}e-6")
        assert space.decode(space.encode({"x": value})) == {"x": value}

    def test_rounding_keeps_at_least_eleven_digits_of_the_range(self):
        u = np.random.default_rng(0).random(2000)
        assert np.abs(np.array(Real(-3, 5).places(u)) - (-3 + 8 * u)).max() <= 8e-12
        wide = np.array(Real(1e-5, 10, log=True).places(u))
        assert np.abs(wide / 10 ** (-5 + 6 * u) - 1).max() <= 1e-10
        narrow = np.array(Real(1e9, 1e9 + 1).places(u)) - 1e9
        assert np.abs(narrow - u).max() <= np.spacing(1e9)

    @hunt
    @given(integers(), st.lists(unit, min_size=1, max_size=20))
    def test_an_integer_returns_exactly(self, param, u):
        space = Space(x=param)
        for config in space.decode_many(np.array(u)[:, np.newaxis]):
            assert type(config["x"]) is int
            assert param.low <= config["x"] <= param.high
            assert space.decode(space.encode(config)) == config

    @quick
    @given(ordereds() | choices(), st.data())
    def test_every_level_is_at_the_centre_of_its_bin(self, param, data):
        space = Space(x=param)
        level = data.draw(st.integers(0, param.levels - 1))
        value = param.value(level)
        u = space.encode({"x": value})
        assert u[0] == pytest.approx((level + 0.5) / param.levels)
        assert space.decode(u)["x"] is value

    @hunt
    @given(spaces_with_rows())
    def test_a_configuration_returns_exactly_and_is_valid(self, space_and_rows):
        space, U = space_and_rows
        for config in space.decode_many(U):
            again = space.decode(space.encode(config))
            assert list(again) == list(config) == [name for name in space.names if name in config]
            assert same(again, config)
            assert same(space.validate(config), config)

    @quick
    @given(spaces_with_rows())
    def test_key_and_keys_agree(self, space_and_rows):
        space, U = space_and_rows
        keys = space.keys(U)
        assert keys == [space.key(space.decode(u)) for u in U]
        assert len(set(keys)) <= len(keys)
        assert space.keys(space.snap(U)) == keys
        assert [[place is not None for place in key] for key in keys] == space.active(U).tolist()

    @quick
    @given(spaces_with_rows())
    def test_encoding_is_snapped_and_snapping_twice_changes_nothing(self, space_and_rows):
        space, U = space_and_rows
        encoded = space.encode_many(space.decode_many(U))
        snapped = space.snap(U)
        discrete = [levels is not None for levels in space.levels]
        assert np.array_equal(encoded[:, discrete], snapped[:, discrete])
        assert np.array_equal(space.snap(snapped), snapped)
        assert (snapped[~space.active(U)] == 0.5).all()
        assert (encoded[~space.active(U)] == 0.5).all()

    @hunt
    @given(spaces_with_rows())
    def test_one_configuration_is_encoded_to_the_very_bits_that_many_are(self, space_and_rows):
        space, U = space_and_rows
        configs = space.decode_many(U)
        one_by_one = np.array([space.encode(config) for config in configs])
        assert one_by_one.tobytes() == space.encode_many(configs).tobytes()

    @pytest.mark.parametrize("param", [Real(1e-9, 1, log=True), Real(1, 1.5, log=True), Real(-3, 7)])
    def test_the_unit_coordinate_of_a_real_is_its_share_of_the_range(self, param):
        scale = np.log if param.log else np.asarray
        values = param.places(np.random.default_rng(0).random(1000))
        low, high = scale(param.low), scale(param.high)
        np.testing.assert_allclose(param.units(values), (scale(values) - low) / (high - low), atol=1e-14)

    @quick
    @given(spaces_with_rows())
    def test_a_stored_configuration_loads_exactly_after_json(self, space_and_rows):
        space, U = space_and_rows
        for config in space.decode_many(U):
            stored = json.loads(json.dumps(space.store_config(config)))
            assert same(space.load_config(stored), config)


class TestBins:
    def test_bins_of_a_linear_integer_are_equally_wide(self):
        space = Space(x=Integer(3, 11, step=2))
        counts = Counter(config["x"] for config in space.decode_many((np.arange(1000)[:, None] + 0.5) / 1000))
        assert counts == {3: 200, 5: 200, 7: 200, 9: 200, 11: 200}

    def test_bins_of_a_log_integer_are_those_of_the_logarithm(self):
        space = Space(x=Integer(1, 8, log=True))
        edges = np.log(np.arange(1, 10) - 0.5)
        edges = (edges - edges[0]) / (edges[-1] - edges[0])
        below, above = edges[:-1] + 1e-9, edges[1:] - 1e-9
        assert [config["x"] for config in space.decode_many(below[:, None])] == list(range(1, 9))
        assert [config["x"] for config in space.decode_many(above[:, None])] == list(range(1, 9))
        centres = space.encode_many([{"x": x} for x in range(1, 9)])[:, 0]
        np.testing.assert_allclose(centres, (edges[:-1] + edges[1:]) / 2, atol=1e-14)

    def test_a_log_integer_with_a_step_past_its_low_end_keeps_all_values_reachable(self):
        space = Space(x=Integer(1, 9, log=True, step=4))
        rows = np.linspace(0, 1, 1001)[:, None]
        counts = Counter(config["x"] for config in space.decode_many(rows))
        assert set(counts) == {1, 5, 9}
        assert min(counts.values()) > 100
        assert ((space.snap(rows) > 0) & (space.snap(rows) < 1)).all()

    def test_coordinates_outside_the_cube_are_clipped(self):
        space = Space(x=Real(0, 1), n=Integer(1, 4))
        assert space.decode([-3.0, 7.0]) == {"x": 0.0, "n": 4}


class TestConditions:
    def test_a_child_of_an_inactive_parent_is_inactive(self):
        space = boosters()
        tree, dart = np.array([[0.5, 0.3, 0.9, 0.0, 0.5], [0.5, 0.3, 0.9, 0.5, 0.5]])
        assert space.active([tree, dart]).tolist() == [
            [True, False, False, True, True],
            [True, True, True, True, True],
        ]
        assert list(space.decode(tree)) == ["eta", "booster", "depth"]
        assert list(space.decode(dart)) == ["eta", "drop_rate", "drop", "booster", "depth"]

    def test_all_of_several_conditions_must_hold(self):
        space = Space(a=Choice(["x", "y"]), b=Integer(1, 3), c=Real(0, 1, when={"a": "y", "b": {2, 3}}))
        rows = space.encode_many([{"a": "x", "b": 2}, {"a": "y", "b": 1}, {"a": "y", "b": 3, "c": 0.5}])
        assert space.active(rows)[:, 2].tolist() == [False, False, True]

    def test_an_ordered_or_an_unhashable_parent_works(self):
        space = Space(
            size=Ordered(["s", "m", "l"]),
            layer=Choice([{"kind": "dense"}, {"kind": "conv"}]),
            kernel=Integer(1, 5, when={"layer": {"kind": "conv"}, "size": {"m", "l"}}),
        )
        assert space.validate({"size": "s", "layer": {"kind": "conv"}, "kernel": None}) == {
            "size": "s",
            "layer": {"kind": "conv"},
        }
        assert space.validate({"size": "l", "layer": {"kind": "conv"}, "kernel": 2})["kernel"] == 2

    @quick
    @given(spaces_with_rows())
    def test_configurations_that_differ_only_in_inactive_parameters_are_one_point(self, space_and_rows):
        space, U = space_and_rows
        moved = np.where(space.active(U), U, 1.0 - U)
        assert np.array_equal(space.features(U), space.features(moved))
        assert space.keys(U) == space.keys(moved)

    def test_validate_gives_plain_values_in_order_and_the_space_s_own_objects(self):
        option = {"kind": "conv"}
        space = Space(lr=Real(0, 1), n=Integer(1, 5), layer=Choice([option, "none"]))
        clean = space.validate({"layer": {"kind": "conv"}, "n": np.int64(3), "lr": np.float64(1 / 3)})
        assert clean == {"lr": 1 / 3, "n": 3, "layer": option}
        assert list(clean) == ["lr", "n", "layer"]
        assert (type(clean["lr"]), type(clean["n"])) == (float, int)
        assert clean["layer"] is option


class TestFeatures:
    def test_different_options_are_at_distance_one_whatever_their_number(self):
        for k in (2, 3, 7):
            space = Space(x=Choice(list(range(k))))
            F = space.features(space.encode_many(space.enumerate()))
            distances = np.linalg.norm(F[:, None] - F[None], axis=-1)
            np.testing.assert_allclose(distances, 1 - np.eye(k), atol=1e-12)
        assert Space(x=Choice([0, 1])).features([[0.0]]).shape == (1, 1)
        assert Space(x=Choice(["only"])).features([[0.7]]).tolist() == [[0.0]]

    def test_an_inactive_choice_is_equally_far_from_every_option(self):
        space = Space(on=Choice([False, True]), kind=Choice(["a", "b", "c"], when={"on": True}))
        off, *others = space.features(space.encode_many(space.enumerate()))[:, 1:]
        distances = np.linalg.norm(np.array(others) - off, axis=1)
        assert np.ptp(distances) < 1e-12
        np.testing.assert_allclose(off, np.mean(others, axis=0))

    def test_an_ordered_grid_is_placed_by_value_or_by_rank(self):
        def seen(values, **options):
            space = Space(x=Ordered(values, **options))
            return space.features(space.encode_many([{"x": value} for value in values]))[:, 0]

        np.testing.assert_allclose(seen([0, 1, 10]), [0, 0.1, 1])
        np.testing.assert_allclose(seen([10, 1, 0]), [0, 0.9, 1])
        np.testing.assert_allclose(seen([1, 10, 1000], log=True), [0, 1 / 3, 1])
        np.testing.assert_allclose(seen(["s", "m", "l"]), [0, 0.5, 1])
        np.testing.assert_allclose(seen([-1.5e308, 0.0, 1.5e308]), [0, 0.5, 1])
        assert seen(["only"]).tolist() == [0.5]

    def test_groups_name_the_parameter_of_each_column(self):
        space = boosters()
        assert space.groups.tolist() == [0, 1, 2, 3, 3, 3, 4]
        assert space.features(np.full((2, 5), 0.4)).shape == (2, 7)
        with pytest.raises(ValueError, match="read-only"):
            space.groups[0] = 1

    @quick
    @given(spaces_with_rows(), st.integers(0, 2**32 - 1))
    def test_a_slice_shows_its_rows_as_the_space_does_and_pulls_gradients_back(self, space_and_rows, seed):
        space, U = space_and_rows
        rng, rows = np.random.default_rng(seed), np.arange(len(U))
        U = space.snap(U)
        part = space.sliced(U)
        np.testing.assert_allclose(part.features(U, rows), space.features(U), atol=1e-12)

        weights, step = rng.normal(size=len(space.groups)), 1e-4
        pulled = part.pull(np.tile(weights, (len(U), 1)), rows)
        for j, param in enumerate(space.params.values()):
            shift = step * np.eye(len(space))[j]
            moved = part.features(U + shift, rows) - part.features(U - shift, rows)
            np.testing.assert_allclose(pulled[:, j], moved @ weights / (2 * step), atol=1e-8)
            if isinstance(param, Real | Integer):
                assert (np.abs(moved).sum(axis=1) > 0).tolist() == space.active(U)[:, j].tolist()
            else:
                assert not moved.any()


class TestFingerprints:
    @quick
    @given(spaces_with_rows())
    def test_they_differ_where_keys_do(self, space_and_rows):
        space, U = space_and_rows
        numbers, says_all = space.fingerprints(U)
        keys = space.keys(U)
        for i in range(len(U)):
            reals = [j for j, levels in enumerate(space.levels) if levels is None and keys[i][j] is not None]
            assert says_all[i] == (not reals)
            for k in np.flatnonzero(says_all):
                assert (numbers[i] == numbers[k]) == (keys[i] == keys[k]) or not says_all[i]


class TestNeighbours:
    def test_few_levels_are_all_tried_and_many_by_jumps(self):
        space = Space(few=Integer(1, 12), many=Integer(0, 99), options=Choice(list(range(64))))
        here = {"few": 4, "many": 10, "options": 7}
        rows = space.decode_many(space.neighbours(space.encode(here)[None])[0])
        tried = {name: sorted(row[name] for row in rows if row[name] != here[name]) for name in here}
        assert tried["few"] == [n for n in range(1, 13) if n != 4]
        assert tried["many"] == [2, 6, 8, 9, 11, 12, 14, 18, 26, 42, 74]
        assert tried["options"] == [n for n in range(64) if n != 7]
        assert len(rows) == sum(map(len, tried.values()))

    @quick
    @given(spaces_with_rows())
    def test_a_neighbour_is_snapped_and_moves_one_active_discrete_parameter(self, space_and_rows):
        space, U = space_and_rows
        rows = space.neighbours(U[:1])[0]
        assert rows.shape[1] == len(space)
        assert np.array_equal(space.snap(rows), rows)
        (here,) = space.keys(U[:1])
        assert here not in space.keys(rows)
        for key in space.keys(rows):
            both = [j for j in range(len(space)) if here[j] is not None and key[j] is not None]
            moved = [j for j in both if here[j] != key[j]]
            assert len(moved) == 1
            assert space.levels[moved[0]] is not None

    @quick
    @given(spaces_with_rows())
    def test_rows_together_have_the_neighbours_of_each_alone_in_order(self, space_and_rows):
        space, U = space_and_rows
        moved, owners = space.neighbours(U)
        for i in range(len(U)):
            np.testing.assert_array_equal(moved[owners == i], space.neighbours(U[[i]])[0])
        assert (np.diff(owners) >= 0).all()

    def test_a_space_of_reals_has_no_neighbours(self):
        assert Space(a=Real(0, 1), b=Real(0, 1)).neighbours([[0.5, 0.5]])[0].shape == (0, 2)

    def test_an_inactive_parameter_is_not_moved(self):
        space = Space(a=Choice(["x", "y"]), b=Integer(1, 5, when={"a": "y"}))
        assert space.decode_many(space.neighbours(space.encode({"a": "x"})[None])[0]) == [{"a": "y", "b": 3}]


class TestForbid:
    def test_partial_configurations_are_not_allowed_where_all_of_them_matches(self):
        space = boosters(forbid=[{"booster": "dart", "depth": {15, 16}}, {"drop": True, "depth": 1}])
        base = {"eta": 0.1}
        configs = [
            base | {"booster": "dart", "drop": False, "depth": 15},
            base | {"booster": "dart", "drop": False, "depth": 14},
            base | {"booster": "gbtree", "depth": 16},
            base | {"booster": "gbtree", "depth": 1},
            base | {"booster": "gblinear", "drop": True, "drop_rate": 0.1, "depth": 1},
        ]
        expected = [False, True, True, True, False]
        assert [space.allows(config) for config in configs] == expected
        assert space.allowed(space.encode_many(configs)).tolist() == expected

    @quick
    @given(spaces_with_rows(finite=True), st.data())
    def test_rows_and_configurations_agree_and_so_do_lists_and_functions(self, space_and_rows, data):
        space, U = space_and_rows
        name = data.draw(st.sampled_from(space.names))
        value = space.params[name].value(data.draw(st.integers(0, space.params[name].levels - 1)))
        listed = Space(space.params, forbid=[{name: value}])
        function = Space(space.params, forbid=lambda config: name in config and same(config[name], value))
        expected = [listed.allows(config) for config in space.decode_many(U)]
        assert listed.allowed(U).tolist() == function.allowed(U).tolist() == expected

    def test_with_nothing_forbidden_all_rows_are_allowed_and_their_shape_still_matters(self):
        space = boosters()
        assert space.allowed(np.full((3, 5), 0.4)).tolist() == [True] * 3
        with pytest.raises(InvalidArgument, match=r"shape \(n, 5\), got \(3, 4\)"):
            space.allowed(np.zeros((3, 4)))

    def test_a_function_that_raises_is_shown_with_its_configuration(self):
        space = Space(depth=Integer(1, 4), forbid=lambda config: config["dept"] > 3)
        with pytest.raises(InvalidSpace, match=r"forbid raised KeyError\('dept'\) for config \{'depth': 2\}"):
            space.allows({"depth": 2})
        with pytest.raises(InvalidSpace, match="forbid raised"):
            space.allowed([[0.5]])

    def test_a_function_cannot_change_the_configuration_it_is_shown(self):
        space = Space(depth=Integer(1, 4), forbid=lambda config: bool(config.pop("depth") == 3))
        config = {"depth": 2}
        assert space.allows(config)
        assert config == {"depth": 2}


class TestFiniteSpaces:
    @quick
    @given(spaces(finite=True, most=4))
    def test_size_is_the_number_of_distinct_configurations(self, space):
        keys = [space.key(config) for config in space.enumerate()]
        assert space.size == len(keys) == len(set(keys))

    def test_size_of_a_huge_space_needs_no_enumeration(self):
        gates = {f"gate{i}": Choice([False, True]) for i in range(40)}
        children = {f"n{i}": Integer(1, 2**40, when={f"gate{i}": True}) for i in range(40)}
        wide = Integer(1, 2**47)
        assert Space(gates).size == 2**40
        assert Space(gates | children).size == (1 + 2**40) ** 40
        assert Space(a=wide, b=Integer(1, 3, when={"a": {5, 6}})).size == 2**47 - 2 + 2 * 3

    def test_a_space_is_infinite_only_if_a_real_can_be_active(self):
        never = {"a": "x", "b": 1}
        space = Space(a=Choice(["x", "y"]), b=Integer(1, 2, when={"a": "y"}), c=Real(0, 1, when=never))
        assert space.size == 3
        assert list(space.enumerate()) == [{"a": "x"}, {"a": "y", "b": 1}, {"a": "y", "b": 2}]
        assert boosters().size is None
        with pytest.raises(InvalidSpace, match="parameter 'eta': is a Real, whose values cannot be enumerated"):
            boosters().enumerate()

    def test_enumeration_is_lazy_and_leaves_out_what_is_forbidden(self):
        space = Space({f"n{i}": Integer(1, 1000) for i in range(20)}, forbid=[{"n19": {1, 3}}])
        assert [config["n19"] for config in islice(space.enumerate(), 3)] == [2, 4, 5]


class TestJson:
    @quick
    @given(spaces(portable=True))
    def test_a_space_can_be_rebuilt_from_its_description(self, space):
        described = json.loads(json.dumps(space.as_json(), allow_nan=False))
        rebuilt = Space.from_json(described)
        assert rebuilt == space
        assert rebuilt.difference(described) is None
        assert space.difference(rebuilt.as_json()) is None

    def test_a_list_of_forbidden_configurations_survives(self):
        space = boosters(forbid=[{"booster": {"dart", "gblinear"}, "depth": {1, 2}}, {"drop": True}])
        rebuilt = Space.from_json(json.loads(json.dumps(space.as_json())))
        assert rebuilt == space != boosters()
        rows = np.random.default_rng(0).random((200, 5))
        assert np.array_equal(rebuilt.allowed(rows), space.allowed(rows))
        assert 0 < space.allowed(rows).sum() < 200

    @pytest.mark.parametrize("option", [min, [1, np.ones(2)], np.float32(1), {1: 2}])
    def test_options_that_a_file_cannot_hold_are_named(self, option):
        space = Space(layer=Choice(["a", option]))
        described = json.loads(json.dumps(space.as_json()))
        assert space.difference(described) is None
        with pytest.raises(InvalidSpace, match=r"parameter 'layer': option .* cannot be rebuilt .* space="):
            Space.from_json(described)

    def test_a_forbid_function_cannot_be_rebuilt_and_says_so(self):
        space = Space(a=Integer(1, 3), forbid=math.isfinite)
        assert space.as_json()["forbid"] == {"function": "math.isfinite"}
        with pytest.raises(InvalidSpace, match=r"forbid: function math\.isfinite cannot be rebuilt"):
            Space.from_json(space.as_json())

    def test_something_else_is_not_a_stored_space(self):
        for nonsense in ({}, {"parameters": [{"name": "a"}]}, {"parameters": 3, "forbid": None}):
            with pytest.raises(InvalidSpace, match="not a stored space"):
                Space.from_json(nonsense)

    def test_objects_are_compared_without_their_addresses(self):
        def options():
            return [lambda x: x, object()]

        first, second = Space(f=Choice(options())), Space(f=Choice(options()))
        assert first.difference(second.as_json()) is None
        assert first != second

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            ({"lr": Real(0, 1.0)}, "parameter 'lr': high is 0.1 here and 1.0 there"),
            ({"lr": Integer(0, 1)}, "parameter 'lr': type is 'Real' here and 'Integer' there"),
            ({"y": Choice([1, 3])}, "parameter 'y': options[1] is 2 here and 3 there"),
            ({"y": Choice([1, 2.0])}, "parameter 'y': options[1] is 2 here and 2.0 there"),
            ({"x": Choice([1, 2, 3])}, "parameter 'x': options has length 2 here and 3 there"),
            (
                {"n": Integer(1, 3, when={"x": 1})},
                "parameter 'n': when is {'x': [1]} here and {'x': [0]} there",
            ),
            ({"n": Integer(1, 3)}, "parameter 'n': when is {'x': [1]} here and None there"),
            ({"z": Real(0, 1)}, "parameter 'z': is there but not here"),
            ({"forbid": [{"x": 1}]}, "forbid is None here and [{'x': [0]}] there"),
        ],
    )
    def test_the_first_difference_is_put_in_words(self, other, words):
        choice = Choice([1, 2])
        params = {"lr": Real(0, 0.1), "x": choice, "y": choice, "n": Integer(1, 3, when={"x": 2})}
        assert Space(params).difference(Space(**(params | other)).as_json()) == words

    def test_another_order_is_a_difference(self):
        first, second = Space(a=Real(0, 1), b=Real(0, 1)), Space(b=Real(0, 1), a=Real(0, 1))
        assert first.difference(second.as_json()) == "the order of parameters is ['a', 'b'] here and ['b', 'a'] there"
        missing = Space(a=Real(0, 1)).as_json()
        assert first.difference(missing) == "parameter 'b': is here but not there"

    @pytest.mark.parametrize(
        ("stored", "words"),
        [
            ({"y": 1}, "unknown parameter 'y'; parameters are 'x'"),
            ({"x": 2}, "parameter 'x': stored 2 does not stand for one of 'a', 'b'"),
            ({"x": "a"}, "parameter 'x': stored 'a' does not stand for"),
        ],
    )
    def test_a_stored_configuration_of_another_space_is_refused(self, stored, words):
        with pytest.raises(InvalidConfig) as error:
            Space(x=Choice(["a", "b"])).load_config(stored)
        assert str(error.value).startswith(words)


class TestSurface:
    def test_params_are_read_only_and_in_order(self):
        space = boosters()
        assert list(space.params) == list(space.names) == ["eta", "drop_rate", "drop", "booster", "depth"]
        assert (len(space), space.levels) == (5, (None, None, 2, 3, 16))
        with pytest.raises(TypeError):
            space.params["eta"] = Real(0, 1)

    def test_names_need_not_be_identifiers(self):
        space = Space({"learning rate": Real(0, 1), "forbid": Integer(1, 2)}, depth=Integer(1, 3))
        assert list(space.decode([0.5, 0.0, 0.0])) == ["learning rate", "forbid", "depth"]
        assert eval(repr(space)) == space

    def test_the_repr_of_a_space_builds_it(self):
        space = boosters(forbid=[{"booster": {"dart", "gblinear"}, "depth": 1}])
        assert eval(repr(space)) == space

    def test_equality_looks_through_the_spelling_of_a_condition(self):
        def space(wanted):
            return Space(a=Choice(["x", "y"]), b=Real(0, 1, when={"a": wanted}))

        assert space("x") == space({"x"}) != space("y")
        assert hash(space("x")) == hash(space({"x"}))
        assert space("x") != "space"

    def test_a_space_survives_pickling(self):
        space = boosters(forbid=[{"depth": 3}])
        assert space.size is None
        assert pickle.loads(pickle.dumps(space)) == space
