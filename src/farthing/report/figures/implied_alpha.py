"""The alphas whose EI / cost^alpha leads to the pick of contextual EI, over the trials (CEI, Figure 5, right)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.pareto import implied_alpha
from farthing.errors import NoTrial
from farthing.numerics.arrays import Array
from farthing.policies.pareto import CONTEXTUAL
from farthing.record.moments import MOST
from farthing.report.drawing import BLUE, GREY, ORANGE, Drawing
from farthing.report.fronts import fronts_of
from farthing.session import Session

HIGHEST = 4.0  # alpha that is drawn: above, cost decides alone
LEAST_BAR = 0.02  # height of the bar of a narrow interval, so that it is seen


@dataclass(frozen=True)
class ImpliedAlphas:
    """For each trial the interval of alpha, NaN where none leads to the pick, and the one number for it."""

    trial: Array  # (n,), at last the next one
    low: Array  # (n,)
    high: Array  # (n,), may be infinite
    alpha: Array  # (n,), the middle; the nearest alpha where there is no interval


def numbers(session: Session, most: int = MOST, seconds: float = math.inf) -> ImpliedAlphas:
    """For at most so many trials, evenly spread, and the next one; fewer if there is not time for all."""
    coming = len(session.history.trials)
    found = [
        implied_alpha(coming if then.trial is None else then.trial, then.front, then.front.picks[CONTEXTUAL])
        for then in fronts_of(session).at_most(session, most, seconds)
        if CONTEXTUAL in then.front.picks
    ]
    if not found:
        raise NoTrial("no configuration is left that contextual EI could pick")
    intervals = np.array([implied.interval or (np.nan, np.nan) for implied in found])
    return ImpliedAlphas(
        np.array([implied.trial for implied in found]), intervals[:, 0], intervals[:, 1],
        np.array([implied.alpha for implied in found]),
    )  # fmt: skip


def draw(found: ImpliedAlphas) -> Drawing:
    """A bar for each interval, a ring where there is none, and lines at EI and EI per cost."""
    there = ~np.isnan(found.low)
    top = _top(found)
    low, high = np.minimum(found.low[there], top - LEAST_BAR), np.minimum(found.high[there], top)
    apart = min(np.diff(np.unique(found.trial)).tolist(), default=1)
    bars = {
        "type": "bar", "x": found.trial[there], "base": low, "y": np.maximum(high - low, LEAST_BAR), "name": "interval",
        "width": 0.7 * apart, "marker": {"color": BLUE}, "text": _texts(found.low[there], found.high[there]),
        "textposition": "none",
        "hovertemplate": "trial %{x}<br>%{text}<extra></extra>",
    }  # fmt: skip
    rings = {
        "type": "scatter", "mode": "markers", "x": found.trial[~there], "y": np.minimum(found.alpha[~there], top),
        "name": "no alpha leads there (the nearest)", "marker": {"symbol": "circle-open", "color": ORANGE, "size": 8},
        "text": [f"{alpha:.3g}" for alpha in found.alpha[~there]],
        "hovertemplate": "trial %{x}<br>no alpha leads there, %{text} is nearest<extra></extra>",
    }  # fmt: skip
    lines = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": alpha, "y1": alpha,
         "line": {"color": GREY, "dash": "dot"}}
        for alpha in (0.0, 1.0)
    ]  # fmt: skip
    names = [
        {"xref": "paper", "x": 1, "y": alpha, "text": name, "showarrow": False, "xanchor": "right", "yanchor": "bottom"}
        for alpha, name in ((0.0, "EI"), (1.0, "EI per cost"))
    ]
    layout = {
        "xaxis": {"title": {"text": "trial"}}, "yaxis": {"title": {"text": "alpha"}, "range": [-0.1, 1.02 * top]},
        "shapes": lines, "annotations": names, "showlegend": True,
    }  # fmt: skip
    return Drawing(
        "implied_alpha", "How much contextual EI weighs cost",
        "CEI picks the cheapest configuration among those of nearly the best expected improvement (EI). A bar shows "
        "the alphas with which EI / cost^alpha would pick the same one: 0 looks at EI alone, 1 divides it by cost.",
        [bars, rings], layout,
    )  # fmt: skip


def _top(found: ImpliedAlphas) -> float:
    """Where the axis ends: a few intervals without end must not make all others look like points."""
    ends = np.where(np.isfinite(found.high), found.high, found.alpha)
    return float(np.clip(1.2 * np.median(ends), 1.5, HIGHEST))


def _texts(low: Array, high: Array) -> list[str]:
    ends = ["any larger one" if np.isinf(end) else f"{end:.3g}" for end in high]
    return [f"alpha from {start:.3g} to {end}" for start, end in zip(low, ends, strict=True)]
