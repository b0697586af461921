"""The EI-cost front of a study as it changed: what improvement could be expected for what cost (CEI, Figures 1 and 7).

A slider goes through some of the asks, each with its front, what EI, EIpu, EI-cool and CEI would evaluate next, and
where the points of the front before it are by then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.errors import InvalidArgument, NoTrial, SpaceExhausted
from farthing.numerics.arrays import Array
from farthing.policies.pareto import front_of, persistence_between
from farthing.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing
from farthing.report.figures.parameter_axis import config_text
from farthing.report.figures.scales import amount_title, log_range
from farthing.report.fronts import FrontThen, fronts_of
from farthing.session import Session
from farthing.space import Space

MOST = 25  # fronts that the slider goes through
DECADES = 4.0  # of a front, below its largest EI, that are shown: its cheap end may have none at all
LEAST_LOG_EI = -600.0  # its exponential is still a float
MARKS = {"EI": ("square", RED), "EIpu": ("diamond", ORANGE), "EI-cool": ("triangle-up", PURPLE), "CEI": ("star", GREEN)}
NEXT = "next"  # the label of the front of now


@dataclass(frozen=True)
class Step:
    """One front by increasing cost; where the points of the one before are by then; and what is picked from it."""

    trial: int | None  # that was asked for then; None: now
    cost: Array  # (m,)
    improvement: Array  # (m,), expected
    texts: tuple[str, ...]  # (m,), the configurations
    picks: Mapping[str, tuple[float, float, str]]  # cost, improvement and configuration
    before: tuple[Array, Array] | None = None  # cost and improvement (k,) of the front before, as it was
    moved: tuple[Array, Array] | None = None  # and of its points by now


@dataclass(frozen=True)
class Pareto:
    """The fronts in the order in which they were seen, at last the one of now."""

    steps: tuple[Step, ...]
    unit: str  # of cost


def numbers(session: Session, most: int = MOST, seconds: float = math.inf) -> Pareto:
    """At most so many fronts, evenly spread; fewer if there is not time for all, but always the one of now."""
    fronts = fronts_of(session).with_moves(session, most, seconds)
    before = [None, *fronts[:-1]]
    steps = [_step(session.space, found, last) for found, last in zip(fronts, before, strict=True)]
    return Pareto(tuple(steps), session.ledger.unit)


def numbers_at(session: Session, trial: int) -> Pareto:
    """The front that was seen when a trial was asked for, as `study.pareto(trial)` has it, after that of the trial
    before it."""
    record, policy = session.record, session.policy
    before: FrontThen | None = None
    try:
        found = persistence_between(record, trial - 1, trial, policy) if trial > 0 else None
    except (NoTrial, SpaceExhausted, InvalidArgument):  # the trial before it saw no front
        found = None
    if found is None:
        then = FrontThen(trial, front_of(record, trial, policy))
    else:
        before = FrontThen(trial - 1, found.before)
        then = FrontThen(trial, found.now, (found.log_cost, found.log_ei))
    return Pareto((_step(session.space, then, before),), session.ledger.unit)


def _step(space: Space, found: FrontThen, last: FrontThen | None) -> Step:
    front = found.front
    picks = {
        name: (math.exp(pick.log_cost), math.exp(max(pick.log_ei, LEAST_LOG_EI)), config_text(space.decode(pick.u)))
        for name, pick in front.picks.items()
    }
    return Step(
        found.trial, np.exp(front.log_cost), _exp(front.log_ei), tuple(map(config_text, space.decode_many(front.U))),
        picks,
        None if last is None else (np.exp(last.front.log_cost), _exp(last.front.log_ei)),
        None if found.moved is None else (np.exp(found.moved[0]), _exp(found.moved[1])),
    )  # fmt: skip


def _exp(log_ei: Array) -> Array:
    return np.asarray(np.exp(np.maximum(log_ei, LEAST_LOG_EI)))


def draw(found: Pareto) -> Drawing:
    """Seven traces for each front, of which those of one are visible."""
    groups = [_traces(step) for step in found.steps]
    last = len(groups) - 1
    traces = [{**trace, "visible": i == last} for i, group in enumerate(groups) for trace in group]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": amount_title("predicted cost", found.unit)}, **_across(found.steps)},
        "yaxis": {"title": {"text": "expected improvement"}, "type": "log", "exponentformat": "power",
                  "range": _range(found.steps)},
        "height": 460,
    }  # fmt: skip
    if len(groups) > 1:
        layout["sliders"] = [_slider(found.steps, [len(group) for group in groups])]
        layout["margin"] = {"l": 64, "r": 16, "t": 16, "b": 136}
    return Drawing(
        "pareto", "What improvement can be expected for what cost",
        "No configuration is both cheaper and more promising than a point of the blue line. The marks are what four "
        "policies would evaluate next. The slider goes back to what was seen when earlier trials were chosen; crosses "
        "are where the points of the front before have moved to.",
        traces, layout,
    )  # fmt: skip


def _traces(step: Step) -> list[dict[str, Any]]:
    before, moved = step.before or _NOTHING, step.moved or _NOTHING
    shown = [
        {"x": before[0], "y": before[1], "mode": "lines", "name": "the front before",
         "line": {"color": GREY, "dash": "dot"}, "hoverinfo": "skip"},
        {"x": moved[0], "y": moved[1], "mode": "markers", "name": "its points, moved",
         "marker": {"symbol": "x-thin", "size": 8, "line": {"color": GREY, "width": 2}}},
        {"x": step.cost, "y": step.improvement, "mode": "lines+markers", "name": "front", "text": step.texts,
         "line": {"color": BLUE}, "hovertemplate": "%{text}<br>cost %{x:.3g}<br>EI %{y:.2e}<extra></extra>"},
    ]  # fmt: skip
    for name, (symbol, colour) in MARKS.items():
        cost, improvement, text = step.picks.get(name, (None, None, ""))
        shown.append(
            {"x": [cost], "y": [improvement], "mode": "markers", "name": name, "text": [text],
             "marker": {"symbol": f"{symbol}-open", "size": 14, "color": colour, "line": {"width": 2}},
             "hovertemplate": name + "<br>%{text}<br>cost %{x:.3g}<br>EI %{y:.2e}<extra></extra>"}
        )  # fmt: skip
    return [{"type": "scatter", **trace} for trace in shown]


_NOTHING = (np.empty(0), np.empty(0))


def _range(steps: Sequence[Step]) -> list[float]:
    """Of the logarithm: one for all fronts, so that they are seen to sink; the cheap end of each is cut off."""
    tops = np.log10([step.improvement.max() for step in steps])
    lowest = np.log10([step.improvement.min() for step in steps])
    bottom = float(np.min(np.maximum(lowest, tops - DECADES)))
    return [bottom - 0.2, float(tops.max()) + 0.2]


def _across(steps: Sequence[Step]) -> dict[str, Any]:
    """The scale of costs: one for all fronts, as far as they are shown."""
    shown = np.concatenate(
        [step.cost[step.improvement >= 10.0**-DECADES * step.improvement.max()] for step in steps]
        + [np.array([cost for cost, *_ in step.picks.values()]) for step in steps]
    )
    return log_range(float(shown.min()), float(shown.max()))


def _slider(steps: Sequence[Step], sizes: Sequence[int]) -> dict[str, Any]:
    """One position for each front, which makes its traces visible."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    positions = [
        {"label": NEXT if step.trial is None else str(step.trial), "method": "restyle",
         "args": [{"visible": (owner == i).tolist()}]}
        for i, step in enumerate(steps)
    ]  # fmt: skip
    return {
        "active": len(steps) - 1, "steps": positions, "pad": {"t": 60},
        "currentvalue": {"prefix": "Seen when this trial was chosen: "},
    }  # fmt: skip
