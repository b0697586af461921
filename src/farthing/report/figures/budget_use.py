"""Where the budget went: the accounts of the ledger, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.budget import ACCOUNTS, Ledger, amount_text
from farthing.errors import NoTrial
from farthing.numerics.arrays import Array
from farthing.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW, Drawing
from farthing.report.figures.scales import UNITS
from farthing.session import Session

WORDS = {
    "evaluation": "evaluation", "retrained": "steps trained again", "failed": "failed trials",
    "killed": "killed trials", "interrupted": "interrupted trials", "start-up": "starting processes",
    "optimiser": "optimiser",
}  # fmt: skip
PROMISED, REMAINING = "promised to running trials", "remaining"
COLOUR = {
    "evaluation": BLUE, "steps trained again": YELLOW, "failed trials": RED, "killed trials": ORANGE,
    "interrupted trials": "#a05a2c", "starting processes": SKY, "optimiser": PURPLE, PROMISED: GREEN, REMAINING: GREY,
}  # fmt: skip
ROOM = 0.4  # of the longest bar: inside of a shorter one there is no room for its text


@dataclass(frozen=True)
class UnitUse:
    """What was spent in one unit and what is left, largest account first."""

    unit: str
    limit: float | None
    parts: Sequence[str]  # (n,) in words
    amount: Array  # (n,)
    share: Array  # (n,) of the limit; of what was spent where there is none


@dataclass(frozen=True)
class BudgetUse:
    """The use of each limited unit, first of the one that trials are paid in, and of the unit that costs are counted
    in."""

    units: Sequence[UnitUse]


def numbers(session: Session) -> BudgetUse:
    """Where the budget went until now."""
    ledger = session.ledger
    limits = ledger.budget.limits
    names = dict.fromkeys([ledger.budget.paid_in, ledger.unit, *limits])
    units = [use for name in names if (use := _use(ledger, name)) is not None]
    if not any(ledger.total(use.unit) > 0.0 for use in units):
        raise NoTrial("nothing was spent yet")
    return BudgetUse(units)


def _use(ledger: Ledger, unit: str) -> UnitUse | None:
    """None for a unit that is neither limited nor spent."""
    limit, total = ledger.budget.limits.get(unit), ledger.total(unit)
    if limit is None and total == 0.0:
        return None
    parts = {WORDS[name]: ledger.account(name, unit) for name in ACCOUNTS}
    parts = dict(sorted(((what, amount) for what, amount in parts.items() if amount > 0.0), key=lambda part: -part[1]))
    if limit is not None:
        promised = _promised(ledger, unit)
        parts |= {PROMISED: promised} if promised else {}
        parts[REMAINING] = ledger.left(unit) - promised
    amount = np.array(list(parts.values()), dtype=np.float64)
    return UnitUse(unit, limit, list(parts), amount, amount / (limit or total))


def _promised(ledger: Ledger, unit: str) -> float:
    """Of what is left, what running trials are expected to take; in seconds all of them share the same."""
    return ledger.remaining - ledger.available if unit == ledger.unit else 0.0


def draw(found: BudgetUse) -> Drawing:
    """A bar for each account; buttons choose the unit where there are several."""
    traces = [{**_bars(use), "visible": place == 0} for place, use in enumerate(found.units)]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": _title(found.units[0])}, "tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "showlegend": False,
        "height": 120 + 34 * max(len(use.parts) for use in found.units),
    }
    if len(found.units) > 1:
        layout["updatemenus"] = [
            {"type": "buttons", "direction": "right", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
             "active": 0, "buttons": [_button(found, place) for place in range(len(found.units))]}
        ]  # fmt: skip
        layout["height"] += 40
        layout["margin"] = {"l": 64, "r": 16, "t": 56, "b": 52}
    return Drawing(
        "budget_use",
        "Where the budget went",
        "What trials and the optimiser have taken, and what is left. Failed, killed and interrupted trials cost too.",
        traces,
        layout,
    )


def _bars(use: UnitUse) -> dict[str, Any]:
    amounts = [amount_text(use.unit, amount) for amount in use.amount]
    room = use.share >= ROOM * use.share.max()
    return {
        "type": "bar", "orientation": "h", "y": list(use.parts), "x": use.share,
        "text": [f"{amount} ({share:.1%})" for amount, share in zip(amounts, use.share, strict=True)],
        "textposition": ["inside" if enough else "outside" for enough in room],
        "marker": {"color": [COLOUR[what] for what in use.parts]}, "cliponaxis": False,
        "hovertemplate": "%{y}: %{text}<extra></extra>",
    }  # fmt: skip


def _title(use: UnitUse) -> str:
    words = UNITS.get(use.unit, use.unit)
    return f"share of what was spent ({words})" if use.limit is None else f"share of the budget ({words})"


def _button(found: BudgetUse, chosen: int) -> dict[str, Any]:
    visible = [place == chosen for place in range(len(found.units))]
    use = found.units[chosen]
    return {
        "label": UNITS.get(use.unit, use.unit), "method": "update",
        "args": [{"visible": visible}, {"xaxis.title.text": _title(use)}],
    }  # fmt: skip
