"""Spaces of others say the same here: their libraries are the oracle, by what they sample and what they accept."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import ConfigSpace as cs
import numpy as np
import optuna
import pytest
import scipy.stats as st

from farthing.errors import InvalidSpace
from farthing.space import Choice, Integer, Ordered, Real, Space

with warnings.catch_warnings():  # what importing Ray says is not about us
    warnings.simplefilter("ignore")
    from ray import tune

DRAWS = 1000


def of(thing):
    """The parameter that one thing becomes."""
    return Space.of({"x": thing}).params["x"]


def extremes(param):
    """The values at the two ends of a parameter, and one between."""
    space = Space(x=param)
    return [config["x"] for config in space.decode_many([[0.0], [0.37], [1.0]])]


class TestMappings:
    def test_a_space_is_returned_as_it_is(self):
        space = Space(x=Real(0, 1))
        assert Space.of(space) is space

    def test_farthing_parameters_keep_their_conditions_beside_others(self):
        space = Space.of(
            {
                "kind": ["a", "b"],
                "eta": Real(0, 1, when={"kind": "b"}),
                "C": st.loguniform(1, 10),
                "depth": optuna.distributions.IntDistribution(1, 4),
                "width": tune.randint(1, 5),
                "height": cs.Integer("other_name", (1, 4)),
            }
        )
        assert space == Space(
            kind=Choice(["a", "b"]),
            eta=Real(0, 1, when={"kind": "b"}),
            C=Real(1, 10, log=True),
            depth=Integer(1, 4),
            width=Integer(1, 4),
            height=Integer(1, 4),
        )

    def test_names_need_not_be_identifiers(self):
        assert Space.of({"svc__C": [1, 2], "a b; rm": [1, 2], "é": [1, 2]}).names == ("svc__C", "a b; rm", "é")

    def test_nothing_foreign_is_imported_to_convert(self):
        script = (
            "import sys; from farthing import Space; Space.of({'a': [1, 2, 3], 'b': ['x']}); "
            "print([m for m in ('optuna', 'ray', 'ConfigSpace', 'sklearn') if m in sys.modules])"
        )
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert ended.stdout.strip() == "[]", ended.stderr


class TestLists:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ([1, 2, 3], Ordered([1, 2, 3])),
            ([1, 10, 100], Ordered([1, 10, 100], log=True)),
            ([100, 10, 1], Ordered([100, 10, 1], log=True)),
            ([16, 32, 64, 128], Ordered([16, 32, 64, 128], log=True)),
            ([0.1, 0.3, 1.0, 3.0], Ordered([0.1, 0.3, 1.0, 3.0], log=True)),
            ([50, 100, 150, 200], Ordered([50, 100, 150, 200])),
            ([0, 1, 10, 100], Ordered([0, 1, 10, 100])),
            ((3, 2, 1), Ordered([3, 2, 1])),
            (range(2, 9, 3), Ordered([2, 5, 8])),
            (np.logspace(-2, 2, 5), Ordered([0.01, 0.1, 1.0, 10.0, 100.0], log=True)),
            (np.arange(3), Ordered([0, 1, 2])),
            ([-1e308, 0.0, 1e308], Ordered([-1e308, 0.0, 1e308])),
            ([5e-324, 1.0, 1.7e308], Ordered([5e-324, 1.0, 1.7e308], log=True)),
            ([1, 2], Choice([1, 2])),
            ([7], Choice([7])),
            ([1, 3, 2], Choice([1, 3, 2])),
            ([1, 2, None], Choice([1, 2, None])),
            ([1, 2, math.inf], Choice([1, 2, math.inf])),
            ([1, 2, 10**400], Choice([1, 2, 10**400])),
            ([False, True, 2], Choice([False, True, 2])),
            (["a", "b", "c"], Choice(["a", "b", "c"])),
            ([min, max, sum], Choice([min, max, sum])),
            ([(1, 2), (3,)], Choice([(1, 2), (3,)])),
            (np.array(["a", "b"]), Choice(["a", "b"])),
            (np.array([True, False]), Choice([True, False])),
        ],
    )
    def test_numbers_in_order_are_ordered_and_all_else_is_a_choice(self, options, expected):
        assert of(options) == expected

    def test_estimators_are_options(self):
        from sklearn.decomposition import PCA

        options = [PCA(2), "passthrough", PCA(3)]
        space = Space.of({"reduce": options})
        assert [config["reduce"] for config in space.enumerate()] == options
        assert next(space.enumerate())["reduce"] is options[0]


class TestScipy:
    @pytest.mark.parametrize(
        ("frozen", "expected"),
        [
            (st.uniform(2, 3), Real(2, 5)),
            (st.uniform(loc=-1, scale=0.5), Real(-1, -0.5)),
            (st.uniform(), Real(0, 1)),
            (st.loguniform(1e-4, 1e2), Real(1e-4, 1e2, log=True)),
            (st.reciprocal(1e-4, 1e2), Real(1e-4, 1e2, log=True)),
            (st.loguniform(1, 10, scale=3), Real(3, 30, log=True)),
            (st.randint(1, 5), Integer(1, 4)),
            (st.randint(1, 5, loc=3), Integer(4, 7)),
            (st.randint(low=0, high=2), Integer(0, 1)),
            (st.randint(3, 4), Choice([3])),
        ],
    )
    def test_bounds_are_those_of_the_support(self, frozen, expected):
        param = of(frozen)
        assert param == expected
        space = Space(x=param)
        if param.levels != 1:  # scipy samples nothing from a width of 0
            for value in frozen.rvs(DRAWS, random_state=0):
                space.validate({"x": value})
        low, high = frozen.support()
        assert all(low <= value <= high for value in extremes(param))
        if isinstance(param, Integer):
            assert min(frozen.pmf([param.low, param.high])) > 0
            assert frozen.pmf(param.low - 1) == frozen.pmf(param.high + 1) == 0


def optuna_draws(distribution):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a step that does not land on high is Optuna's to warn about
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask({"x": distribution}).params["x"] for _ in range(DRAWS)]


@pytest.fixture(scope="module", autouse=True)
def _quiet_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


FloatD, IntD = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
CategoricalD = optuna.distributions.CategoricalDistribution


class TestOptuna:
    @pytest.mark.parametrize(
        ("distribution", "expected"),
        [
            (FloatD(-1, 2), Real(-1, 2)),
            (FloatD(1e-5, 1, log=True), Real(1e-5, 1, log=True)),
            (FloatD(0, 1, step=0.25), Ordered([0.0, 0.25, 0.5, 0.75, 1.0])),
            (FloatD(0.5, 0.5), Choice([0.5])),
            (IntD(-3, 9), Integer(-3, 9)),
            (IntD(1, 1000, log=True), Integer(1, 1000, log=True)),
            (IntD(1, 9, step=4), Integer(1, 9, step=4)),
            (IntD(4, 4), Choice([4])),
            (CategoricalD([1, 10, 100]), Ordered([1, 10, 100], log=True)),
            (CategoricalD(["a", None, True]), Choice(["a", None, True])),
        ],
    )
    def test_values_are_the_same(self, distribution, expected):
        param = of(distribution)
        assert param == expected
        for value in optuna_draws(distribution):
            assert Space(x=param).validate({"x": value}) == {"x": value}
        for value in extremes(param):
            assert distribution._contains(distribution.to_internal_repr(value))

    @pytest.mark.parametrize(("low", "high", "step"), [(0, 1, 0.1), (0.1, 0.7, 0.1), (1e-3, 2.0, 0.003), (-1, 1, 1e-2)])
    def test_odd_steps_give_optunas_own_floats(self, low, high, step):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            distribution = FloatD(low, high, step=step)
        param = of(distribution)
        assert set(optuna_draws(distribution)) <= set(param.values)
        assert all(distribution._contains(value) for value in param.values)


class TestRay:
    @pytest.mark.parametrize(
        ("domain", "expected"),
        [
            (tune.uniform(-1, 2), Real(-1, 2)),
            (tune.loguniform(1e-4, 1), Real(1e-4, 1, log=True)),
            (tune.quniform(0, 1, 0.25), Ordered([0.0, 0.25, 0.5, 0.75, 1.0])),
            (tune.quniform(0.2, 0.9, 0.1), Ordered([k * 0.1 for k in range(2, 10)])),
            (tune.qloguniform(0.5, 8, 0.5), Ordered([k * 0.5 for k in range(1, 17)], log=True)),
            (tune.randint(1, 5), Integer(1, 4)),
            (tune.randint(3, 4), Choice([3])),
            (tune.lograndint(1, 1000), Integer(1, 999, log=True)),
            (tune.qrandint(2, 10, 2), Integer(2, 10, step=2)),
            (tune.qrandint(1, 10, 3), Integer(3, 9, step=3)),
            (tune.qrandint(1, 5), Integer(1, 4)),
            (tune.qlograndint(10, 1000, 10), Integer(10, 1000, log=True, step=10)),
            (tune.choice([8, 16, 32]), Ordered([8, 16, 32], log=True)),
            (tune.choice(["a", ["b"], None]), Choice(["a", ["b"], None])),
            (tune.grid_search([1, 2, 3]), Ordered([1, 2, 3])),
        ],
    )
    def test_values_are_the_same(self, domain, expected):
        param = of(domain)
        assert param == expected
        if isinstance(domain, dict):
            return
        seen = domain.sample(size=DRAWS, random_state=np.random.default_rng(0))
        for value in seen:
            Space(x=param).validate({"x": value})
        assert all(domain.is_valid(value) for value in extremes(param))
        if param.levels and param.levels <= 20:
            assert {param.find(value) for value in seen} == set(range(param.levels))


def conditional_space() -> cs.ConfigurationSpace:
    space = cs.ConfigurationSpace(seed=3)
    kind = cs.Categorical("kind", ["svm", "net", "tree"])
    size = cs.OrdinalHyperparameter("size", ["s", "m", "l"])
    layers, depth = cs.Integer("layers", (1, 4)), cs.Integer("depth", (1, 20), log=True)
    rate, drop = cs.Float("rate", (1e-4, 1.0), log=True), cs.Float("drop", (0.0, 0.5))
    wide, momentum, fixed = cs.Categorical("wide", [True, False]), cs.Float("momentum", (0, 1)), cs.Constant("fixed", 7)
    space.add([kind, size, layers, depth, rate, drop, wide, momentum, fixed])
    space.add(
        [
            cs.EqualsCondition(layers, kind, "net"),
            cs.InCondition(rate, kind, ["net", "svm"]),
            cs.NotEqualsCondition(depth, kind, "net"),
            cs.AndConjunction(cs.GreaterThanCondition(drop, layers, 1), cs.GreaterThanCondition(drop, size, "s")),
            cs.OrConjunction(cs.EqualsCondition(wide, size, "l"), cs.EqualsCondition(wide, size, "m")),
            cs.LessThanCondition(momentum, layers, 4),
        ]
    )
    space.add(
        [
            cs.ForbiddenEqualsClause(layers, 2),
            cs.ForbiddenAndConjunction(
                cs.ForbiddenInClause(kind, ["svm", "tree"]), cs.ForbiddenGreaterThanClause(depth, 15)
            ),
        ]
    )
    return space


class TestConfigSpace:
    @pytest.mark.parametrize(
        ("foreign", "expected"),
        [
            (cs.Float("x", (0.5, 2)), Real(0.5, 2)),
            (cs.Float("x", (0.5, 2), log=True), Real(0.5, 2, log=True)),
            (cs.Integer("x", (1, 5)), Integer(1, 5)),
            (cs.Integer("x", (1, 500), log=True), Integer(1, 500, log=True)),
            (cs.Categorical("x", [3, 5, 9]), Choice([3, 5, 9])),
            (cs.Categorical("x", ["a", "b"], default="b"), Choice(["a", "b"])),
            (cs.Categorical("x", [1, 10, 100], ordered=True), Ordered([1, 10, 100], log=True)),
            (cs.Categorical("x", ["s", "m"], ordered=True), Ordered(["s", "m"])),
            (cs.Categorical("x", [1, 2], ordered=True), Ordered([1, 2])),
            (cs.Constant("x", "only"), Choice(["only"])),
        ],
    )
    def test_values_are_the_same(self, foreign, expected):
        param = of(foreign)
        assert param == expected
        for value in foreign.sample_value(DRAWS):
            Space(x=param).validate({"x": value})
        assert all(foreign.legal_value(value) for value in extremes(param))

    def test_configurations_of_either_side_are_legal_on_the_other(self):
        foreign = conditional_space()
        space = Space.of(foreign)
        assert sorted(space.names) == sorted(foreign)
        for config in foreign.sample_configuration(DRAWS):
            ours = space.validate(dict(config))
            assert set(ours) == set(config)
            assert space.allows(ours)
        U = np.random.default_rng(0).random((DRAWS, len(space.names)))
        forbidden = 0
        for config in space.decode_many(U):
            try:
                cs.Configuration(foreign, values=config).check_valid_configuration()
            except cs.exceptions.ForbiddenValueError:
                forbidden += 1
                assert not space.allows(config)
            else:
                assert space.allows(config)
        assert forbidden > DRAWS / 100

    def test_or_of_ands_that_are_forbidden_is_a_list_of_clauses(self):
        space = cs.ConfigurationSpace()
        a, b = cs.Categorical("a", ["x", "y"]), cs.Integer("b", (1, 3))
        space.add([a, b])
        either = cs.ForbiddenOrConjunction(cs.ForbiddenEqualsClause(b, 1), cs.ForbiddenEqualsClause(b, 3))
        space.add(cs.ForbiddenAndConjunction(cs.ForbiddenEqualsClause(a, "y"), either))
        ours = Space.of(space)
        assert [(c["a"], c["b"]) for c in ours.enumerate()] == [("x", 1), ("x", 2), ("x", 3), ("y", 2)]

    def test_the_default_is_a_start_that_is_valid(self):
        foreign = conditional_space()
        Space.of(foreign).validate(dict(foreign.get_default_configuration()))


def cs_of(*things):
    space = cs.ConfigurationSpace()
    for thing in things:
        space.add(thing)
    return space


def with_or_of_two_parents():
    a, b, c = cs.Categorical("a", [1, 2]), cs.Categorical("b", [1, 2]), cs.Float("c", (0, 1))
    return cs_of([a, b, c], cs.OrConjunction(cs.EqualsCondition(c, a, 1), cs.EqualsCondition(c, b, 1)))


def with_condition_on_a_real():
    a, c = cs.Float("a", (0, 1)), cs.Float("c", (0, 1))
    return cs_of([a, c], cs.GreaterThanCondition(c, a, 0.5))


def with_difference_from_a_conditional():
    a, b, c = cs.Categorical("a", [1, 2]), cs.Integer("b", (1, 3)), cs.Float("c", (0, 1))
    return cs_of([a, b, c], cs.EqualsCondition(b, a, 1), cs.NotEqualsCondition(c, b, 3))


def with_many_levels_compared():
    a, c = cs.Integer("a", (1, 5000)), cs.Float("c", (0, 1))
    return cs_of([a, c], cs.GreaterThanCondition(c, a, 9))


def with_relation():
    a, b = cs.Integer("a", (1, 5)), cs.Integer("b", (1, 5))
    return cs_of([a, b], cs.ForbiddenLessThanRelation(a, b))


def in_mapping(thing):
    return lambda: {"x": thing}


ERRORS = {
    "normal": (
        in_mapping(st.norm(0, 1)),
        "parameter 'x': scipy.stats.norm\\(0, 1\\) has no counterpart in Farthing; expected scipy",
    ),
    "discrete": (in_mapping(st.poisson(3)), "parameter 'x': scipy.stats.poisson\\(3\\) has no counterpart"),
    "not frozen": (in_mapping(st.uniform), r"parameter 'x': <scipy.stats.*uniform\(loc, scale\)"),
    "newer scipy": (in_mapping(st.Uniform(a=0.0, b=1.0)), "parameter 'x': .* has no counterpart in Farthing"),
    "shifted": (in_mapping(st.loguniform(1, 10, loc=2)), "parameter 'x': scipy.stats.loguniform with loc=2"),
    "shifted by position": (in_mapping(st.loguniform(1, 10, 2)), "parameter 'x': .*with loc=2.*expected loc=0"),
    "arrays": (in_mapping(st.uniform([0, 1], 1)), "parameter 'x': Real: low: expected a finite number"),
    "upside down": (in_mapping(st.randint(5, 1)), r"parameter 'x': scipy.stats.randint\(5, 1\) has no values"),
    "no width": (in_mapping(st.uniform(3, scale=0)), r"parameter 'x': scipy.stats.uniform\(3, scale=0\) has no values"),
    "scalar": (in_mapping(3), r"parameter 'x': expected .*\[value\] for a constant.*, got 3"),
    "string": (in_mapping("adam"), "parameter 'x': expected a Farthing parameter, .*, got 'adam'"),
    "none": (in_mapping(None), "parameter 'x': expected .*, got None"),
    "set": (in_mapping({1, 2}), r"parameter 'x': expected .*, got \{1, 2\}"),
    "generator": (in_mapping(i for i in range(3)), "parameter 'x': expected .*, got <generator"),
    "class": (in_mapping(Real), "parameter 'x': expected .*, got <class"),
    "empty list": (in_mapping([]), "parameter 'x': Choice: options: expected at least one value, got"),
    "twice": (
        in_mapping(["a", "b", "a"]),
        r"parameter 'x': Choice: options\[2\]: expected a value other than options\[0\], got 'a'",
    ),
    "long": (in_mapping("y" * 5000), r"^.{0,600}$"),
    "many steps": (in_mapping(FloatD(0, 1, step=1e-4)), "parameter 'x': .* at most 1000 values, got 10001"),
    "many quanta": (in_mapping(tune.quniform(0, 1, 1e-4)), "parameter 'x': .* at most 1000 values, got 10001"),
    "randn": (in_mapping(tune.randn(0, 1)), "parameter 'x': a Ray Tune Normal sampler has no counterpart"),
    "qrandn": (in_mapping(tune.qrandn(0, 1, 0.5)), "parameter 'x': a Ray Tune Normal sampler has no counterpart"),
    "sample_from": (in_mapping(tune.sample_from(lambda c: 1)), "parameter 'x': <ray.* has no counterpart"),
    "nested": (in_mapping({"lr": tune.uniform(0, 1)}), "parameter 'x': .*cannot be nested.*'x.lr'"),
    "empty dict": (in_mapping({}), r"parameter 'x': expected .*, got \{\}"),
    "no grid": (in_mapping({"grid_search": 3}), "parameter 'x': expected .*, got {'grid_search': 3}"),
    "array without length": (in_mapping(np.array(3)), "parameter 'x': expected .*, got array"),
    "grid and more": (in_mapping({"grid_search": [1], "y": 2}), "parameter 'x': expected .*, got"),
    "weights": (in_mapping(cs.Categorical("x", [1, 2], weights=[1, 3])), "parameter 'x': .*without weights"),
    "normal hyperparameter": (
        lambda: cs_of(cs.NormalFloatHyperparameter("n", 0, 1, lower=-3, upper=3)),
        "parameter 'n': .*remove_hyperparameter_priors",
    ),
    "beta hyperparameter": (
        lambda: cs_of(cs.BetaIntegerHyperparameter("n", 2, 3, lower=1, upper=9)),
        "parameter 'n': .*has no counterpart",
    ),
    "or of parents": (with_or_of_two_parents, "parameter 'c': the condition .* 'or' between values of one parameter"),
    "real parent": (with_condition_on_a_real, "parameter 'c': the condition .* is about 'a', a Real"),
    "not equal": (with_difference_from_a_conditional, "parameter 'c': .* on a conditional parameter"),
    "many levels": (with_many_levels_compared, "parameter 'c': .*'a', which has 5000 values; expected at most 1000"),
    "relation": (with_relation, "the clause .* has no counterpart in Farthing"),
    "list of mappings": (lambda: [{"x": [1, 2]}], "space: expected a Space, .* names to .*, got"),
    "one distribution": (lambda: st.uniform(0, 1), "space: expected a Space, .* names to .*, got"),
    "nothing": (lambda: None, "space: expected a Space, .* names to .*, got None"),
    "empty": (dict, "a space needs at least one parameter"),
    "number as name": (lambda: {3: [1, 2]}, "name of a parameter: expected a text that is not empty, got 3"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_has_no_counterpart_is_an_error_that_names_it(case):
    make, message = ERRORS[case]
    with pytest.raises(InvalidSpace, match=message):
        Space.of(make())


def test_a_configspace_without_its_priors_is_accepted():
    foreign = cs_of(
        cs.NormalFloatHyperparameter("n", 0, 1, lower=-3, upper=3), cs.Categorical("c", [1, 2], weights=[1, 3])
    )
    ours = Space.of(foreign.remove_hyperparameter_priors())
    assert ours == Space(n=Real(-3, 3), c=Choice([1, 2])) or ours == Space(c=Choice([1, 2]), n=Real(-3, 3))


def test_ray_starts_no_processes():
    import ray

    assert not ray.is_initialized()
