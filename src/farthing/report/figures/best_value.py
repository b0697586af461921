"""The best value against what was spent: what the budget has bought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.budget import amount_text
from farthing.errors import NoTrial
from farthing.numerics.arrays import Array, Ints
from farthing.record.glance import Glance, glance
from farthing.report.drawing import BLUE, GREY, Drawing, spread
from farthing.report.figures.scales import amount_axis, scale_of, value_axis
from farthing.session import Session
from farthing.trial import Status

NOTHING_YET = "no trial has a value yet"


@dataclass(frozen=True)
class Steps:
    """What was spent when a better value was found; values in the user's own sign. The last point is where the study is
    now."""

    spent: Array  # (n,)
    value: Array  # (n,)
    trial: Ints  # (n,) whose value it is


@dataclass(frozen=True)
class BestValue:
    """The improvements of a study, and how far its budget reaches."""

    steps: Steps
    unit: str  # that the budget is paid in
    limit: float | None  # of the budget
    maximize: bool


def steps_of(session: Session, unit: str) -> Steps:
    """Each improvement at what all accounts held then, those of the optimiser and of failed trials too. A trial that
    has failed since counts for nothing."""
    state, trials = session.record.state, session.history.trials
    held = [
        (step.spent(unit), step.value, step.trial)
        for step in state.improvements
        if trials[step.trial].status is not Status.FAILED
    ]
    if not held:
        raise NoTrial(NOTHING_YET)
    spent, value, trial = (np.array(column) for column in zip(*held, strict=True))
    better = np.append(True, value[1:] < np.minimum.accumulate(value)[:-1])
    now, last = session.ledger.total(unit), better.nonzero()[0][-1]
    sign = session.record.direction.turned(1.0)
    return Steps(
        np.append(spent[better], max(now, spent[last])).astype(np.float64),
        sign * np.append(value[better], value[last]).astype(np.float64),
        np.append(trial[better], trial[last]).astype(np.intp),
    )


def numbers(session: Session) -> BestValue:
    """What was bought until now."""
    budget = session.ledger.budget
    limit = budget.limits.get(budget.paid_in)
    return BestValue(steps_of(session, budget.paid_in), budget.paid_in, limit, session.record.direction.maximize)


def at_a_glance(found: Glance) -> BestValue:
    """What a glance at a file has shown, until the study has been read."""
    if not len(found.value):
        raise NoTrial(NOTHING_YET)
    unknown = np.full(len(found.value), -1)  # whose values they are is not known yet
    return BestValue(Steps(found.cost, found.value, unknown), found.unit, found.limit, found.maximize)


def drawn_at_a_glance(path: str) -> Drawing:
    """The figure of a study's file in a fraction of the time that reading it takes."""
    return draw(at_a_glance(glance(path)))


def draw(found: BestValue) -> Drawing:
    """A staircase, and a line where the budget ends."""
    steps = found.steps
    kept = spread(len(steps.spent))
    layout: dict[str, Any] = {
        "xaxis": amount_axis("cost spent", found.unit),
        "yaxis": value_axis("best value", scale_of(steps.value), maximize=found.maximize),
        **budget_line(found.unit, found.limit),
    }
    staircase = {
        "type": "scatter", "mode": "lines+markers", "line": {"shape": "hv", "color": BLUE}, "marker": {"size": 5},
        "name": "best value", "x": steps.spent[kept], "y": steps.value[kept],
        "text": [f"trial {trial}" if trial >= 0 else "" for trial in steps.trial[kept]],
        "hovertemplate": "%{y:.6g} after %{x:.4g}<br>%{text}<extra></extra>",
    }  # fmt: skip
    return Drawing(
        "best_value",
        "Best value over cost",
        "How good the best configuration was after each part of the budget. What the optimiser and failed trials took "
        "is counted too; the dashed line is the end of the budget.",
        [staircase],
        layout,
    )


def budget_line(unit: str, limit: float | None) -> dict[str, Any]:
    """A dashed line where the budget ends, as parts of a layout."""
    if limit is None:
        return {}
    line = {"type": "line", "x0": limit, "x1": limit, "y0": 0, "y1": 1, "yref": "paper"}
    return {
        "shapes": [{**line, "line": {"color": GREY, "dash": "dash"}}],
        "annotations": [
            {"x": limit, "y": 1, "yref": "paper", "text": f"budget: {amount_text(unit, limit)}", "showarrow": False,
             "xanchor": "right", "yanchor": "bottom"}
        ],
    }  # fmt: skip
