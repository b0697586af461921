"""Both levels of a two-level surrogate, along one or two parameters (BOPT-HPO, Figure 3).

A training is judged first when its fast period ends, and at last when it is complete; policies `bopt` and `eqie` model
both. The other parameters are as in the best configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.checks import refuse
from farthing.errors import InvalidArgument, NoTrial
from farthing.numerics.arrays import Array
from farthing.numerics.threads import one_blas_thread
from farthing.policies.bopt import BOPT, EQIE
from farthing.policies.bopt.two_levels import TrainingRun, TwoLevels, training_runs
from farthing.report.drawing import BLUE, GREY, ORANGE, Drawing, label, with_extremes
from farthing.report.figures.dependence import BAND, pale, with_values
from farthing.report.figures.parameter_axis import Axis, checked_names, grid, places
from farthing.session import Session
from farthing.space import Space

MOST_VALUES = 65  # along one parameter
MOST_OF_TWO = 25  # along each of two
MOST_TRIED = 9  # values of each parameter, by which the one is chosen that nobody has named
MOST_SEEN = 500  # runs that are drawn
HELD = "the other parameters are as in the best configuration"


@dataclass(frozen=True)
class Level:
    """What is believed of one level at each point, and what was seen, in the user's units."""

    mean: Array  # (g,), or (g, h) along two parameters
    low: Array  # the ends of the band of 95 %
    high: Array
    seen: Array  # (n,)
    seen_at: tuple[Array, ...]  # (n,) for each parameter


@dataclass(frozen=True)
class Levels:
    """Along one parameter, or two."""

    axes: tuple[Axis, ...]
    x: tuple[Array, ...]  # (g,), and (h,)
    fast: Level
    complete: Level


def numbers(session: Session, *names: str) -> Levels:
    """Along these one or two parameters, by default the number along which complete training changes most."""
    if len(names) > 2 or len(set(names)) < len(names):
        refuse("names", "one or two different parameters", names)
    space, wanted = session.space, checked_names(session.space, names)
    with one_blas_thread():
        levels = _levels(session)
        best = min(levels.runs, key=lambda run: (run.complete is None, run.latest, run.trial.number))
        held = best.trial.unit
        wanted = wanted or (_most_changing(space, levels, held),)
        columns = [space.names.index(name) for name in wanted]
        _require_active(space, held, columns)
        most = MOST_VALUES if len(wanted) == 1 else MOST_OF_TWO
        grids = [grid(space.params[name], most) for name in wanted]
        U = held[None, :]
        for j, (u, _) in zip(reversed(columns), reversed(grids), strict=True):
            U = with_values(U, j, u)
        return _found(session, levels, wanted, tuple(x for _, x in grids), U)


def _levels(session: Session) -> TwoLevels:
    policy = session.policy
    if isinstance(policy, EQIE):
        policy = policy.levels
    if not isinstance(policy, BOPT):
        name = label(policy.name)
        raise InvalidArgument(f"only the policies bopt and eqie train at two levels; this study has {name}")
    runs = training_runs(policy, session.history)
    if not any(run.complete is not None for run in runs):
        raise NoTrial("no training is complete yet, so nothing is known of the second level")
    return TwoLevels.kept(session.space, runs, session.history, policy.modelling)


def _most_changing(space: Space, levels: TwoLevels, held: Array) -> str:
    """The number of which the complete level depends most."""
    numeric = [name for name in space.names if Axis.of(space, name).options is None]
    active = space.active(held[None, :])[0]
    there = [name for name in numeric if active[space.names.index(name)]] or [
        name for name, used in zip(space.names, active, strict=True) if used
    ]

    def change(name: str) -> float:
        u, _ = grid(space.params[name], MOST_TRIED)
        mean, _ = levels.model.predict(space.features(with_values(held[None, :], space.names.index(name), u)))
        return float(np.ptp(mean))

    return max(there, key=change)


def _require_active(space: Space, held: Array, columns: Sequence[int]) -> None:
    active = space.active(held[None, :])[0]
    for j in columns:
        if not active[j]:
            raise InvalidArgument(f"{label(space.names[j])} has no effect in the best configuration")


def _found(session: Session, levels: TwoLevels, names: tuple[str, ...], x: tuple[Array, ...], U: Array) -> Levels:
    space, shape = session.space, tuple(map(len, x))
    sign = session.record.direction.turned(1.0)
    X = space.features(U)

    def level(prediction: tuple[Array, Array], runs: list[TrainingRun], seen: list[float]) -> Level:
        mean, sd = prediction[0], np.sqrt(prediction[1])
        curves = [sign * levels.unscaled(z).reshape(shape) for z in (mean, mean - BAND * sd, mean + BAND * sd)]
        at = tuple(places(space, name, [run.trial for run in runs]) for name in names)
        return Level(curves[0], np.minimum(*curves[1:]), np.maximum(*curves[1:]), sign * np.array(seen), at)

    ended = [run for run in levels.runs if run.complete is not None]
    return Levels(
        tuple(Axis.of(space, name) for name in names), x,
        level(levels.model.low.predict(X), levels.runs, [run.fast for run in levels.runs]),
        level(levels.model.predict(X), ended, [y for run in ended if (y := run.complete) is not None]),
    )  # fmt: skip


# -- the drawing -------------------------------------------------------------------------------------------------------


def draw(found: Levels) -> Drawing:
    """Two curves with bands along one parameter; two maps along two."""
    return _curves(found) if len(found.axes) == 1 else _maps(found)


def _curves(found: Levels) -> Drawing:
    traces = list[dict[str, Any]]()
    for level, name, colour, symbol in _named(found):
        traces += _curve(found.x[0], level, name, colour, symbol)
    layout = {"xaxis": found.axes[0].layout(found.x[0]), "yaxis": {"title": {"text": "value"}}, "height": 420}
    return Drawing(
        "two_levels", f"Two levels of training along {label(found.axes[0].name)}",
        "What the model predicts at the end of the fast period and of complete training, each with a band (95 %); "
        f"{HELD}. Marks are what was seen, and their other parameters differ.",
        traces, layout,
    )  # fmt: skip


def _named(found: Levels) -> list[tuple[Level, str, str, str]]:
    return [
        (found.fast, "end of the fast period", ORANGE, "triangle-up"),
        (found.complete, "complete training", BLUE, "circle"),
    ]


def _curve(x: Array, level: Level, name: str, colour: str, symbol: str) -> list[dict[str, Any]]:
    kept = with_extremes(level.seen, MOST_SEEN)
    band_y = np.concatenate([level.high, level.low[::-1]])
    shown = [
        {"x": np.concatenate([x, x[::-1]]), "y": band_y, "mode": "lines", "line": {"width": 0}, "fill": "toself",
         "fillcolor": pale(colour), "hoverinfo": "skip", "showlegend": False, "name": f"{name}, band"},
        {"x": x, "y": level.mean, "mode": "lines", "line": {"color": colour}, "name": name},
        {"x": level.seen_at[0][kept], "y": level.seen[kept], "mode": "markers", "showlegend": False,
         "name": f"{name}, seen", "marker": {"symbol": symbol, "color": colour, "size": 6, "opacity": 0.6}},
    ]  # fmt: skip
    return [{"type": "scatter", **trace} for trace in shown]


def _maps(found: Levels) -> Drawing:
    ends = [float(np.min([level.mean.min() for level, *_ in _named(found)])),
            float(np.max([level.mean.max() for level, *_ in _named(found)]))]  # fmt: skip
    traces, layout = list[dict[str, Any]](), dict[str, Any](height=440, showlegend=False, annotations=[])
    kind = "contour" if all(axis.options is None for axis in found.axes) else "heatmap"
    for i, (level, name, _, symbol) in enumerate(_named(found)):
        panel = "" if i == 0 else "2"
        axes = {"xaxis": f"x{panel}", "yaxis": f"y{panel}"}
        kept = with_extremes(level.seen, MOST_SEEN)
        traces += [
            {"type": kind, "x": found.x[0], "y": found.x[1], "z": level.mean.T, "zmin": ends[0], "zmax": ends[1],
             "colorscale": "Viridis", "showscale": i == 1, "name": name, **axes},
            {"type": "scatter", "mode": "markers", "x": level.seen_at[0][kept], "y": level.seen_at[1][kept],
             "text": [f"{seen:.4g}" for seen in level.seen[kept]], "name": f"{name}, seen",
             "marker": {"symbol": symbol, "color": "white", "size": 6, "line": {"color": GREY, "width": 1}}, **axes},
        ]  # fmt: skip
        domain = [0.0, 0.46] if i == 0 else [0.54, 1.0]
        layout[f"xaxis{panel}"] = {**found.axes[0].layout(found.x[0]), "domain": domain, "anchor": f"y{panel}"}
        layout[f"yaxis{panel}"] = {**found.axes[1].layout(found.x[1]), "anchor": f"x{panel}"}
        layout["annotations"].append(
            {"text": name, "xref": "paper", "yref": "paper", "x": sum(domain) / 2, "y": 1.0, "yanchor": "bottom",
             "xanchor": "center", "showarrow": False}
        )  # fmt: skip
    layout["yaxis2"]["title"] = {"text": ""}
    names = " and ".join(label(axis.name) for axis in found.axes)
    return Drawing(
        "two_levels", f"Two levels of training along {names}",
        f"What the model predicts at the end of the fast period and of complete training; {HELD}. Marks are the "
        "trainings.",
        traces, layout,
    )  # fmt: skip
