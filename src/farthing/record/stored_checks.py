"""Checks of what is read from a file: a ValueError that names what is wrong, for a message about the event.

Not those of checks.py: there a user gave an argument and is told what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NoReturn, TypeVar

from farthing.budget import ACCOUNTS, Budget, Charges
from farthing.text.plain import NESTED, shown

# Reading a file is mostly this: so each check first looks for what files usually hold, by its exact type.

UNITS = frozenset({*Budget.UNITS, "evaluations"})
LARGEST = 2**53  # of a whole number: above it a float is not exact, and nothing that is counted comes near
MOST_STEPS = 10**300  # who wants no limit of steps may say so in any way that a float can hold
INFINITE = math.inf
SIMPLE = frozenset({str, int, float, bool, type(None)})
ALL_ACCOUNTS, LEDGER = frozenset(ACCOUNTS), frozenset(("accounts", "committed", "running"))
DEEPEST = 2 * NESTED  # of nested lists and objects: more than is kept of what objectives note


Member = TypeVar("Member", bound=StrEnum)


def _refuse(name: str, given: object) -> NoReturn:
    raise ValueError(f"{name} is {shown(given)}")


def whole(name: str, given: object, least: int = 0, most: float = LARGEST) -> None:
    if type(given) is int and least <= given <= most:
        return
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        _refuse(name, given)


def number(name: str, given: object) -> None:
    if type(given) is float and -INFINITE < given < INFINITE:
        return
    if isinstance(given, bool) or not isinstance(given, int | float):
        _refuse(name, given)
    try:
        finite = math.isfinite(given)
    except OverflowError:  # a whole number that no float can hold
        finite = False
    if not finite:
        _refuse(name, given)


def spent(name: str, given: object) -> None:
    """A number of at least 0."""
    if type(given) is float and 0.0 <= given < INFINITE:
        return
    number(name, given)
    if not isinstance(given, int | float) or given < 0:
        _refuse(name, given)


def amount(name: str, given: object) -> None:
    """None, or a number of at least 0."""
    if given is not None:
        spent(name, given)


def member(kind: type[Member], given: Any) -> Member:
    """The one of that value; asking an enumeration takes three times as long."""
    found = _members(kind).get(given) if type(given) is str else None
    return kind(given) if found is None else found


@cache
def _members(kind: type[Member]) -> dict[object, Member]:
    return {one.value: one for one in kind}


def switch(name: str, given: object) -> None:
    if not isinstance(given, bool):
        _refuse(name, given)


def text(name: str, given: object) -> None:
    if not isinstance(given, str):
        _refuse(name, given)


def mapping(name: str, given: object) -> None:
    if type(given) is not dict and not isinstance(given, Mapping):
        _refuse(name, given)


def only(name: str, given: Mapping[str, object], known: Collection[str]) -> None:
    """No names but these."""
    if unknown := [key for key in given if key not in known]:
        raise ValueError(f"{name} has {shown(unknown[0])}, which is unknown")


def plain(name: str, given: object, depth: int = DEEPEST) -> None:
    """JSON that is not nested deeply, with numbers that a float can hold, or NaN: what an objective may note."""
    if depth == 0:
        raise ValueError(f"{name} is nested too deeply")
    if isinstance(given, dict | Mapping):
        for key, item in given.items():
            if type(key) is not str:
                text(f"a name in {name}", key)
            if depth == 1 or type(item) not in SIMPLE:
                plain(name, item, depth - 1)
    elif isinstance(given, list | tuple):
        for item in given:
            if depth == 1 or type(item) not in SIMPLE:
                plain(name, item, depth - 1)


def attributes(given: object) -> None:
    mapping("attributes", given)
    plain("attributes", given)


def amounts(name: str, given: object) -> None:
    """What was spent, by unit."""
    if type(given) is dict:
        for unit, amount_of_unit in given.items():
            if type(amount_of_unit) is not float or not 0.0 <= amount_of_unit < INFINITE or unit not in UNITS:
                break
        else:
            return
    mapping(name, given)
    assert isinstance(given, Mapping)
    only(name, given, UNITS)
    for unit, amount_of_unit in given.items():
        spent(f"{name} in {unit}", amount_of_unit)


def charges(given: Charges) -> None:
    mapping("charges", given)
    if not ALL_ACCOUNTS.issuperset(given):
        only("charges", given, ACCOUNTS)
    for account, by_unit in given.items():
        amounts(account, by_unit)


def ledger(given: object) -> None:
    """A ledger as an ask knew it."""
    mapping("ledger", given)
    assert isinstance(given, Mapping)
    if given.keys() != LEDGER:
        only("ledger", given, ("accounts", "committed", "running"))
    charges(given["accounts"])
    spent("committed", given["committed"])
    whole("running", given["running"])
