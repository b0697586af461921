"""From the words of a command line to a budget, a space and limits of trials."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from os.path import isfile

from farthing.budget import Budget
from farthing.checks import refuse
from farthing.cli.script import NotDefined, load, split_address
from farthing.cli.space_file import SpaceInFile, space_in
from farthing.cli.toml_file import TomlFile
from farthing.errors import InvalidArgument, InvalidBudget, InvalidSpace
from farthing.space import Space
from farthing.trial import Config


def parse_budget(text: str) -> Budget:
    """A budget as in Python ("10m", "$5, 100 evaluations"), or limits by name, or both.

    >>> parse_budget("cost=300, 40 evaluations")
    Budget(cost=300.0, evaluations=40)
    >>> parse_budget("usd=5, usd_per_hour=2.5")
    Budget(usd=5.0, usd_per_hour=2.5)
    """
    names = [field.name for field in fields(Budget)]
    named: dict[str, float] = {}
    rest: list[str] = []
    for part in text.split(","):
        name, equals, amount = (word.strip() for word in part.partition("="))
        if not equals:
            rest.append(part)
            continue
        try:
            number = float(amount)
        except ValueError:
            number = 0.0
        if name not in names or name in named or number <= 0.0:
            refuse("budget", f"one of {', '.join(names)} = a number above 0", part.strip(), InvalidBudget)
        named[name] = number
    if rest or not named:
        given = Budget.of(", ".join(rest)).as_json()
        if twice := given.keys() & named.keys():
            raise InvalidBudget(f"budget: {twice.pop()} is given twice in {text!r}")
        named = {**given, **named}
    return Budget.from_json(named)


def with_unit(seconds: str) -> str:
    """A duration in which a plain number is one of seconds.

    >>> with_unit("5"), with_unit("1.5m")
    ('5s', '1.5m')
    """
    return f"{seconds.strip()}s" if re.fullmatch(r"\s*\d+(\.\d+)?\s*", seconds) else seconds


@dataclass(frozen=True)
class FoundSpace:
    """A space, its address if it comes from a script, and the configuration of its defaults if it has some."""

    space: Space
    address: str | None = None
    default: Config | None = None


def find_space(given: str | SpaceInFile | None, objective: str | None, folder: str) -> FoundSpace:
    """The space that a user names: a TOML file, what was read from one, or an address, script.py:name. Without it, the
    space is `space` in the objective's script."""
    if given is None:
        return _space_beside(objective, folder)
    if isinstance(given, str):
        if is_address(given):
            return FoundSpace(_space_at(given, folder), given)
        given = space_in(TomlFile.read(given, InvalidSpace))
    return FoundSpace(given.space, None, given.default)


def is_address(space: str) -> bool:
    """Whether a space is named by its script, not by a file."""
    return ":" in space and not isfile(space)


def _space_beside(objective: str | None, folder: str) -> FoundSpace:
    """The space in the script of an objective."""
    if objective is None:
        raise InvalidArgument("--space is missing: expected a TOML file, or script.py:name")
    script = split_address(objective)[0]
    address = f"{script}:space"
    try:
        return FoundSpace(_space_at(address, folder), address)
    except NotDefined as error:
        raise InvalidArgument(f"--space is missing, and {script} does not define 'space' either") from error


def _space_at(address: str, folder: str) -> Space:
    space = load(address, folder)
    if not isinstance(space, Space):
        refuse(address, "a farthing.Space", space, InvalidSpace)
    return space
