"""Checks of what is read from a file: a ValueError that names what is wrong, for a message about the event.

Not those of checks.py: there a user gave an argument and is told what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from farthing.budget import Charges


def whole(name: str, given: object, most: float = math.inf) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= most:
        raise ValueError(f"{name} is {given!r}")


def number(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError(f"{name} is {given!r}")


def amount(name: str, given: object) -> None:
    """None, or a number of at least 0."""
    if given is not None:
        number(name, given)
        if not isinstance(given, int | float) or given < 0:
            raise ValueError(f"{name} is {given!r}")


def text(name: str, given: object) -> None:
    if not isinstance(given, str):
        raise ValueError(f"{name} is {given!r}")


def mapping(name: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} is {given!r}")


def charges(given: Charges) -> None:
    mapping("charges", given)
    for account, amounts in given.items():
        mapping(account, amounts)
        for unit, spent in amounts.items():
            number(f"{account} in {unit}", spent)
