"""How value and cost depend on each parameter, by their models: slices and partial dependence, side by side.

Symbols: g values of one parameter; b configurations drawn from the whole space, those in which it has an effect.
    slice    the others as in the best configuration: mean and the band of 95 %
    average  the mean over the b configurations, of what is modelled (warped value, log cost), shown as value and cost
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.designs.filling import sobol
from farthing.errors import NoTrial
from farthing.numerics.arrays import Array
from farthing.numerics.deadline import OutOfTime, within
from farthing.numerics.threads import one_blas_thread
from farthing.report.drawing import BLUE, GREY, ORANGE, Drawing, label, with_extremes
from farthing.report.figures.parameter_axis import Axis, checked_names, grid, places
from farthing.report.figures.scales import amount_title, log_range
from farthing.report.surrogates import Modelled, Surrogates, surrogates_of
from farthing.session import Session

MOST_VALUES = 33  # g: of one parameter
MOST_AVERAGED, FEWEST_AVERAGED = 64, 8  # b
POINTS = 10_000  # that the models are asked at for the averages
DRAWN = 4_096  # configurations among which those are that make a parameter active
MOST_SHOWN = 8  # parameters, where nobody names them
ROW = 190  # height of a row in pixels
MOST_SEEN = 300  # trials that are drawn of each
BAND = 1.96  # standard deviations
LINEAR_TOP = 0.9  # quantile of the observed values up to which the axis reaches: beyond are diverged runs


@dataclass(frozen=True)
class Effect:
    """Of one parameter on the value or on the cost, as users see them. Without a trial in which it has an effect, the
    slice is NaN."""

    average: Array  # (g,)
    slice: Array  # (g,)
    low: Array  # (g,)
    high: Array  # (g,)
    seen_x: Array  # (n,), of trials
    seen: Array  # (n,)


@dataclass(frozen=True)
class Effects:
    """Of one parameter."""

    axis: Axis
    x: Array  # (g,), where its values are drawn
    value: Effect
    cost: Effect | None  # None where no cost is known


@dataclass(frozen=True)
class Dependence:
    """Parameters as they were named; else those of the largest effect on the value, the largest first."""

    effects: tuple[Effects, ...]
    unit: str  # of cost
    maximize: bool


def numbers(session: Session, *names: str, seconds: float = math.inf) -> Dependence:
    """For these parameters, by default for the most influential ones."""
    models = surrogates_of(session)
    space, wanted = models.space, checked_names(models.space, names)
    with one_blas_thread():
        drawn = space.snap(sobol(DRAWN, len(space), np.random.default_rng(session.seed)))
        active, count = space.active(drawn), _averaged(models, len(wanted or space.names))
        others = {name: drawn[active[:, j]][:count] for j, name in enumerate(space.names)}
        if missing := [name for name in wanted if not len(others[name])]:
            raise NoTrial(f"no configuration was found in which {label(missing[0])} has an effect")
        found = [_effects(models, name, others[name], seconds) for name in wanted or space.names if len(others[name])]
    if not wanted:
        found = sorted(found, key=lambda one: -float(np.ptp(one.value.average)))[:MOST_SHOWN]
    return Dependence(tuple(found), models.unit, models.maximize)


def _averaged(models: Surrogates, parameters: int) -> int:
    if models.cost is not None and models.cost.asks_users:
        return FEWEST_AVERAGED
    return int(np.clip(POINTS // (parameters * MOST_VALUES), FEWEST_AVERAGED, MOST_AVERAGED))


def _effects(models: Surrogates, name: str, others: Array, seconds: float) -> Effects:
    """Over other configurations (b, p), and around the best one."""
    j, best = models.space.names.index(name), models.best_with(models.space.names.index(name))
    u, x = grid(models.space.params[name], MOST_VALUES)
    average, held = with_values(others, j, u), None if best is None else with_values(best.unit[None, :], j, u)
    value = _effect(models.value, name, average, held, len(u))
    cost = None
    if models.cost is not None:
        with suppress(OutOfTime), within(seconds):
            cost = _effect(models.cost, name, average, held, len(u))
    return Effects(Axis.of(models.space, name), x, value, cost)


def _effect(modelled: Modelled, name: str, average: Array, held: Array | None, g: int) -> Effect:
    averages = modelled.mean_at(average).reshape(g, -1).mean(axis=1)
    mean, sd = np.full((2, g), np.nan) if held is None else modelled.predict(held)
    ends = np.array([modelled.shown(mean - BAND * sd), modelled.shown(mean + BAND * sd)])
    seen_x = places(modelled.space, name, modelled.trials)
    there = ~np.isnan(seen_x)
    return Effect(
        modelled.shown(averages), modelled.shown(mean), ends.min(axis=0), ends.max(axis=0), seen_x[there],
        modelled.seen[there],
    )  # fmt: skip


def with_values(U: Array, j: int, u: Array) -> Array:
    """Each of the values u (g,) of parameter j in each of the points U (b, p): (g * b, p).

    >>> with_values(np.zeros((1, 2)), 1, np.array([0.25, 0.75])).tolist()
    [[0.0, 0.25], [0.0, 0.75]]
    """
    points = np.tile(U, (len(u), 1))
    points[:, j] = np.repeat(u, len(U))
    return points


# -- the drawing -------------------------------------------------------------------------------------------------------


def draw(found: Dependence) -> Drawing:
    """One row for each parameter: value on the left, cost on the right. All rows have one scale, so that it is seen
    which parameter matters."""
    traces, layout = list[dict[str, Any]](), dict[str, Any]()
    costs = [effects.cost for effects in found.effects if effects.cost is not None]
    value_axis = {
        "title": {"text": "value", "standoff": 2},
        **_range([effects.value for effects in found.effects], found.maximize),
    }
    cost_title = {"text": amount_title("cost", found.unit), "standoff": 2}
    cost_axis = {"title": cost_title, **_log_range(costs)} if costs else {}
    rows, columns = len(found.effects), 2 if costs else 1
    for row, effects in enumerate(found.effects):
        panels = [(effects.value, BLUE, value_axis), (effects.cost, ORANGE, cost_axis)]
        for column, (effect, colour, axis) in enumerate(panels):
            if effect is None:
                continue
            panel = "" if row == column == 0 else str(row * columns + column + 1)
            traces += _traces(effects, effect, panel, colour, legend=panel == "")
            across = {"domain": _domain(column, columns), "anchor": f"y{panel}"}
            layout[f"xaxis{panel}"] = {**effects.axis.layout(effects.x), **across}
            layout[f"yaxis{panel}"] = {**axis, "domain": _row(row, rows), "anchor": f"x{panel}"}
    return Drawing(
        "dependence", "How value and cost depend on each parameter",
        "The line and its band (95 %) follow one parameter while the others stay as in the best configuration; the "
        "dotted line is the average over all other configurations. Points are trials, whose other parameters differ.",
        traces, {**layout, "height": 90 + ROW * rows},
    )  # fmt: skip


def _domain(column: int, columns: int) -> list[float]:
    return [0.0, 1.0] if columns == 1 else [[0.0, 0.42], [0.6, 1.0]][column]


def _row(row: int, rows: int) -> list[float]:
    """From the top; the gap below holds the names of values."""
    height, gap = 1.0 / rows, 70.0 / (ROW * rows)
    top = 1.0 - row * height
    return [max(top - height + (gap if rows > 1 else 0.0), 0.0), top]


def _traces(effects: Effects, effect: Effect, panel: str, colour: str, *, legend: bool) -> list[dict[str, Any]]:
    kept = with_extremes(effect.seen, MOST_SEEN)
    is_listed = effects.axis.options is not None
    mode = "lines+markers" if is_listed else "lines"
    band = {"x": np.concatenate([effects.x, effects.x[::-1]]), "y": np.concatenate([effect.high, effect.low[::-1]])}
    shown = [
        {"x": effect.seen_x[kept], "y": effect.seen[kept], "mode": "markers", "name": "trials",
         "marker": {"color": GREY, "size": 4, "opacity": 0.4}},
        {**band, "mode": "lines", "fill": "toself", "line": {"width": 0}, "fillcolor": pale(colour), "name": "band",
         "hoverinfo": "skip"},
        {"x": effects.x, "y": effect.slice, "mode": mode, "line": {"color": colour}, "name": "around the best"},
        {"x": effects.x, "y": effect.average, "mode": mode, "name": "average",
         "line": {"color": colour, "dash": "dot"}},
    ]  # fmt: skip
    return [
        {"type": "scatter", **trace, "xaxis": f"x{panel}", "yaxis": f"y{panel}", "showlegend": legend}
        for trace in shown
        if not np.all(np.isnan(np.asarray(trace["y"], dtype=np.float64)))
    ]  # fmt: skip


def pale(colour: str) -> str:
    """A colour for the ground of a band."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def _range(effects: Sequence[Effect], maximize: bool) -> dict[str, Any]:
    """Of the axis of values: the trials but for the worst tenth, which may have diverged, and the lines as far as they
    do not lead beyond that by more than as much again."""
    seen = np.concatenate([effect.seen for effect in effects])
    worst, best = np.quantile(seen, [1.0 - LINEAR_TOP, 1.0] if maximize else [LINEAR_TOP, 0.0])
    span = abs(worst - best)
    lines = np.concatenate([[*effect.average, *effect.slice] for effect in effects])
    lines = np.clip(lines, min(worst, best) - span, max(worst, best) + span)
    low, high = np.nanmin([*lines, worst, best]), np.nanmax([*lines, worst, best])
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return {"range": [low - margin, high + margin], "zeroline": False, "nticks": 5}


def _log_range(effects: Sequence[Effect]) -> dict[str, Any]:
    """Of the axis of costs: all lines and trials; a cost of zero has no place on it."""
    costs = np.concatenate([[*effect.average, *effect.slice, *effect.seen] for effect in effects])
    there = costs[costs > 0.0] if np.any(costs > 0.0) else np.ones(1)
    return log_range(float(there.min()), float(there.max()), ticks=4)
