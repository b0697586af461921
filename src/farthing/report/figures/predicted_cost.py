"""What each trial was predicted to cost when it was proposed, against what it did cost.

Symbols: c the cost of a trial, m the predicted one, and b = log c, which its model took to be normal around log m when
the trial was proposed: the interval of a prediction is m exp(+- QUANTILE sd). The model is fitted again at the state
that the ask saw, with the hyperparameters that it stored; where that gives another m, there is no interval.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.errors import FarthingError, NoTrial
from farthing.history import Way
from farthing.history.history import TrackedTrial
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.numerics.threads import one_blas_thread
from farthing.policies import Policy
from farthing.policies.auto import Auto
from farthing.policies.finishing import FINISHING
from farthing.policies.model_based import ModelBased
from farthing.record.events import Asked
from farthing.record.state import State
from farthing.report.drawing import BLUE, GREY, RED, Drawing, spread
from farthing.report.figures.scales import amount_axis, log_scale
from farthing.session import Session
from farthing.trial import EndedBy, Status

INSIDE = 0.9  # share of costs that an interval, or the band, is to contain
QUANTILE = 1.6448536269514722  # of the normal distribution, at (1 + INSIDE) / 2
FEWEST_FOR_BAND = 10  # costs, below which a share of them says nothing
MOST_INTERVALS = 40  # drawn: more cannot be told apart
MOST_EVENTS = 20_000  # of a study whose asks are looked at again: reading them takes a second
NEAR = 0.5  # standard deviations: a mean that is further from the log of what was predicted is of another model


@dataclass(frozen=True)
class PredictedCost:
    """Trials whose cost was predicted, of those that ended as predicted and of those that failed or were killed.

    `low` and `high` are the ends of a prediction's interval, NaN where there is none. `band` are the ratios of cost to
    prediction between which 9 of 10 costs were, None while there are few.
    """

    trial: Ints  # (n,)
    predicted: Array  # (n,)
    actual: Array  # (n,)
    whole: Mask  # (n,) whether it ended as it was predicted, and did not fail
    low: Array  # (n,)
    high: Array  # (n,)
    band: tuple[float, float] | None
    unit: str

    @property
    def factor(self) -> float | None:
        """Half of the costs were within this factor of their predictions."""
        error = np.abs(np.log(self.actual / self.predicted)[self.whole])
        return float(np.exp(np.median(error))) if len(error) else None

    @property
    def covered(self) -> tuple[int, int]:
        """How many costs were inside their intervals, and how many intervals there are."""
        known = np.isfinite(self.low) & self.whole
        inside = known & (self.low <= self.actual) & (self.actual <= self.high)
        return int(inside.sum()), int(known.sum())


def numbers(session: Session, seconds: float = math.inf) -> PredictedCost:
    """Predictions and costs until now; intervals as far as there is time."""
    pairs = [
        (trial, before, after)
        for trial in session.history.trials
        if (before := _predicted(trial)) is not None and (after := _actual(trial)) is not None
    ]
    if not pairs:
        raise NoTrial("no trial has ended whose cost had been predicted")
    number = np.array([trial.number for trial, _, _ in pairs], dtype=np.intp)
    predicted = np.array([cost for _, cost, _ in pairs], dtype=np.float64)
    actual = np.array([cost for _, _, cost in pairs], dtype=np.float64)
    whole = np.array([trial.status not in (Status.FAILED, Status.KILLED) for trial, _, _ in pairs], dtype=np.bool_)
    low, high = np.full((2, len(pairs)), np.nan)
    of = {int(trial): row for row, trial in enumerate(number)}
    for trial, mean, sd in _beliefs(session, number[whole], seconds):
        row = of[trial]
        if abs(mean - math.log(predicted[row])) <= NEAR * sd:
            low[row], high[row] = predicted[row] * np.exp([-QUANTILE * sd, QUANTILE * sd])
    band = _band(actual[whole] / predicted[whole])
    return PredictedCost(number, predicted, actual, whole, low, high, band, session.ledger.unit)


def _predicted(trial: TrackedTrial) -> float | None:
    """None where nothing was predicted: what is kept for finishing the best is no prediction."""
    cost = trial.predicted_cost
    return None if cost is None or cost <= 0.0 or trial.reason == FINISHING or trial.added else cost


def _actual(trial: TrackedTrial) -> float | None:
    """What the trial cost, or the stretch of its training that the prediction is about, if it has come to its end."""
    if not len(trial.curve):
        ended = trial.status in (Status.COMPLETE, Status.FAILED, Status.KILLED)
        cost = trial.cost if ended else None
    else:
        paused = trial.status is Status.PAUSED and trial.ended_by is EndedBy.POLICY
        reached = trial.until_step is None or len(trial.curve) >= trial.until_step
        known = trial.curve.costs[trial.from_step :]
        is_known = (trial.status is Status.COMPLETE or (paused and reached)) and known and None not in known
        cost = math.fsum(step or 0.0 for step in known) if is_known else None
    return cost if cost else None


def _band(ratio: Array) -> tuple[float, float] | None:
    if len(ratio) < FEWEST_FOR_BAND:
        return None
    low, high = np.quantile(ratio, [(1.0 - INSIDE) / 2.0, (1.0 + INSIDE) / 2.0])
    return float(low), float(high)


# -- intervals ---------------------------------------------------------------------------------------------------------


def _beliefs(session: Session, trials: Ints, seconds: float) -> Iterator[tuple[int, float, float]]:
    """Mean and standard deviation of the log cost of some of the trials, as their asks believed."""
    record, end = session.record, time.perf_counter() + seconds
    policy = session.policy
    if isinstance(policy, Auto):
        policy = policy.chosen(session.history, session.ledger)
    if not isinstance(policy, ModelBased) or record.events > MOST_EVENTS or not len(trials) or seconds <= 0.0:
        return
    wanted = set(trials[spread(len(trials), MOST_INTERVALS)].tolist())
    states = list(_states(session, wanted))
    with one_blas_thread():
        for place in _coarse_to_fine(len(states)):
            if time.perf_counter() > end:
                return
            asked, state = states[place]
            belief = _belief(session, policy, asked, state)
            if belief is not None:
                yield asked.proposal.trial, *belief


def _states(session: Session, wanted: set[int]) -> Iterator[tuple[Asked, State]]:
    """The asks of these trials, each with the state that its models knew: the one before it, or the one that it was
    prepared from."""
    states: list[State] = []
    for event, state in session.record.replayed_from_start():
        states.append(state)
        if isinstance(event, Asked) and event.proposal.trial in wanted and "cost" in event.proposal.fits:
            yield event, state if event.prepared is None else states[min(event.prepared.events, len(states) - 1)]


def _belief(session: Session, policy: Policy, asked: Asked, state: State) -> tuple[float, float] | None:
    assert isinstance(policy, ModelBased)
    fits = {**state.history.fits, **asked.proposal.fits}
    seen = replace(state.history, fits=fits, way=Way.KEPT)
    try:
        model, _ = policy.cost_model_fit(session.space, seen)
    except FarthingError:
        return None
    if model is None:
        return None
    unit = session.space.encode(asked.proposal.config)
    mean, variance = model.predict(session.space.features(unit[None, :]))
    return float(mean[0]), math.sqrt(max(float(variance[0]), 0.0))


def _coarse_to_fine(count: int) -> Sequence[int]:
    """Indices below count in an order whose beginnings are spread evenly, as far as time reaches.

    >>> _coarse_to_fine(5)
    [0, 4, 2, 1, 3]
    """
    order = dict.fromkeys([0, count - 1] if count else [])
    step = count
    while len(order) < count:
        step = max(step // 2, 1)
        order |= dict.fromkeys(range(0, count, step))
    return list(order)


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw(found: PredictedCost) -> Drawing:
    """Points on log axes with the diagonal, on which predictions are right."""
    together = np.concatenate([found.predicted, found.actual])  # early intervals may reach much further
    ends = np.array([together.min() / 1.3, together.max() * 1.3])
    traces = [*_band_trace(found, ends), _diagonal(ends), *_interval_trace(found), *_points(found)]
    scale = log_scale(*ends)
    layout = {
        "xaxis": amount_axis("predicted cost", found.unit, scale, range=np.log10(ends)),
        "yaxis": amount_axis("actual cost", found.unit, scale, range=np.log10(ends)),
    }
    return Drawing("predicted_cost", "Predicted and actual cost", _caption(found), traces, layout)


def _caption(found: PredictedCost) -> str:
    parts = ["On the diagonal a trial cost what was predicted when it was chosen; above it, more."]
    if found.factor is not None:
        parts.append(f"Half of the costs were within a factor of {found.factor:.2f} of their predictions.")
    inside, known = found.covered
    if known:
        parts.append(f"{inside} of {known} costs were inside the 90 % interval of their prediction.")
    return " ".join(parts)


def _diagonal(ends: Array) -> dict[str, Any]:
    line = {"color": GREY, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "name": "as predicted", "x": ends, "y": ends, "line": line,
            "hoverinfo": "skip"}  # fmt: skip


def _band_trace(found: PredictedCost, ends: Array) -> list[dict[str, Any]]:
    """Between two lines parallel to the diagonal."""
    if found.band is None:
        return []
    low, high = found.band
    return [
        {"type": "scatter", "mode": "lines", "fill": "toself", "name": "90 % of the costs so far",
         "x": [*ends, *ends[::-1]], "y": [*(low * ends), *(high * ends[::-1])], "line": {"width": 0},
         "fillcolor": "rgba(138,143,152,0.2)", "hoverinfo": "skip"}
    ]  # fmt: skip


def _interval_trace(found: PredictedCost) -> list[dict[str, Any]]:
    """Horizontal lines: it is the prediction that is uncertain."""
    known = np.flatnonzero(np.isfinite(found.low) & found.whole)
    if not len(known):
        return []
    gap = np.full(len(known), np.nan)
    x = np.column_stack([found.low[known], found.high[known], gap]).ravel()
    y = np.column_stack([found.actual[known], found.actual[known], gap]).ravel()
    return [
        {"type": "scatter", "mode": "lines", "name": "90 % interval of a prediction", "x": x, "y": y,
         "line": {"color": BLUE, "width": 1}, "opacity": 0.6, "hoverinfo": "skip"}
    ]  # fmt: skip


def _points(found: PredictedCost) -> list[dict[str, Any]]:
    """Trials by number: the later, the darker; those that failed or were killed apart."""
    whole, cut = np.flatnonzero(found.whole), np.flatnonzero(~found.whole)
    whole, cut = whole[spread(len(whole))], cut[spread(len(cut), 500)]
    traces = []
    if len(whole):
        marker = {"color": found.trial[whole], "colorscale": [[0, "#9ec5f4"], [1, "#12447f"]], "size": 7,
                  "showscale": len(whole) > 1, "colorbar": {"title": {"text": "trial"}, "thickness": 10}}  # fmt: skip
        traces.append(_scatter("trials", found, whole, marker))
    if len(cut):
        marker = {"color": RED, "symbol": "x-thin", "size": 9, "line": {"width": 2, "color": RED}}
        traces.append(_scatter("failed or killed", found, cut, marker))
    return traces


def _scatter(name: str, found: PredictedCost, which: Ints, marker: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": found.predicted[which], "y": found.actual[which],
        "customdata": found.trial[which], "marker": marker,
        "hovertemplate": "trial %{customdata}: predicted %{x:.4g}, cost %{y:.4g}<extra></extra>",
    }  # fmt: skip
