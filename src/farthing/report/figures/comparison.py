"""Several studies beside each other: the best value over what was spent, and what each name came to in the end.

Under one name there may be several studies, which differ in their seeds: then the median and the quartiles are drawn.
A study that has ended keeps its last value; before its first it has none, which counts as worse than any.

Symbols and shapes
    g, s      costs of the common grid, studies under one name
    V         (s, g) the best values, minimised; inf before the first
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.budget import amount_text
from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array
from farthing.report.drawing import COLOURS, Drawing, label, spread
from farthing.report.figures.best_value import Steps, budget_line, steps_of
from farthing.report.figures.scales import amount_axis, scale_of, value_axis
from farthing.session import Session

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class Side:
    """The studies under one name, in the user's own sign. `low` and `high` are quartiles, in the order of numbers; all
    three are the staircase itself where there is one study. NaN where too few studies have a value."""

    name: str
    studies: int
    cost: Array  # (g,)
    low: Array  # (g,)
    median: Array  # (g,)
    high: Array  # (g,)
    final: float  # median of the last values
    cost_to_common: float  # median of what it took until the value that all names reach


@dataclass(frozen=True, eq=False)
class Comparison:
    """Sides in the order in which they were given."""

    sides: Sequence[Side]
    common: float  # the best value that at least half of the studies under every name reach
    unit: str
    limit: float | None  # of the budget, if all have the same
    maximize: bool


def numbers(sessions: Mapping[str, Sequence[Session]], unit: str | None = None) -> Comparison:
    """The studies by name; costs are in the unit that their budgets are paid in, or in `unit`."""
    every = [session for held in sessions.values() for session in held]
    if len({session.record.settings.maximize for session in every}) > 1:
        raise InvalidArgument("compare: expected studies that all minimise or all maximise, got both")
    unit = _common_unit(sessions) if unit is None else unit
    sign = every[0].record.direction.turned(1.0)
    steps = {name: [_minimised(steps_of(session, unit), sign) for session in held] for name, held in sessions.items()}
    finals = [[one.value[-1] for one in held] for held in steps.values()]
    common = max(float(np.sort(final)[len(final) // 2]) for final in finals)
    limits = {session.ledger.budget.limits.get(unit) for session in every}
    sides = [_side(name, held, sign, common) for name, held in steps.items()]
    return Comparison(sides, sign * common, unit, limits.pop() if len(limits) == 1 else None, sign < 0.0)


def _common_unit(sessions: Mapping[str, Sequence[Session]]) -> str:
    units = {session.ledger.budget.paid_in: name for name, held in sessions.items() for session in held}
    if len(units) > 1:
        counted = ", ".join(f"{name!r} {unit}" for unit, name in units.items())
        raise InvalidArgument(
            f"compare: expected budgets of one unit, and these count differently: {counted}; "
            'compare(..., unit="evaluations") compares by what all of them count'
        )
    return next(iter(units))


def _minimised(steps: Steps, sign: float) -> Steps:
    return Steps(steps.spent, sign * steps.value, steps.trial)


def _side(name: str, held: Sequence[Steps], sign: float, common: float) -> Side:
    cost = np.unique(np.concatenate([one.spent for one in held]))
    V = np.array([_at(one, cost) for one in held])
    low, median, high = (sign * _quantile(V, share) for share in QUARTILES[:: 1 if sign > 0.0 else -1])
    reached = np.array([_first_at(one, common) for one in held])
    return Side(
        name, len(held), cost, low, median, high,
        sign * float(np.median([one.value[-1] for one in held])),
        float(np.sort(reached)[(len(reached) - 1) // 2]),
    )  # fmt: skip


def _at(steps: Steps, cost: Array) -> Array:
    """The best value (g,) when that much was spent; inf before the first."""
    place = np.searchsorted(steps.spent, cost, side="right") - 1
    return np.where(place < 0, np.inf, steps.value[np.maximum(place, 0)])


def _quantile(V: Array, share: float) -> Array:
    """Quantiles (g,) of the columns of V, NaN where they are no values yet."""
    place, ordered = share * (len(V) - 1), np.sort(V, axis=0)
    lower, upper = ordered[math.floor(place)], ordered[math.ceil(place)]
    with np.errstate(invalid="ignore"):
        found = np.where(lower == upper, lower, lower + (place % 1.0) * (upper - lower))
    return np.where(np.isfinite(found), found, np.nan)


def _first_at(steps: Steps, value: float) -> float:
    """What was spent when that value was reached, inf if it was not."""
    reached = np.flatnonzero(steps.value <= value)
    return float(steps.spent[reached[0]]) if len(reached) else np.inf


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw(found: Comparison) -> Drawing:
    """Staircases over a table of what they came to."""
    traces = [trace for place, side in enumerate(found.sides) for trace in _stairs(side, COLOURS[place % len(COLOURS)])]
    rows = len(found.sides)
    height = 500 + 30 * rows
    below = (40 + 30 * rows) / height
    shown = np.concatenate([np.concatenate([side.low, side.median, side.high]) for side in found.sides])
    layout: dict[str, Any] = {
        "xaxis": amount_axis("cost spent", found.unit, domain=[0, 1]),
        "yaxis": {
            **value_axis("best value", scale_of(shown), maximize=found.maximize),
            "domain": [below + 130 / height, 1],
        },
        "legend": {"orientation": "h", "x": 0, "y": below + 70 / height, "yanchor": "top"},
        "height": height,
        **budget_line(found.unit, found.limit),
    }
    for line in layout.get("shapes", []):
        line |= {"yref": "y domain"}
    caption = (
        "The best value over what was spent. Of several studies under one name: the median, and the band between "
        "their quartiles."
    )
    return Drawing("comparison", "Comparison", caption, [*traces, _table(found, below)], layout)


def _stairs(side: Side, colour: str) -> list[dict[str, Any]]:
    name = label(side.name) + (f" ({side.studies} studies)" if side.studies > 1 else "")
    kept = spread(len(side.cost))
    line = {"type": "scatter", "mode": "lines", "x": side.cost[kept], "legendgroup": name}
    stairs = [
        {**line, "y": side.median[kept], "name": name, "line": {"shape": "hv", "color": colour, "width": 2},
         "hovertemplate": "%{y:.6g} after %{x:.4g}<extra>%{fullData.name}</extra>"}
    ]  # fmt: skip
    if side.studies == 1:
        return stairs
    edge = {"shape": "hv", "color": colour, "width": 0}
    whole = kept[np.isfinite(side.low[kept]) & np.isfinite(side.high[kept])]
    band = {**line, "x": side.cost[whole], "line": edge, "showlegend": False, "hoverinfo": "skip"}
    return [
        {**band, "y": side.low[whole]},
        {**band, "y": side.high[whole], "fill": "tonexty", "fillcolor": _pale(colour)},
        *stairs,
    ]


def _pale(colour: str) -> str:
    """A colour with a fifth of its strength.

    >>> _pale("#ff0080")
    'rgba(255,0,128,0.2)'
    """
    return "rgba({},{},{},0.2)".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


def _table(found: Comparison, height: float) -> dict[str, Any]:
    """A row for each name."""
    columns = [
        [label(side.name) for side in found.sides],
        [str(side.studies) for side in found.sides],
        [f"{side.final:.5g}" for side in found.sides],
        [amount_text(found.unit, side.cost_to_common) for side in found.sides],
    ]
    return {
        "type": "table", "domain": {"x": [0, 1], "y": [0, height]},
        "header": {"values": ["", "studies", "final value", f"spent until {found.common:.5g}"], "align": "left"},
        "cells": {"values": columns, "align": "left", "height": 26},
    }  # fmt: skip
