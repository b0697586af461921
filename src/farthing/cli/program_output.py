"""Read what a program prints: a value and its cost, or a step and what it reports."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from farthing.errors import FarthingError


class ProgramFailed(FarthingError):
    """A program failed, or printed no value. It has no traceback: where in Farthing it is raised is of no interest."""

    __traceback__ = None


def read_result(text: str, where: str) -> Any:
    """A value, optionally with its cost: a number, two numbers, or a JSON object.

    >>> read_result("0.5", "it is"), read_result("0.5 12", "it is"), read_result('{"value": 1, "epochs": 3}', "it is")
    (0.5, {'value': 0.5, 'cost': 12.0}, {'value': 1, 'epochs': 3})
    """
    if text.startswith("{"):
        with suppress(ValueError):
            return json.loads(text)
    numbers = _numbers(text)
    if numbers is not None and len(numbers) == 1:
        return numbers[0]
    if numbers is not None and len(numbers) == 2:
        return {"value": numbers[0], "cost": numbers[1]}
    raise ProgramFailed(
        f"the program ended without a value: {where} {quoted(text)}; "
        'expected a number, a number and its cost, or a JSON object with "value"'
    )


def read_step(line: str) -> tuple[int, Any] | None:
    """A step and what it reports, or None for any other line.

    >>> read_step("3 0.25"), read_step('{"step": 4, "value": 0.2, "loss": 1}'), read_step("loading data")
    ((3, 0.25), (4, {'value': 0.2, 'loss': 1}), None)
    """
    if line.startswith("{"):
        with suppress(ValueError):
            found = json.loads(line)
            step = found.pop("step", None)
            if isinstance(step, int) and not isinstance(step, bool) and "value" in found:
                return step, found
        return None
    first, *rest = line.split() or [""]
    numbers = _numbers(" ".join(rest))
    if not re.fullmatch(r"[0-9]{1,18}", first) or numbers is None or len(numbers) > 2:
        return None
    return int(first), numbers[0] if len(numbers) == 1 else {"value": numbers[0], "cost": numbers[1]}


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(word) for word in text.split()] or None
    except ValueError:
        return None


def quoted(text: str, most: int = 200) -> str:
    """A text in quotes for a message, cut if it is long."""
    return repr(text) if len(text) <= most else f"{text[:most]!r} ..."
