"""Budget: what may be spent. Ledger: what was.

A budget may limit several units at once; the first limit reached ends the study. One of them, `Budget.unit`, is the
unit that the cost of an evaluation is counted and modelled in. The ledger is computed from the charges of the event
log and nothing else: accounts (evaluation, failed, killed, interrupted, optimiser, start-up for waiting until a worker
process is ready, and retrained for steps of training that had to be done again), each an amount per unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from typing import ClassVar

from farthing.checks import number, refuse, settle
from farthing.errors import InvalidBudget
from farthing.text.cards import bar, card, facts
from farthing.text.plain import counted, warn
from farthing.trial import Status

Charges = Mapping[str, Mapping[str, float]]  # account -> unit -> amount

ACCOUNTS = ("evaluation", "retrained", "failed", "killed", "interrupted", "start-up", "optimiser")
ACCOUNT_OF = {  # where a trial's cost goes
    Status.COMPLETE: "evaluation",
    Status.PAUSED: "evaluation",
    Status.STOPPED: "evaluation",
    Status.FAILED: "failed",
    Status.KILLED: "killed",
    Status.INTERRUPTED: "interrupted",
}
ACCEPTED = (
    'text with a unit, such as "90s", "10m", "1h30m", "$5", "$5 at $2.5/h", "100 evaluations", several joined by '
    "commas, or Budget(...)"
)

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)\s*(days?|hours?|minutes?|min|seconds?|sec|d|h|m|s)\s*)")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z]+)")
_RATE = re.compile(rf"(.*\S)\s+at\s+(?:\$\s*{_NUMBER}|{_NUMBER}\s*(?:usd|dollars?))\s*(?:/|per|an)\s*(?:h|hr|hour)")
_UNIT_NAMES = {
    "evaluations": "evaluations", "evaluation": "evaluations", "trials": "evaluations", "trial": "evaluations",
    "evals": "evaluations", "usd": "usd", "dollars": "usd", "joules": "joules", "joule": "joules",
    "j": "joules", "cost": "cost",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of a study; any number of them, at least one.

    seconds            wall-clock seconds of `run`, the optimiser's own time included
    compute_seconds    seconds of evaluation, added up over workers
    usd, usd_per_hour  dollars; the rate turns seconds into dollars
    joules             energy
    evaluations        number of evaluations, failed ones included
    cost               the sum of whatever `cost` the objective reports, in your own unit

    >>> Budget.of("1h30m")
    Budget(seconds=5400.0)
    >>> Budget.of("$5, 100 evaluations").unit
    'usd'
    >>> Budget.of("$5 at $2.5/h")
    Budget(usd=5.0, usd_per_hour=2.5)
    """

    cost: float | None = None
    usd: float | None = None
    joules: float | None = None
    compute_seconds: float | None = None
    seconds: float | None = None
    evaluations: int | None = None
    usd_per_hour: float | None = None

    UNITS: ClassVar[tuple[str, ...]] = ("cost", "usd", "joules", "compute_seconds", "seconds")

    def __post_init__(self) -> None:
        for f in fields(self):
            amount = getattr(self, f.name)
            if amount is None:
                continue
            checked = number(f"Budget: {f.name}", amount, above=0.0, error=InvalidBudget)
            if not isinstance(amount, int | float):
                settle(self, **{f.name: amount.item() if hasattr(amount, "item") else checked})
        if self.evaluations is not None and self.evaluations != int(self.evaluations):
            refuse("Budget: evaluations", "a whole number", self.evaluations, InvalidBudget)
        if not self.limits:
            raise InvalidBudget(f"Budget: nothing is limited; set at least one of {', '.join(self._limit_names())}")

    def __getstate__(self) -> dict[str, float | None]:
        """Without what was computed from it: a copy may be altered, and who compares pickles, such as joblib, sees the
        same budget."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def of(cls, budget: Budget | str | timedelta) -> Budget:
        """A budget as it is, or read from text or a timedelta."""
        if isinstance(budget, Budget):
            return budget
        if isinstance(budget, timedelta):
            return cls(seconds=budget.total_seconds())
        if not isinstance(budget, str):
            refuse("budget", ACCEPTED, budget, InvalidBudget)
        limits: dict[str, float] = {}
        for unit, amount in (found for part in budget.split(",") for found in _parse(part, budget)):
            if unit in limits:
                raise InvalidBudget(f"budget: {unit} is given twice in {budget!r}")
            limits[unit] = amount
        return cls.from_json(limits)

    @classmethod
    def from_json(cls, stored: Mapping[str, float]) -> Budget:
        amounts: dict[str, float | int] = dict(stored)
        if float(amounts.get("evaluations", 0.5)).is_integer():
            amounts["evaluations"] = int(amounts["evaluations"])
        return cls(**amounts)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, float]:
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    @classmethod
    def _limit_names(cls) -> tuple[str, ...]:
        return (*cls.UNITS, "evaluations")

    @cached_property  # asked for dozens of times per evaluation, as `unit`
    def limits(self) -> Mapping[str, float]:
        """Unit -> amount, for the units that end the study."""
        return {unit: float(getattr(self, unit)) for unit in self._limit_names() if getattr(self, unit) is not None}

    @cached_property
    def unit(self) -> str:
        """The unit the cost of an evaluation is counted in: the first limited one of UNITS, else seconds."""
        return next((unit for unit in self.UNITS if unit in self.limits), "seconds")

    @property
    def paid_in(self) -> str:
        """The limited unit that an evaluation is paid in: `unit`, or evaluations where nothing else is limited."""
        return self.unit if self.unit in self.limits else "evaluations"

    def priced(self, seconds: float) -> dict[str, float]:
        """What a stretch of wall-clock time costs: seconds, and dollars where a rate is known."""
        if self.usd_per_hour is None:
            return {"seconds": seconds}
        return {"seconds": seconds, "usd": seconds * self.usd_per_hour / 3600.0}

    def __str__(self) -> str:
        texts = {unit: amount_text(unit, amount) for unit, amount in self.limits.items()}
        if self.usd_per_hour is not None:
            priced = "usd" if "usd" in texts else next(iter(texts))
            texts[priced] += f" at ${self.usd_per_hour:.15g}/h"
        return ", ".join(texts.values())

    def __repr__(self) -> str:
        return f"Budget({', '.join(f'{name}={amount!r}' for name, amount in self.as_json().items())})"


def _parse(part: str, whole: str) -> list[tuple[str, float]]:
    """Unit and amount of one limit, and the hourly rate where it has one."""
    text = part.strip().lower()
    if priced := _RATE.fullmatch(text):
        return [_parse_limit(priced[1], whole), ("usd_per_hour", float(priced[2] or priced[3]))]
    return [_parse_limit(text, whole)]


def _parse_limit(text: str, whole: str) -> tuple[str, float]:
    """Unit and amount of one limit."""
    if text.startswith("$"):
        text = f"{text[1:].strip()} usd"
    if match := _AMOUNT.fullmatch(text):
        unit = _UNIT_NAMES.get(match[2])
        if unit is not None:
            return unit, float(match[1])
    duration = text.removesuffix(" of compute")
    pieces = _DURATION.findall(duration)
    if not pieces or _DURATION.sub("", duration).strip():
        refuse("budget", ACCEPTED, whole, InvalidBudget)
    unit = "seconds" if duration == text else "compute_seconds"
    return unit, sum(float(amount) * _SECONDS[unit[0]] for amount, unit in pieces)


def amount_text(unit: str, amount: float) -> str:
    """An amount as people write it.

    >>> amount_text("seconds", 95.0), amount_text("usd", 1.5), amount_text("evaluations", 7)
    ('1m35s', '$1.50', '7 evaluations')
    """
    if not math.isfinite(amount):
        return "no limit"
    if unit == "usd":
        return f"${amount:.2f}" if amount == 0 or amount >= 0.1 else f"${amount:.2g}"
    if unit in ("seconds", "compute_seconds"):
        return _duration_text(amount) + (" of compute" if unit == "compute_seconds" else "")
    if unit == "evaluations":
        return counted(round(amount), "evaluation")
    return f"{amount:.4g} {'joule' if unit == 'joules' and amount == 1 else unit}"


def worth_text(budget: Budget, amount: float) -> str:
    """An amount of what a budget is paid in, as people write it; also a part of an evaluation.

    >>> worth_text(Budget.of("5 evaluations"), 0.25), worth_text(Budget.of("10m"), 0.25)
    ('0.25 evaluations', '0.25s')
    """
    if budget.paid_in != "evaluations":
        return amount_text(budget.paid_in, amount)
    return f"{amount:.2g} evaluation{'' if amount == 1.0 else 's'}"


def _duration_text(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest}s" if rest else ""]
    return "".join(parts)


def warn_if_endless(ledger: Ledger) -> None:
    """In a loop of your own no clock runs: a budget of time or money is used up by what is told, or never."""
    limits = ledger.budget.limits
    if "evaluations" in limits or any(ledger.total(unit) for unit in limits):
        return
    timed = not limits.keys().isdisjoint({*ledger.budget.priced(1.0), "compute_seconds"})
    warn(
        f"the budget is {ledger.budget}, and this trial was told without a cost: in your own loop only what you tell "
        f"is charged, so without costs the study never ends; use {'tell(..., seconds=...) or ' if timed else ''}"
        "tell(..., cost=...)"
    )


@dataclass(frozen=True)
class Ledger:
    """What a study has spent, has promised to running evaluations, and has left.

    `spent`, `committed` and `remaining` are in `unit`; the methods speak of any unit.

    >>> ledger = Ledger(Budget(cost=10)).charged({"evaluation": {"cost": 4.0, "evaluations": 1}})
    >>> ledger.spent, ledger.remaining, ledger.fraction
    (4.0, 6.0, 0.4)
    """

    budget: Budget
    accounts: Charges = field(default_factory=dict)
    committed: float = 0.0  # predicted cost of what is running
    running: int = 0

    def charged(self, charges: Charges) -> Ledger:
        """The ledger with more amounts in its accounts."""
        accounts = {account: dict(amounts) for account, amounts in self.accounts.items()}
        for account, amounts in charges.items():
            held = accounts.setdefault(account, {})
            for unit, amount in amounts.items():
                held[unit] = held.get(unit, 0.0) + amount
        return replace(self, accounts=accounts)

    def promised(self, cost: float, count: int) -> Ledger:
        """The ledger with `count` more evaluations running, expected to cost `cost` together."""
        return replace(self, committed=max(self.committed + cost, 0.0), running=self.running + count)

    def total(self, unit: str) -> float:
        """Spent in a unit, over all accounts."""
        return math.fsum(amounts.get(unit, 0.0) for amounts in self.accounts.values())

    def account(self, name: str, unit: str | None = None) -> float:
        """Spent on one of ACCOUNTS."""
        return self.accounts.get(name, {}).get(unit or self.unit, 0.0)

    @property
    def unit(self) -> str:
        return self.budget.unit

    @property
    def spent(self) -> float:
        return self.total(self.unit)

    @property
    def remaining(self) -> float:
        """Not yet spent; infinite where the unit is not limited."""
        return self.left(self.unit)

    @property
    def available(self) -> float:
        """What one more evaluation may spend: what is committed to others is taken, but time passes for all alike."""
        return self.remaining if self.unit == "seconds" else max(self.remaining - self.committed, 0.0)

    def left(self, unit: str) -> float:
        """Not yet spent in a unit, at least 0; infinite where it is not limited."""
        return max(self.budget.limits.get(unit, math.inf) - self.total(unit), 0.0)

    @property
    def fraction(self) -> float:
        """The share used up of the limit that is closest to its end, at most 1."""
        return self.fraction_without()

    def fraction_without(self, *accounts: str) -> float:
        """The same, without what some accounts hold."""
        limits = self.budget.limits.items()
        shares = [(self.total(u) - sum(self.account(name, u) for name in accounts)) / limit for u, limit in limits]
        return min(max(shares), 1.0)

    @property
    def spent_on(self) -> dict[str, float]:
        """What the accounts hold in `unit`, without empty ones: where the budget went.

        >>> Ledger(Budget(cost=10)).charged({"failed": {"cost": 1.0}, "evaluation": {"cost": 4.0}}).spent_on
        {'evaluation': 4.0, 'failed': 1.0}
        """
        return {name: amount for name in ACCOUNTS if (amount := self.account(name, self.unit)) > 0.0}

    @property
    def reached(self) -> str | None:
        """The unit whose limit is reached, or None."""
        return next((unit for unit, limit in self.budget.limits.items() if self.total(unit) >= limit), None)

    def as_json(self) -> dict[str, object]:
        accounts = {account: dict(amounts) for account, amounts in self.accounts.items()}
        return {"accounts": accounts, "committed": self.committed, "running": self.running}

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {amounts}" for name, amounts in self._rows)

    def _repr_html_(self) -> str:
        return card(
            "Ledger", f"{self.fraction:.0%} of {self.budget} used", bar(self.shares), facts(self._rows[1:], marked=True)
        )

    @property
    def shares(self) -> dict[str, float]:
        """The used fraction of the budget, divided among accounts as `unit` is.

        >>> Ledger(Budget(cost=10)).charged({"failed": {"cost": 1.0}, "evaluation": {"cost": 4.0}}).shares
        {'evaluation': 0.4, 'failed': 0.1}
        """
        amounts = self.spent_on or {"evaluation": 1.0}
        total = math.fsum(amounts.values())
        return {name: self.fraction * amount / total for name, amount in amounts.items()}

    @property
    def _rows(self) -> list[tuple[str, str]]:
        """Its accounts in words, each with its name."""
        rows = [("budget", str(self.budget))]
        units = list(self.budget.limits)
        if self.unit not in units:
            units.append(self.unit)
        for name in ACCOUNTS:
            amounts = self.accounts.get(name, {})
            shown = [amount_text(unit, amounts[unit]) for unit in units if amounts.get(unit)]
            if shown:
                rows.append((name, ", ".join(shown)))
        if self.running:
            rows.append(("committed", f"{amount_text(self.unit, self.committed)} in {self.running} running"))
        left = [amount_text(unit, self.left(unit)) for unit in self.budget.limits]
        return [*rows, ("remaining", f"{', '.join(left)}  ({self.fraction:.0%} used)")]
