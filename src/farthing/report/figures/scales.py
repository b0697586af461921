"""Axes and scales that several figures share: amounts of a budget, values of the objective, and when a scale is
logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

UNITS = {
    "usd": "dollars", "seconds": "seconds", "compute_seconds": "seconds of compute", "joules": "joules",
    "evaluations": "evaluations", "cost": "cost",
}  # fmt: skip
WIDE = 20.0  # times the smallest: from here on, small ones can no longer be told apart on an even scale
MOST_TICKS = 8  # on a logarithmic axis, about
BEYOND = 0.1  # decades
EVEN: Mapping[str, Any] = MappingProxyType({})


def scale_of(*numbers: ArrayLike) -> dict[str, Any]:
    """The scale of an axis: logarithmic for numbers that are all above 0 and very different, else even.

    >>> scale_of([1.0, 50.0])["type"], scale_of([1.0, 2.0]), scale_of([0.0, 50.0]), scale_of([])
    ('log', {}, {}, {})
    """
    together = np.concatenate([np.ravel(np.asarray(some, dtype=np.float64)) for some in numbers])
    finite = together[np.isfinite(together)]
    if not len(finite) or finite.min() <= 0.0 or finite.max() / WIDE < finite.min():
        return {}
    return log_scale(float(finite.min()), float(finite.max()))


def log_scale(low: float, high: float, ticks: int = MOST_TICKS) -> dict[str, Any]:
    """A logarithmic scale from `low` to `high`, with about so many ticks at most, which are read as numbers: powers of
    10, and 2 and 5 times these where there is room ("D2").

    >>> log_scale(1e-2, 1.0)["dtick"], log_scale(1e-2, 1.0, ticks=4)["dtick"], log_scale(1e-6, 1.0, ticks=4)["dtick"]
    ('D2', 1, 2)
    """
    decades = float(np.log10(high) - np.log10(low))
    return {"type": "log", "tickformat": ".3~g", **_log_ticks(decades, ticks)}


def log_range(low: float, high: float, ticks: int = MOST_TICKS) -> dict[str, Any]:
    """The same with ends that are fixed a little beyond: for panels and steps of a slider that share one scale."""
    return {"range": [math.log10(low) - BEYOND, math.log10(high) + BEYOND], **log_scale(low, high, ticks)}


def _log_ticks(decades: float, ticks: int) -> dict[str, Any]:
    if decades <= 1.0:
        return {"nticks": ticks}
    return {"dtick": "D2" if 3.0 * decades <= ticks + 1 else math.ceil(decades / ticks)}


def axis(title: str, scale: Mapping[str, Any] = EVEN, **more: Any) -> dict[str, Any]:
    """An axis under a title that is plain text already."""
    return {"title": {"text": title}, "exponentformat": "power", **scale, **more}


def amount_axis(what: str, unit: str, scale: Mapping[str, Any] = EVEN, **more: Any) -> dict[str, Any]:
    """An axis of amounts in a unit of budgets.

    >>> amount_axis("price", "usd")["title"]["text"], amount_axis("price", "cost")["title"]["text"]
    ('price (dollars)', 'price')
    """
    bounds = {} if scale else {"rangemode": "tozero"}
    return axis(amount_title(what, unit), scale, **bounds, **more)


def amount_title(what: str, unit: str) -> str:
    """An amount and its unit; one of the user's own has no name."""
    return what if unit == "cost" else f"{what} ({UNITS.get(unit, unit)})"


def value_axis(title: str, scale: Mapping[str, Any] = EVEN, *, maximize: bool) -> dict[str, Any]:
    """An axis of values, which says in which direction they are good."""
    return axis(f"{title} ({'higher' if maximize else 'lower'} is better)", scale)
