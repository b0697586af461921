"""Configurations as lines through parallel axes, one for each parameter, in the order of their values.

A parameter's axis is its unit coordinate, so that sizes on a log scale are spread evenly, with ticks that say what the
places stand for. Where a parameter has no effect the line goes to a place of its own below the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.errors import NoTrial
from farthing.history import TrackedTrial
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import few_rows
from farthing.report.drawing import BLUE, GREY, ORANGE, Drawing, label
from farthing.report.figures.scales import UNITS, scale_of
from farthing.report.figures.ticks import Ticks, number_ticks, ticks_of
from farthing.session import Session
from farthing.trial import Status

MOST_LINES = 300  # half of them the best, the others from all of the study
MOST_AXES = 10  # of parameters: those whose places say most about the value
LONGEST_NAME = 16  # characters of a parameter over its axis
INACTIVE = -0.15  # the place of a parameter without effect
NOT_USED = "not used"


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis, and where each line crosses it."""

    name: str  # of the parameter, "cost" or "value", as it is
    place: Array  # (n,)
    low: float
    high: float
    ticks: Ticks


@dataclass(frozen=True, eq=False)
class Parallel:
    """Some of the trials, the worst first so that the best are drawn above them."""

    trial: Ints  # (n,)
    rank: Array  # (n,) 0 of the best, 1 of the worst
    axes: Sequence[Axis]  # of parameters, then of the cost where it is known, then of the value
    count: int  # of trials with a value
    left_out: Sequence[str]  # parameters without an axis
    unit: str
    maximize: bool


def numbers(session: Session) -> Parallel:
    """The trials that have a value."""
    ended = [trial for trial in session.history.trials if trial.value is not None and trial.status is not Status.FAILED]
    if not ended:
        raise NoTrial("no trial has a value yet")
    values = np.array([trial.value for trial in ended], dtype=np.float64)
    rows = few_rows(len(ended), values, MOST_LINES)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    chosen, y = [ended[row] for row in rows], values[rows]
    axes = [_of_parameter(session, j, chosen) for j in range(len(session.space))]
    kept = _most_telling([axis.place for axis in axes], y)
    shown = [axis for j, axis in enumerate(axes) if j in kept]
    costs = [trial.cost for trial in chosen]
    if None not in costs:
        shown.append(_of_numbers("cost", np.array(costs, dtype=np.float64)))
    shown.append(_of_numbers("value", session.record.direction.turned(1.0) * y))
    return Parallel(
        np.array([trial.number for trial in chosen], dtype=np.intp),
        np.linspace(1.0, 0.0, len(chosen)) if len(chosen) > 1 else np.zeros(1),
        shown,
        len(ended),
        [axis.name for j, axis in enumerate(axes) if j not in kept],
        session.ledger.unit,
        session.record.direction.maximize,
    )


def _of_parameter(session: Session, j: int, trials: Sequence[TrackedTrial]) -> Axis:
    name = session.space.names[j]
    active = np.array([trial.key[j] is not None for trial in trials], dtype=np.bool_)
    unit = np.array([trial.unit[j] for trial in trials], dtype=np.float64)
    ticks = ticks_of(session.space.params[name])
    if active.all():
        return Axis(name, unit, 0.0, 1.0, ticks)
    ticks = Ticks(np.append(INACTIVE, ticks.place), [NOT_USED, *ticks.text])
    return Axis(name, np.where(active, unit, INACTIVE), INACTIVE, 1.0, ticks)


def _of_numbers(name: str, given: Array) -> Axis:
    """Costs or values, as logs where they are very different."""
    log = bool(scale_of(given))
    place = np.log10(given) if log else given
    low, high = float(place.min()), float(place.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Axis(name, place, low, high, number_ticks(low, high, log=log))


def _most_telling(places: Sequence[Array], y: Array) -> set[int]:
    """The parameters whose places go up or down with the value most, by the correlation of ranks."""
    if len(places) <= MOST_AXES:
        return set(range(len(places)))
    rank = _ranks(y)
    told = [abs(_correlation(_ranks(place), rank)) for place in places]
    return set(np.argsort(-np.array(told), kind="stable")[:MOST_AXES].tolist())


def _ranks(x: Array) -> Array:
    """Equal numbers share their mean rank."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts - 1))[inverse], dtype=np.float64)


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0.0 else 0.0


def draw(found: Parallel) -> Drawing:
    """Parallel coordinates; ranges can be chosen on the axes with the mouse."""
    trace = {
        "type": "parcoords",
        "line": {"color": found.rank, "cmin": 0.0, "cmax": 1.0, "showscale": False,
                 "colorscale": [[0.0, ORANGE], [0.1, ORANGE], [0.3, BLUE], [1.0, GREY]]},
        "dimensions": [_dimension(axis, found) for axis in found.axes],
        "labelangle": -20, "labelside": "top",
    }  # fmt: skip
    layout = {"height": 460, "margin": {"l": 88, "r": 64, "t": 72, "b": 24}}
    return Drawing("parallel", "Parallel coordinates", _caption(found), [trace], layout)


def _dimension(axis: Axis, found: Parallel) -> dict[str, Any]:
    name = label(axis.name, LONGEST_NAME)
    if axis is found.axes[-1]:
        name = "value"
    elif axis.name == "cost" and len(found.axes) > 1 and axis is found.axes[-2] and found.unit != "cost":
        name = f"cost ({UNITS.get(found.unit, found.unit)})"
    return {
        "label": name, "values": axis.place, "range": [axis.low, axis.high],
        "tickvals": axis.ticks.place, "ticktext": list(axis.ticks.text),
    }  # fmt: skip


def _caption(found: Parallel) -> str:
    best = "highest" if found.maximize else "lowest"
    parts = [f"Each line is a trial: orange the tenth with the {best} values, blue good ones, grey the rest."]
    if len(found.trial) < found.count:
        parts.append(f"{len(found.trial)} of {found.count} are drawn: the best, and others from all of the study.")
    if found.left_out:
        more = len(found.left_out)
        parts.append(f"{more} parameter{'s' if more > 1 else ''} that say less about the value are left out.")
    parts.append("Drag along an axis to choose a range.")
    return " ".join(parts)
