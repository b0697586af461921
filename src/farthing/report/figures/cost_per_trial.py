"""What each trial cost, in order, and in which part of the search it was proposed (CArBO, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.errors import NoTrial
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Drawing,
    spread,
    with_extremes,
)  # fmt: skip
from farthing.report.figures.scales import amount_axis, axis, scale_of
from farthing.report.phases import Phase, phase_of
from farthing.session import Session
from farthing.trial import Status

COLOUR = {
    Phase.GIVEN: PURPLE, Phase.TAKEN_OVER: YELLOW, Phase.DESIGN: ORANGE, Phase.MODEL: BLUE, Phase.NO_MODEL: GREY,
    Phase.FINISHING: GREEN, Phase.OTHER: SKY,
}  # fmt: skip
MARKED = (Status.FAILED, Status.KILLED, Status.INTERRUPTED)
SYMBOL = {Status.FAILED: "x-thin", Status.KILLED: "square-open", Status.INTERRUPTED: "diamond-open"}
FEWEST_FOR_MEDIAN = 10  # trials, below which the points say it all
WINDOW = 1 / 15  # of all trials, that a running median is taken over
NARROWEST = 5  # trials of it
MOST_MARKED = 500  # of one kind


@dataclass(frozen=True)
class CostPerTrial:
    """The trials that this study paid for and whose cost is known, by number."""

    number: Ints  # (n,)
    cost: Array  # (n,), in `unit`
    phase: Sequence[Phase]  # (n,)
    status: Sequence[Status]  # (n,)
    unit: str
    middle: Array  # (m,) numbers at which the running median is drawn
    median: Array  # (m,)

    def of(self, status: Status) -> Mask:
        """Which trials ended so."""
        return np.array([one is status for one in self.status], dtype=np.bool_)


def numbers(session: Session) -> CostPerTrial:
    """What each trial cost until now."""
    paid = [trial for trial in session.history.trials if trial.cost is not None and not trial.added]
    if not paid:
        raise NoTrial("the cost of no trial is known yet")
    number = np.array([trial.number for trial in paid], dtype=np.intp)
    cost = np.array([trial.cost for trial in paid], dtype=np.float64)
    phase = [phase_of(trial, session.policy.name) for trial in paid]
    middle, median = _running_median(number, cost)
    return CostPerTrial(number, cost, phase, [trial.status for trial in paid], session.ledger.unit, middle, median)


def _running_median(number: Ints, cost: Array) -> tuple[Array, Array]:
    """The median of each trial and its neighbours, at most at a few hundred of them."""
    if len(cost) < FEWEST_FOR_MEDIAN:
        return np.empty(0), np.empty(0)
    half = max(round(WINDOW * len(cost)), NARROWEST) // 2
    places = spread(len(cost), 200)
    medians = [float(np.median(cost[max(place - half, 0) : place + half + 1])) for place in places]
    return number[places].astype(np.float64), np.array(medians)


def draw(found: CostPerTrial) -> Drawing:
    """A point for each trial in the colour of its phase, marks on those that did not end well, and the median."""
    kept = with_extremes(found.cost)
    phases = np.array([phase.value for phase in found.phase])
    traces: list[dict[str, Any]] = []
    for phase in Phase:
        of_phase = kept[phases[kept] == phase.value]
        if len(of_phase):
            traces.append(
                {"type": "scatter", "mode": "markers", "name": phase.value, "x": found.number[of_phase],
                 "y": found.cost[of_phase], "marker": {"color": COLOUR[phase], "size": 7, "opacity": 0.8},
                 "hovertemplate": "trial %{x}: %{y:.4g}<extra>%{fullData.name}</extra>"}
            )  # fmt: skip
    traces += [_marks(found, status) for status in MARKED if found.of(status).any()]
    if len(found.median):
        traces.append(
            {"type": "scatter", "mode": "lines", "name": "median of neighbours", "x": found.middle, "y": found.median,
             "line": {"color": GREY, "width": 2}, "hoverinfo": "skip"}
        )  # fmt: skip
    layout = {"xaxis": axis("trial"), "yaxis": amount_axis("cost", found.unit, scale_of(found.cost)), **_shade(found)}
    return Drawing(
        "cost_per_trial",
        "Cost of each trial",
        "A cost-aware search begins with cheap trials and spends more once it knows where that is worth it. Colours "
        "say how each trial was chosen.",
        traces,
        layout,
    )


def _marks(found: CostPerTrial, status: Status) -> dict[str, Any]:
    """Marks on the trials that ended so."""
    which = np.flatnonzero(found.of(status))
    which = which[spread(len(which), MOST_MARKED)]
    return {
        "type": "scatter", "mode": "markers", "name": status.value, "x": found.number[which], "y": found.cost[which],
        "marker": {"symbol": SYMBOL[status], "size": 12, "color": RED, "line": {"width": 2, "color": RED}},
        "hoverinfo": "skip",
    }  # fmt: skip


def _shade(found: CostPerTrial) -> dict[str, Any]:
    """A ground behind the trials up to the last of the initial design, if a model came after them."""
    design = [place for place, phase in enumerate(found.phase) if phase is Phase.DESIGN]
    later = [place for place, phase in enumerate(found.phase) if phase is Phase.MODEL]
    if not design or not later or min(later) < max(design):
        return {}
    end = 0.5 * float(found.number[max(design)] + found.number[max(design) + 1])
    shade = {"type": "rect", "x0": float(found.number[0]) - 0.5, "x1": end, "y0": 0, "y1": 1, "yref": "paper"}
    return {"shapes": [{**shade, "fillcolor": ORANGE, "opacity": 0.1, "line": {"width": 0}, "layer": "below"}]}
