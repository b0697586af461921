"""The settings of a study: its arguments checked, and compared with what an existing file holds."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from farthing import checks
from farthing.budget import Budget, Ledger, amount_text, worth_text
from farthing.errors import InvalidArgument, InvalidBudget, InvalidConfig, InvalidSpace, StudyMismatch
from farthing.history.cost_knowledge import CostKnowledge
from farthing.record.study_events import Opened
from farthing.space import Space
from farthing.trial import Config

WORTH = "stop_when_not_worth"


def opened(
    space: Space, policy: Mapping[str, Any], seed: int | None, maximize: bool,
    start: Iterable[Mapping[str, Any]], stop_at: float | None, max_steps: int | None, knowledge: CostKnowledge,
) -> Opened:  # fmt: skip
    """The first event of a new study, or an error that names the argument."""
    return Opened(
        space.as_json(), dict(policy),
        secrets.randbelow(2**32) if seed is None else checks.whole_number("seed", seed, or_none=True),
        checks.switch("maximize", maximize), _stored_start(space, start),
        checks.optional(checks.number, "stop_at", stop_at), knowledge.as_json(),
        checks.optional(checks.whole_number, "max_steps", max_steps, least=1),
    )  # fmt: skip


def checked_worth(given: Any, budget: Budget) -> float | None:
    """What an improvement of the value by 1 is worth in the budget's unit: a number, or text such as "1s per 0.001".

    >>> checked_worth("1s per 0.01", Budget.of("10m"))
    100.0
    """
    if not isinstance(given, str):
        return checks.optional(checks.number, WORTH, given, above=0.0)
    amount, _, gain = given.partition(" per ")
    try:
        limits = Budget.of(amount).limits
        worth = limits[budget.paid_in] / float(gain) if len(limits) == 1 else 0.0
    except (InvalidBudget, ValueError, KeyError, ZeroDivisionError):
        worth = 0.0
    if not 0.0 < worth < math.inf:
        example = worth_text(budget, 1.0)
        checks.refuse(WORTH, f'a finite number above 0, or text such as "{example} per 0.001"', given)
    return worth


def checked_space(space: Any) -> Space:
    """The space itself, one read from a mapping or of another library, or an error that says what came instead."""
    try:
        return Space.of(space)
    except InvalidSpace as error:
        text = str(error)
        raise InvalidSpace(text if text.startswith("space") else f"space: {text}") from None


def _stored_start(space: Space, start: Any) -> tuple[dict[str, Any], ...]:
    """The configurations to begin with, checked, each once."""
    if isinstance(start, Mapping):
        raise InvalidArgument("start: expected a list of configs, got one config; write start=[config]")
    if isinstance(start, str) or not isinstance(start, Iterable):
        checks.refuse("start", "a list of configs", start)
    distinct: dict[Any, dict[str, Any]] = {}
    for given in start:
        config = checked_config("start", space, given)
        distinct.setdefault(space.key(config), space.store_config(config))
    return tuple(distinct.values())


def checked_config(where: str, space: Space, given: Any) -> Config:
    """A configuration that a user gives, as the space has it; an error names where it was given."""
    try:
        config = space.validate(given)
    except InvalidConfig as error:
        raise InvalidConfig(f"{where}: {error}") from None
    if not space.allows(config):
        raise InvalidConfig(f"{where}: {config} is forbidden by the space's own forbid")
    return config


def require_same(space: Space, asked: Opened, found: Opened, any_seed: bool, name: str) -> None:
    """An existing file is continued only as the study it holds."""
    if difference := space.difference(found.space):
        raise StudyMismatch(f"{name}: the file holds a study of another space: {difference}")
    for what, here, there in (
        ("seed", found.seed if any_seed else asked.seed, found.seed),
        ("maximize", asked.maximize, found.maximize),
        ("start", asked.start or found.start, found.start),
        ("stop_at", found.stop_at if asked.stop_at is None else asked.stop_at, found.stop_at),
        ("max_steps", found.max_steps if asked.max_steps is None else asked.max_steps, found.max_steps),
        *(
            (key, asked.cost.get(key, {}) or found.cost.get(key, {}), found.cost.get(key, {}))
            for key in ("task", "cheap")
        ),
    ):
        if here != there:
            raise StudyMismatch(f"{name}: {what} is {there!r} in the file and {here!r} here")
    require_same_functions(asked.cost, found.cost, name)
    if asked.cost["prior"] is not None and asked.cost["prior"] != found.cost.get("prior"):
        raise StudyMismatch(f"{name}: the file holds a study with another cost_prior, or without one")


def require_warm_start(found: Opened, name: str) -> None:
    """What was taken over is in the file: the earlier studies are not read again, and may be gone or have grown."""
    if found.warm_start is None:
        raise StudyMismatch(f"{name}: the study was begun without warm_start")


def require_same_functions(asked: Mapping[str, Any], found: Mapping[str, Any], name: str) -> None:
    """A file cannot hold functions: those it was made with must be given again."""
    for key, argument in (("known", "known_cost"), ("features", "cost_features")):
        if found.get(key, False) and not asked[key]:
            raise StudyMismatch(f"{name}: the study was begun with {argument}=...; pass it again")
        if asked[key] and not found.get(key, False):
            raise StudyMismatch(f"{name}: the study was begun without {argument}")


def require_more_than_spent(ledger: Ledger | None, total: Budget) -> None:
    """A new budget is a total. One that is spent already was probably meant as what is added."""
    if ledger is None or total == ledger.budget:
        return
    for unit, limit in total.limits.items():
        if limit < ledger.total(unit):
            spent = amount_text(unit, ledger.total(unit))
            raise InvalidBudget(
                f"budget: {amount_text(unit, limit)} is less than what is spent already, {spent}; `budget` is the new "
                f"total, {ledger.budget} until now"
            )
