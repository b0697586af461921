"""Learning curves of trainings that report step by step: where they were paused, resumed and stopped, and how the best
of those that could go on are predicted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.errors import NoTrial
from farthing.history import TrackedTrial
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import few_rows
from farthing.record.events import Asked, Ended, Reported
from farthing.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, YELLOW, Drawing, with_extremes
from farthing.report.figures.continuation import Continuation, continuations
from farthing.report.figures.scales import axis, scale_of, value_axis
from farthing.session import Session
from farthing.trial import Status

MOST_CURVES = 60  # drawn: half of them the best, the others from all of the study
MOST_STEPS = 200  # of one curve
MOST_CONTINUED = 3
MOST_EVENTS = 20_000  # of a study whose pauses are all looked up: reading them takes a second
PAUSED, RESUMED, STOPPED, FAILED = "paused", "resumed", "stopped", "failed or killed"
MARK_OF = {
    Status.PAUSED: PAUSED, Status.STOPPED: STOPPED, Status.FAILED: FAILED, Status.KILLED: FAILED,
}  # fmt: skip
MARKERS = {
    PAUSED: {"symbol": "circle-open", "color": ORANGE, "size": 8},
    RESUMED: {"symbol": "circle", "color": GREEN, "size": 4},  # inside of the ring of its pause
    STOPPED: {"symbol": "square", "color": PURPLE, "size": 7},
    FAILED: {"symbol": "x-thin", "color": RED, "size": 8, "line": {"width": 2, "color": RED}},
}
COLOURS = (ORANGE, PURPLE, YELLOW)  # of continuations


@dataclass(frozen=True, eq=False)
class DrawnCurve:
    """What one trial reported, in the user's own sign; of a long training some steps, its extremes among them."""

    trial: int
    step: Ints  # (s,)
    value: Array  # (s,)


@dataclass(frozen=True, eq=False)
class Marks:
    """Places on the curves."""

    trial: Ints  # (m,)
    step: Ints  # (m,)
    value: Array  # (m,)


@dataclass(frozen=True, eq=False)
class Curves:
    """Some of the trainings, the best one, what became of them, and how some are predicted to go on."""

    curves: Sequence[DrawnCurve]
    best: int | None  # the number of the trial with the best value, if it has a curve
    count: int  # of trainings, drawn or not
    marks: Mapping[str, Marks]
    continued: Sequence[Continuation]
    maximize: bool


def numbers(session: Session, seconds: float = math.inf) -> Curves:
    """What was reported until now; predictions as far as there is time."""
    history = session.history
    trained = [trial for trial in history.trials if len(trial.curve) and trial.value is not None]
    if not trained:
        raise NoTrial("no trial has reported a training step: curves are of objectives that yield after each step")
    chosen = _chosen(trained)
    best = history.incumbent
    turned = session.record.direction.turned_curve
    values = {trial.number: np.array(turned(trial.curve).values, dtype=np.float64) for trial in chosen}
    return Curves(
        [_drawn(number, y) for number, y in values.items()],
        best.number if best is not None and best.number in values else None,
        len(trained),
        _marks(session, {trial.number: trial for trial in chosen}, values),
        continuations(session, MOST_CONTINUED, seconds),
        session.record.direction.maximize,
    )


def _chosen(trained: Sequence[TrackedTrial]) -> list[TrackedTrial]:
    """The best, others evenly spread, and those that are running."""
    ends = np.array([trial.value for trial in trained], dtype=np.float64)
    running = [row for row, trial in enumerate(trained) if trial.status is Status.RUNNING][-MOST_CURVES // 4 :]
    rows = {*few_rows(len(trained), ends, MOST_CURVES - len(running)).tolist(), *running}
    return [trained[row] for row in sorted(rows)]


def _drawn(number: int, y: Array) -> DrawnCurve:
    kept = with_extremes(y, MOST_STEPS)
    kept = np.union1d(kept, [0, len(y) - 1]).astype(np.intp)
    return DrawnCurve(number, kept + 1, y[kept])


# -- what became of them -----------------------------------------------------------------------------------------------


def _marks(session: Session, chosen: Mapping[int, TrackedTrial], values: Mapping[int, Array]) -> dict[str, Marks]:
    """Every pause, resumption and end; of a study of very many events those that its trials still tell."""
    known = _as_trials_tell(chosen) if session.record.events > MOST_EVENTS else _as_events_tell(session, chosen)
    places: dict[str, dict[tuple[int, int], None]] = {kind: {} for kind in MARKERS}
    for kind, number, step in known:
        if 1 <= step <= len(values[number]):
            places[kind][number, step] = None
    return {
        kind: Marks(
            np.array([number for number, _ in found], dtype=np.intp),
            np.array([step for _, step in found], dtype=np.intp),
            np.array([values[number][step - 1] for number, step in found], dtype=np.float64),
        )
        for kind, found in places.items()
        if found
    }


def _as_events_tell(session: Session, chosen: Mapping[int, TrackedTrial]) -> Iterator[tuple[str, int, int]]:
    step: dict[int, int] = {}
    for event in session.record.past():
        number = event.about
        if number is None or number not in chosen:
            continue
        if isinstance(event, Asked):
            step[number] = event.proposal.start_step
            yield RESUMED, number, step[number]  # at step 0 it only begins
        elif isinstance(event, Reported):
            step[number] = step.get(number, 0) + 1
        elif isinstance(event, Ended) and event.outcome.status in MARK_OF:
            yield MARK_OF[event.outcome.status], number, step.get(number, 0)


def _as_trials_tell(chosen: Mapping[int, TrackedTrial]) -> Iterator[tuple[str, int, int]]:
    for number, trial in chosen.items():
        yield RESUMED, number, trial.from_step
        if trial.status in MARK_OF:
            yield MARK_OF[trial.status], number, len(trial.curve)


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw(found: Curves) -> Drawing:
    """All curves in grey, the best one above them, marks, and the bands of predictions."""
    others = [curve for curve in found.curves if curve.trial != found.best]
    traces = [_lines("trainings", others, GREY, 1.2, 0.45)] if others else []
    traces += [trace for place, one in enumerate(found.continued) for trace in _continued(one, place)]
    traces += [
        _lines(f"best: trial {curve.trial}", [curve], BLUE, 3.0, 1.0)
        for curve in found.curves
        if curve.trial == found.best
    ]
    traces += [_markers(kind, marks) for kind, marks in found.marks.items()]
    shown = [*(curve.value for curve in found.curves), *(end for one in found.continued for end in (one.low, one.high))]
    layout = {
        "xaxis": axis("step", rangemode="tozero"),
        "yaxis": value_axis("value", scale_of(*shown), maximize=found.maximize),
        "height": 440,
    }
    return Drawing("curves", "Learning curves", _caption(found), traces, layout)


def _caption(found: Curves) -> str:
    parts = ["What each training reported step by step."]
    if len(found.curves) < found.count:
        parts.append(f"{len(found.curves)} of {found.count} are drawn: the best, and others from all of the study.")
    if found.continued:
        parts.append(
            "Dotted: the best value that trainings which could go on are predicted to reach, and the band that holds "
            "it in 8 of 10 cases."
        )
    return " ".join(parts)


def _lines(name: str, curves: Sequence[DrawnCurve], colour: str, width: float, opacity: float) -> dict[str, Any]:
    """Several curves as one trace, with gaps between them."""
    x = np.concatenate([np.append(curve.step.astype(np.float64), np.nan) for curve in curves])[:-1]
    y = np.concatenate([np.append(curve.value, np.nan) for curve in curves])[:-1]
    trial = np.concatenate([np.full(len(curve.step) + 1, curve.trial) for curve in curves])[:-1]
    return {
        "type": "scatter", "mode": "lines+markers" if len(x) == 1 else "lines", "name": name, "x": x, "y": y,
        "customdata": trial, "line": {"color": colour, "width": width}, "opacity": opacity, "connectgaps": False,
        "hovertemplate": "trial %{customdata}, step %{x}: %{y:.6g}<extra></extra>",
    }  # fmt: skip


def _markers(kind: str, marks: Marks) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": kind, "x": marks.step, "y": marks.value,
        "customdata": marks.trial, "marker": MARKERS[kind],
        "hovertemplate": "trial %{customdata} " + kind + " at step %{x}<extra></extra>",
    }  # fmt: skip


def _continued(one: Continuation, place: int) -> list[dict[str, Any]]:
    """The band and its median; one entry of the legend stands for all."""
    group, colour = {"legendgroup": "predicted"}, COLOURS[place]
    ends = {"x": [*one.step, *one.step[::-1]], "y": [*one.low, *one.high[::-1]]}
    return [
        {"type": "scatter", "mode": "lines", **ends, **group, "fill": "toself", "fillcolor": colour, "opacity": 0.2,
         "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "lines", "x": one.step, "y": one.median, **group,
         "name": "predicted", "showlegend": place == 0, "line": {"color": colour, "dash": "dot", "width": 2},
         "hovertemplate": f"trial {one.trial} predicted, step %{{x}}: %{{y:.6g}}<extra></extra>"},
    ]  # fmt: skip
