"""Whether an event read from a file can have happened.

What Study writes is checked before; a file may come from anywhere. JSON knows NaN and Infinity as Python writes it, and
numbers, texts and lists may stand where others belong: in a history they would spoil every model and budget after them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from farthing.budget import Charges
from farthing.history import History
from farthing.record.events import Asked, Charged, Dropped, Event, Opened, Reported, Told
from farthing.trial import Status


def require_plausible(event: Event, history: History) -> None:
    """A ValueError that says what is wrong with it, if anything is."""
    match event:
        case Asked(ask=ask, proposal=proposal, charges=charges):
            _whole("ask", ask)
            _whole("trial", proposal.trial, most=len(history.trials))
            _whole("start_step", proposal.start_step)
            _whole("until_step", proposal.until_step or 0)
            _amount("predicted_cost", proposal.predicted_cost)
            _text("reason", proposal.reason)
            _mapping("fits", proposal.fits)
            _charges(charges)
        case Reported(trial=trial, report=report, charges=charges):
            _whole("trial", trial)
            _number("value", report.value)
            _amount("cost", report.cost)
            if report.train_value is not None:
                _number("train_value", report.train_value)
            _mapping("attributes", report.attributes)
            _charges(charges)
        case Dropped(trial=trial, kept_step=kept_step):
            _whole("trial", trial, most=len(history.trials) - 1)
            _whole("kept_step", kept_step)
        case Told(trial=trial, outcome=outcome, charges=charges):
            _whole("trial", trial)
            if outcome.status is Status.RUNNING:
                raise ValueError("a trial was told to be running")
            if outcome.value is not None:
                _number("value", outcome.value)
            _amount("cost", outcome.cost)
            _text("error", outcome.error or "")
            _mapping("attributes", outcome.attributes)
            _charges(charges)
        case Charged(charges=charges):
            _charges(charges)


def require_plausible_opening(first: Opened) -> None:
    """The same of the first event: what a study is made of."""
    for name in ("space", "policy", "cost"):
        _mapping(name, getattr(first, name))
    if not isinstance(first.space.get("parameters"), list):
        raise ValueError("the space has no list of parameters")
    _text("the name of the policy", first.policy.get("name"))
    for config in first.start:
        _mapping("a config to start with", config)
    _whole("seed", first.seed)
    if not isinstance(first.maximize, bool):
        raise ValueError(f"maximize is {first.maximize!r}")
    if first.stop_at is not None:
        _number("stop_at", first.stop_at)
    if first.max_steps is not None:
        _whole("max_steps", first.max_steps)


def _whole(name: str, number: object, most: float = math.inf) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
        raise ValueError(f"{name} is {number!r}")


def _number(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"{name} is {number!r}")


def _amount(name: str, number: object) -> None:
    if number is not None:
        _number(name, number)
        if not isinstance(number, int | float) or number < 0:
            raise ValueError(f"{name} is {number!r}")


def _text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{name} is {text!r}")


def _mapping(name: str, mapping: object) -> None:
    if not isinstance(mapping, Mapping):
        raise ValueError(f"{name} is {mapping!r}")


def _charges(charges: Charges) -> None:
    _mapping("charges", charges)
    for account, amounts in charges.items():
        _mapping(account, amounts)
        for unit, amount in amounts.items():
            _number(f"{account} in {unit}", amount)
