"""Known results as the user gives them, checked before anything is written; the event is in added.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from farthing import checks
from farthing.errors import InvalidArgument
from farthing.trial import Outcome, Status


def known_outcome(
    value: Any, cost: Any, failed: Any, curve: Any, max_steps: int | None
) -> tuple[Outcome, tuple[float, ...]]:  # fmt: skip
    """How the evaluation ended, and the value after each of its steps, if it had any."""
    if sum(given is not None for given in (value, failed, curve)) != 1:
        raise InvalidArgument("add: give one of value=..., curve=[...] and failed='why'")
    spent = None if cost is None else checks.read_cost(cost)
    if failed is not None:
        return Outcome(Status.FAILED, cost=spent, error=str(failed)), ()
    if value is not None:
        return Outcome(Status.COMPLETE, _number("value", value), spent), ()
    values = _values(curve)
    if max_steps is not None and len(values) > max_steps:
        raise InvalidArgument(f"curve: expected at most max_steps={max_steps} values, got {len(values)}")
    return Outcome(Status.COMPLETE, cost=spent), values


def _values(curve: Any) -> tuple[float, ...]:
    if isinstance(curve, str | bytes | Mapping) or not isinstance(curve, Iterable):
        checks.refuse("curve", "the values after each step", curve)
    values = tuple(_number("curve", value) for value in curve)
    if not values:
        checks.refuse("curve", "at least one value", curve)
    return values


def _number(name: str, given: Any) -> float:
    """As an objective may return it: also a tensor of one element."""
    outcome = checks.read_value(given)
    if outcome.value is None:
        raise InvalidArgument(f"{name}: {outcome.error}; failed='why' adds an evaluation that failed")
    return outcome.value
