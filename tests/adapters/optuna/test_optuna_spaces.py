"""Search spaces that come into being while objectives run are read from the trials as they are."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from farthing.adapters.optuna.distributions import translated
from farthing.adapters.optuna.spaces import parts_of, settled

UNIT = FloatDistribution(0, 1)
KIND = CategoricalDistribution(["a", "b", "c"])
LAYERS = IntDistribution(1, 9)
SPACE = {"kind": KIND, "layers": LAYERS, "x": UNIT, "y": UNIT, "z": UNIT}


def trials(*params, state=TrialState.COMPLETE, space=SPACE):
    made = [
        create_trial(
            state=state, value=1.0 if state is TrialState.COMPLETE else None, params=one,
            distributions={name: space[name] for name in one},
        )
        for one in params
    ]  # fmt: skip
    for number, trial in enumerate(made):
        trial.number = number
    return made


def spaces(found):
    distributions = settled(found)
    return [part.space for part in parts_of(found, distributions)]


def when(found):
    return {name: param.when for space in spaces(found) for name, param in space.params.items() if param.when}


def test_what_all_trials_have_is_one_space_in_alphabetical_order():
    (space,) = spaces(trials({"y": 0.1, "kind": "a", "x": 0.5}, {"x": 0.2, "y": 0.2, "kind": "b"}))
    assert space.names == ("kind", "x", "y")


def test_a_parameter_depends_on_the_option_with_which_it_comes():
    found = trials({"kind": "a", "x": 0.5}, {"kind": "b"}, {"kind": "c", "x": 0.1})
    assert when(found) == {"x": {"kind": frozenset({"a", "c"})}}


def test_an_option_that_was_not_tried_comes_without():
    assert when(trials({"kind": "a", "x": 0.5}, {"kind": "b"})) == {"x": {"kind": frozenset({"a"})}}


def test_a_parameter_depends_on_numbers_as_the_nearest_ones_seen():
    found = trials({"layers": 1}, {"layers": 4, "x": 0.1}, {"layers": 8, "x": 0.1})
    assert when(found) == {"x": {"layers": frozenset(range(3, 10))}}


def test_conditions_may_be_nested():
    found = trials(
        {"kind": "a", "layers": 1}, {"kind": "a", "layers": 2, "x": 0.5}, {"kind": "b"},
        {"kind": "a", "layers": 9, "x": 0},
    )  # fmt: skip
    assert when(found) == {"layers": {"kind": frozenset({"a"})}, "x": {"layers": frozenset(range(2, 10))}}
    assert len(spaces(found)) == 1


def test_what_nothing_explains_is_proposed_on_its_own_with_what_comes_with_it():
    found = trials(
        {"kind": "a", "x": 0.1}, {"kind": "a", "y": 0.1, "z": 0.1}, {"kind": "b", "x": 0.1},
        {"kind": "b", "y": 0, "z": 0},
    )  # fmt: skip
    assert [space.names for space in spaces(found)] == [("kind",), ("x",), ("y", "z")]


def test_a_trial_that_failed_early_is_no_evidence_of_a_condition():
    whole = trials({"kind": "a", "x": 0.5}, {"kind": "b", "x": 0.5})
    early = trials({"kind": "b"}, state=TrialState.FAIL)
    assert when([*whole, *early]) == {}


def test_a_range_is_settled_when_three_trials_agree():
    wide = {"x": FloatDistribution(0, 9)}
    before, after = trials({"x": 0.5}, {"x": 0.5}), trials({"x": 5.0}, {"x": 6.0}, {"x": 7.0}, space=wide)
    assert settled(before) == {"x": UNIT}
    assert settled([*before, *after[:2]]) == {}
    assert settled([*before, *after]) == wide
    (part,) = parts_of([*before, *after], wide)
    assert part.key({"x": 0.5}) is not None
    assert part.key({"x": 9.5}) is None


def test_constants_are_left_to_optuna():
    assert settled(trials({"x": 1.0}, space={"x": FloatDistribution(1, 1)})) == {}


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1, 2), FloatDistribution(1e-5, 10, log=True), FloatDistribution(-10.2, 10.2, step=0.1),
        FloatDistribution(0, 1, step=1e-6), IntDistribution(-3, 9), IntDistribution(1, 100, log=True),
        IntDistribution(0, 10**6, step=10), CategoricalDistribution([1, 10, 100]),
        CategoricalDistribution([None, True]), CategoricalDistribution(["a", 1, 1.5, False]),
    ],
    ids=str,
)  # fmt: skip
def test_every_value_of_optuna_is_there_and_back(distribution):
    """What Optuna's own random sampler draws is found in the parameter, and written as it was."""
    found = translated("p", distribution)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(30):
        value = study.ask({"p": distribution}).params["p"]
        place = found.parameter.find(found.read(value))
        assert place is not None
        back = found.write(found.parameter.value(place))
        assert distribution._contains(distribution.to_internal_repr(back))
        assert back == pytest.approx(value) if isinstance(value, float) else back is value or back == value
        assert type(back) is type(value)


def test_options_that_repeat_each_other_have_no_counterpart():
    assert translated("p", CategoricalDistribution(["a", "a"])) is None
