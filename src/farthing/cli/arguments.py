"""From the words of a command line to a budget and a space."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from farthing.budget import Budget
from farthing.checks import refuse
from farthing.cli.script import NotDefined, load, split_address
from farthing.cli.space_file import read_space
from farthing.errors import InvalidArgument, InvalidBudget, InvalidSpace
from farthing.space import Space


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


def find_space(given: str | None, objective: str | None, folder: str) -> tuple[Space, str | None]:
    """The space, and its address if it comes from a script.

    `given` is a TOML file or an address, script.py:name. Without it, the space is `space` in the objective's script.
    """
    if given is not None and (":" not in given or Path(given).is_file()):
        return read_space(given), None
    if given is not None:
        return _space_at(given, folder), given
    if objective is None:
        raise InvalidArgument("--space is missing: expected a TOML file, or script.py:name")
    script = split_address(objective)[0]
    try:
        return _space_at(f"{script}:space", folder), f"{script}:space"
    except NotDefined as error:
        raise InvalidArgument(f"--space is missing, and {script} does not define 'space' either") from error


def _space_at(address: str, folder: str) -> Space:
    space = load(address, folder)
    if not isinstance(space, Space):
        refuse(address, "a farthing.Space", space, InvalidSpace)
    return space
