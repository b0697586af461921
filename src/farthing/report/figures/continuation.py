"""How trainings are predicted to go on, by the model of curves that the policy of the study uses: the process of
`bapi`, and for all others the network of `thaw`, which needs no fitting. Both predict the best value that a training
will have reported by a later step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import NetworkUnavailable
from farthing.history import History, TrackedTrial, Way, units
from farthing.numerics.arrays import Array
from farthing.numerics.threads import one_blas_thread
from farthing.policies.auto import Auto
from farthing.policies.bapi import BAPI
from farthing.policies.bapi.curves import TrainingCurves
from farthing.policies.protocol import generator_of
from farthing.policies.thaw.policy import ANCHORS
from farthing.policies.thaw.runs import MOST_CURVES, KnownCurves
from farthing.policies.thinking import Thinking
from farthing.session import Session
from farthing.surrogates.curves.network import weights
from farthing.trial import Status

INSIDE = (0.1, 0.9)  # quantiles at the ends of the band
MOST_STEPS = 25  # at which one training is predicted
CAN_GO_ON = (Status.PAUSED, Status.RUNNING, Status.INTERRUPTED)


@dataclass(frozen=True, eq=False)
class Continuation:
    """What is predicted of one training. Values are in the user's own sign, and `low` is the smaller end."""

    trial: int
    step: Array  # (q,), the first is the last that was reported
    low: Array  # (q,)
    median: Array  # (q,)
    high: Array  # (q,)


def continuations(session: Session, most: int, seconds: float) -> list[Continuation]:
    """Of the best trainings that could go on, as many as `most`; none where there is no model, or no time for it."""
    history = session.history
    trials = [
        trial
        for trial in history.trials
        if trial.status in CAN_GO_ON and not trial.forgotten and trial.value is not None and len(trial.curve)
    ]
    trials = [trial for trial in trials if len(trial.curve) < (history.max_steps or 0)]
    trials = sorted(trials, key=lambda trial: (trial.value, trial.number))[:most]
    if not trials or seconds <= 0.0:
        return []
    asked = [_later_steps(len(trial.curve), history.max_steps or 0) for trial in trials]
    with one_blas_thread():
        found = _predicted(session, trials, asked, seconds)
    if found is None:
        return []
    sign = session.record.direction.turned(1.0)
    return [
        _continuation(trial, steps, quantiles, sign)
        for trial, steps, quantiles in zip(trials, asked, found, strict=True)
    ]


def _later_steps(last: int, end: int) -> Array:
    return np.unique(np.linspace(last + 1, end, MOST_STEPS).round())


def _predicted(
    session: Session, trials: Sequence[TrackedTrial], asked: Sequence[Array], seconds: float
) -> list[Array] | None:
    """Quantiles (3, q) of each training at its steps, minimised."""
    policy, history = session.policy, session.history
    if isinstance(policy, Auto):
        policy = policy.chosen(history, session.ledger)

    def think(way: Way) -> list[Array] | None:
        seen = replace(history, way=way)
        if isinstance(policy, BAPI):
            return _by_process(policy, session, seen, trials, asked)
        return _by_network(session, seen, trials, asked)

    rows = policy.rows(history) if isinstance(policy, BAPI) else min(len(history.trials), MOST_CURVES)
    return Thinking().within(seconds, rows, think)[0]


def _by_process(
    policy: BAPI, session: Session, history: History, trials: Sequence[TrackedTrial], asked: Sequence[Array]
) -> list[Array] | None:
    curves = TrainingCurves.of(policy, session.space, history, generator_of(history), chooses=False)
    if curves is None:
        return None
    X = session.space.features(units(trials, len(session.space)))
    found = []
    for x, steps in zip(X, asked, strict=True):
        mixture = curves.paths.at(np.repeat(x[None, :], len(steps), axis=0), steps)
        found.append(np.array([curves.warp.inverse(mixture.quantiles(q)) for q in (INSIDE[0], 0.5, INSIDE[1])]))
    return found


def _by_network(
    session: Session, history: History, trials: Sequence[TrackedTrial], asked: Sequence[Array]
) -> list[Array] | None:
    try:
        known = KnownCurves.of(session.space, history, weights(), ANCHORS)
    except NetworkUnavailable:
        return None
    if known is None or any(trial.number not in known.row_of for trial in trials):
        return None
    found = []
    for trial, steps in zip(trials, asked, strict=True):
        p = known.now.begun(np.array([known.row_of[trial.number]], dtype=np.intp), steps[None, :])
        found.append(np.array([known.now.quantile(p, q)[0] for q in (INSIDE[0], 0.5, INSIDE[1])]))
    return found


def _continuation(trial: TrackedTrial, steps: Array, quantiles: Array, sign: float) -> Continuation:
    """From the best value so far on, which is certain."""
    here = np.full((3, 1), trial.value)
    shown = np.sort(sign * np.concatenate([here, quantiles], axis=1), axis=0)
    return Continuation(trial.number, np.append(float(len(trial.curve)), steps), *shown)
