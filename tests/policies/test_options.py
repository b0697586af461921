"""Every option of every policy and stopping rule: nonsense is refused by name, numbers are stored as Python's own."""

from __future__ import annotations

import json
import math
from dataclasses import Field, fields
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.policies import BY_NAME, policy_as_json, policy_from_json
from farthing.policies.bopt import stopping

KINDS: tuple[Any, ...] = (*BY_NAME.values(), *stopping.BY_NAME.values())
OPTIONS = [pytest.param(kind, field, id=f"{kind.name}-{field.name}") for kind in KINDS for field in fields(kind)]


class Unprintable:
    """An object of a user, hostile to messages."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


NONSENSE = {
    "a word": "zzz",
    "no word": "",
    "digits": "1",
    "bytes": b"1",
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "negative": -1,
    "complex": 1j,
    "huge": 10**400,
    "a list": [1],
    "an array": np.ones(2),
    "a dict": {},
    "an unknown name": {"name": "zzz"},
    "a name of no type": {"name": [1]},
    "a class": stopping.Elbow,
    "an object": object(),
    "an unprintable object": Unprintable(),
    "None": None,
    "True": True,
    "one": 1,
}


def makes_sense(field: Field[Any], what: str) -> bool:
    """Whether a kind of nonsense is none for this option, by its annotation."""
    kind = str(field.type)
    match what:
        case "None":
            return "None" in kind
        case "True":
            return kind.startswith("bool")
        case "one":
            return kind.startswith(("int", "float"))
        case "huge":
            return kind.startswith("int")
    return False


REFUSED = [
    pytest.param(kind, field.name, value, id=f"{kind.name}-{field.name}-{what}")
    for kind in KINDS
    for field in fields(kind)
    for what, value in NONSENSE.items()
    if not makes_sense(field, what)
]


@pytest.mark.parametrize(("kind", "option", "value"), REFUSED)
def test_nonsense_is_refused_by_the_name_of_the_option(kind, option, value):
    with pytest.raises(InvalidArgument, match=f"^{kind.name}: {option}: expected .*, got "):
        kind(**{option: value})


@pytest.mark.parametrize(("kind", "field"), OPTIONS)
def test_what_numpy_gives_is_stored_as_python_has_it(kind, field):
    """np.int64(3) is 3 in the object, and so in the study file."""
    default = field.default
    match default:
        case bool():
            given = np.bool_(default)
        case int() | None if "int" in str(field.type):
            given = np.int64(default or 3)
        case float() | None if "float" in str(field.type):
            given = np.float64(0.5 if default is None else default)
        case _:
            given = default
    stored = getattr(kind(**{field.name: given}), field.name)
    assert type(stored) in (bool, int, float, str, type(None))
    assert stored == given
    assert json.dumps(policy_as_json(kind(**{field.name: given})), allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_without_options_given_is_the_one_with_its_defaults_given(kind):
    assert kind(**{field.name: field.default for field in fields(kind)}) == kind()


def test_a_study_file_holds_options_that_came_from_numpy(tmp_path):
    policy = ft.policies.BAPI(horizon=np.int64(3), eps=np.float32(0.5), monotone=np.False_)
    space = ft.Space(x=ft.Real(0, 1))
    ft.Study(space, ft.Budget(cost=1), policy=policy, max_steps=3, storage=tmp_path / "study.db").close()
    with ft.Study.resume(tmp_path / "study.db") as study:
        assert study.policy == ft.policies.BAPI(horizon=3, eps=0.5, monotone=False)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"name": "zzz"}, "'zzz' is not a policy of Farthing"),
        ({"initial": 3}, "None is not a policy of Farthing"),
        ({"name": "cei", "later": 1}, "'cei' cannot have these options: .*later"),
        ({"name": "cei", "tradeoff": 7}, "cei: tradeoff: expected a number from 0 to 1, got 7"),
        (
            {"name": "bopt", "ends": {"name": "share", "later": 1}},
            "bopt: ends: expected the name and options",
        ),
        (
            {"name": "bopt", "ends": {"name": "share", "share": 7}},
            "bopt: ends: share: share: expected a number",
        ),
    ],
)
def test_a_stored_policy_that_makes_no_sense_is_refused(stored, message):
    """A ValueError, as of all that a file of any origin may hold; an InvalidArgument, if only the name is unknown."""
    with pytest.raises(ValueError, match=message) as refused:
        policy_from_json(stored)
    assert isinstance(refused.value, InvalidArgument) == ("not a policy" in message)


@pytest.mark.parametrize("rule", [{"name": "share", "share": 0.25}, stopping.Share(share=np.float64(0.25))])
def test_a_stopping_rule_is_stored_with_its_options(rule):
    policy = ft.policies.BOPT(fast_ends=rule)
    assert policy.fast_ends == stopping.Share(share=0.25)
    assert policy_as_json(policy)["fast_ends"] == {"name": "share", "share": 0.25}
    assert policy_from_json(json.loads(json.dumps(policy_as_json(policy)))) == policy


def test_a_log_normal_bias_needs_a_factor_between_the_levels():
    with pytest.raises(InvalidArgument, match="bopt: rho: expected a number above 0"):
        ft.policies.BOPT(bias="lognormal", rho=None)
