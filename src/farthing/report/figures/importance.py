"""How important each parameter is for value and for cost: functional ANOVA on the models of both.

The shares of the variance of what the models predict, over the whole space and each configuration as likely as any
other (`numerics.sensitivity`): of each parameter alone, and together with its interactions. Values are those that are
modelled, so that a few diverged runs do not decide; cost enters by its logarithm. A conditional parameter is drawn like
any other; where it has no effect the model sees it at its neutral place, so that it counts as far as it is active.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.designs.filling import sobol
from farthing.numerics.arrays import Array
from farthing.numerics.deadline import OutOfTime, within
from farthing.numerics.sensitivity import Indices, indices
from farthing.numerics.threads import one_blas_thread
from farthing.report.drawing import BLUE, ORANGE, Drawing, label
from farthing.report.surrogates import Surrogates, surrogates_of
from farthing.session import Session

MOST_POINTS, FEWEST_POINTS = 2**11, 2**6  # of the samples A and B
ENTRIES = 1e7  # of kernel matrices: a tenth of a second
MOST_BARS = 20  # parameters that are drawn


@dataclass(frozen=True)
class Importance:
    """Parameters by their importance for the value, the most important first; shares of the variance (p,)."""

    names: tuple[str, ...]
    value_main: Array
    value_total: Array
    cost_main: Array | None  # None where no cost is known
    cost_total: Array | None
    value_interactions: float  # what no parameter makes alone
    cost_interactions: float | None
    explained: float  # of the differences between values, by a model that did not see the value it predicts


def numbers(session: Session, seconds: float = math.inf) -> Importance:
    """By the models of now."""
    models = surrogates_of(session)
    rng = np.random.default_rng(session.seed)
    with one_blas_thread():
        points = _points(models)
        A, B = np.split(sobol(points, 2 * len(models.space), rng), 2, axis=1)
        value = indices(models.value.mean_at, A, B)
        cost = _of_cost(models, A, B, seconds)
        explained = _explained(models)
    order = np.lexsort((-value.main, -value.total))
    return Importance(
        tuple(models.space.names[i] for i in order), value.main[order], value.total[order],
        None if cost is None else cost.main[order], None if cost is None else cost.total[order],
        value.interactions, None if cost is None else cost.interactions, explained,
    )  # fmt: skip


def _points(models: Surrogates) -> int:
    """A power of two, for which the points are most even."""
    affordable = ENTRIES / ((len(models.space) + 2) * len(models.process.X))
    return int(np.clip(2 ** math.floor(math.log2(max(affordable, 1.0))), FEWEST_POINTS, MOST_POINTS))


def _of_cost(models: Surrogates, A: Array, B: Array, seconds: float) -> Indices | None:
    """None without costs, or if the user's function of cost is too slow."""
    if models.cost is None:
        return None
    few = FEWEST_POINTS if models.cost.asks_users else len(A)
    try:
        with within(seconds):
            return indices(models.cost.mean_at, A[:few], B[:few])
    except OutOfTime:
        return None


def _explained(models: Surrogates) -> float:
    """1 less the squared residuals, each given all other values, over those of the mean."""
    y = models.process.y
    residuals, _ = models.process.leave_one_out()
    spread = float(np.sum((y - y.mean()) ** 2))
    return max(1.0 - float(np.sum(residuals**2)) / spread, 0.0) if spread > 0.0 else 0.0


def draw(found: Importance) -> Drawing:
    """Bars for value on the left, for cost on the right."""
    names = [label(name, 24) for name in found.names[:MOST_BARS]]
    traces = _bars(names, found.value_main, found.value_total, BLUE, "")
    layout: dict[str, Any] = {
        "barmode": "stack", "height": 130 + 26 * len(names), "showlegend": False,
        "xaxis": _axis("of the value's variation", [0.0, 1.0]),
        "yaxis": _places(names),
    }  # fmt: skip
    if found.cost_main is not None and found.cost_total is not None:
        traces += _bars(names, found.cost_main, found.cost_total, ORANGE, "2")
        layout["xaxis"] = _axis("of the value's variation", [0.0, 0.48])
        layout["xaxis2"] = _axis("of the cost's variation", [0.52, 1.0])
        layout["yaxis2"] = {**_places(names), "anchor": "x2", "showticklabels": False}
    return Drawing(
        "importance", "Importance of each parameter",
        "How much of the variation of the predicted value, and of the predicted cost, each parameter makes over the "
        "whole space: alone (dark), and together with others (pale). " + _in_words(found),
        traces, layout,
    )  # fmt: skip


def _bars(names: list[str], main: Array, total: Array, colour: str, axis: str) -> list[dict[str, Any]]:
    """By place on the axis: two long names may look alike."""
    y = np.arange(len(names))
    alone, beyond = main[: len(names)], (total - main)[: len(names)]
    return [
        {"type": "bar", "orientation": "h", "x": x, "y": y, "name": name, "xaxis": f"x{axis}", "yaxis": f"y{axis}",
         "marker": {"color": colour, "opacity": opacity}, "text": names, "textposition": "none",
         "hovertemplate": "%{text}: %{x:.1%} " + name + "<extra></extra>"}
        for x, name, opacity in ((alone, "alone", 1.0), (beyond, "with others", 0.35))
    ]  # fmt: skip


def _axis(title: str, domain: list[float]) -> dict[str, Any]:
    return {"title": {"text": title}, "tickformat": ".0%", "rangemode": "tozero", "domain": domain, "nticks": 5}


def _places(names: list[str]) -> dict[str, Any]:
    return {"tickvals": list(range(len(names))), "ticktext": names, "autorange": "reversed", "automargin": True}


def _in_words(found: Importance) -> str:
    if not found.value_total.any():
        return "The model sees no difference between configurations yet."
    cost = "" if found.cost_interactions is None else f", and {found.cost_interactions:.0%} of that of the cost"
    return (
        f"Interactions make {found.value_interactions:.0%} of the variation of the value{cost}. The model explains "
        f"{found.explained:.0%} of the differences between values that it has not seen: believe the bars that far."
    )
