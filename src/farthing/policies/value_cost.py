"""The best value against the total cost: what studies have bought with what they spent.

The bi-optimisation problem of CEI (section 3) asks for the front of pairs (y*, c*) over several searches: y* the best
value that a search found, c* the sum of what its evaluations cost. Along one search the pairs after each evaluation
are such points too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.acquisitions.pareto import non_dominated
from farthing.direction import Direction
from farthing.history import TrackedTrial
from farthing.history.columns import unknown_cost
from farthing.trial import Status


@dataclass(frozen=True)
class ValueAtCost:
    """The best value after a total cost, and the trial that has it; `study` is the name, where there are several."""

    cost: float
    value: float
    trial: int
    study: str = ""


def bought(trials: Iterable[TrackedTrial]) -> list[ValueAtCost]:
    """After each trial that ended, in the order in which they did: total cost and best value, to be minimised.

    Known results count as values that were there from the start, for nothing. The cost of a trial without a value
    counts too, where it is known; that of one with a value has to be.
    """
    points: list[ValueAtCost] = []
    spent, best = 0.0, None
    for trial in sorted((t for t in trials if t.status is not Status.RUNNING), key=_when):
        spent += _paid(trial)
        if trial.value is not None and not trial.unsuccessful and (best is None or trial.value < best[0]):
            best = trial.value, trial.number
        if best is not None:
            points.append(ValueAtCost(spent, *best))
    return points


def _paid(trial: TrackedTrial) -> float:
    if trial.added:
        return 0.0
    if trial.cost is None and trial.value is not None:
        raise unknown_cost(trial.number)
    return trial.cost or 0.0


def _when(trial: TrackedTrial) -> tuple[bool, float, int]:
    """Known results first; then by time, or by number where no times are known."""
    return not trial.added, trial.ended or 0.0, trial.number


def not_dominated(points: Sequence[ValueAtCost]) -> list[ValueAtCost]:
    """The points for which no other has a lower value for no more cost, by increasing cost.

    >>> not_dominated([ValueAtCost(1.0, 3.0, 0), ValueAtCost(2.0, 3.0, 0), ValueAtCost(2.5, 1.0, 1)])
    [ValueAtCost(cost=1.0, value=3.0, trial=0, study=''), ValueAtCost(cost=2.5, value=1.0, trial=1, study='')]
    """
    cost, value = (np.array([getattr(point, name) for point in points]) for name in ("cost", "value"))
    return [points[i] for i in non_dominated(cost, -value)]


def shown(points: Iterable[ValueAtCost], direction: Direction) -> list[ValueAtCost]:
    """With values in the user's own sign."""
    return [replace(point, value=direction.turned(point.value)) for point in points]
