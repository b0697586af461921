"""The trials of an Optuna study as a history that policies read.

    COMPLETE   complete, with its value; failed if that is infinite
    PRUNED     known at the step that it reached: it counts with its best report, at the cost of going on to the end in
               proportion to its steps; without a report nothing is known but that it was tried
    FAIL       failed: policies learn to avoid the region
    RUNNING    running: with the parameters that it asked for, or was proposed
    WAITING    will be evaluated, if it was enqueued with all parameters: it is running to those who ask before

Trials that are not of the space are left out. So that numbers have no gaps, trials are numbered anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.proposed import Proposed
from farthing.adapters.optuna.spaces import Params, Part
from farthing.adapters.optuna.spending import Spent
from farthing.direction import Direction
from farthing.history import TrackedTrial
from farthing.history.history import Place, Trials
from farthing.trial import Config, EndedBy, Status

FIXED = "fixed_params"  # system attribute of enqueued trials


@dataclass(frozen=True, eq=False)
class Known:
    """One trial in a space: where it lies."""

    config: Config
    place: Place


def place(part: Part, trials: Iterable[FrozenTrial]) -> dict[int, Known | None]:
    """Where trials lie in a part of the space, by number; None for those that do not."""
    configs = {trial.number: part.config(params_of(trial)) for trial in trials}
    keys = {number: part.key(config) for number, config in configs.items()}
    inside = {number: key for number, key in keys.items() if key is not None}
    units = dict(zip(inside, part.space.units_of(list(inside.values())), strict=True)) if inside else {}
    return {
        number: Known(configs[number], Place(inside[number], units[number])) if number in inside else None
        for number in keys
    }


def params_of(trial: FrozenTrial) -> Params:
    """The parameters that a trial has, and those that a trial not yet ended will have."""
    if trial.state.is_finished():
        return trial.params
    return {**Proposed.of(trial).params, **trial.system_attrs.get(FIXED, {}), **trial.params}


def tracked(
    trials: Sequence[FrozenTrial], known: dict[int, Known | None], spent: dict[int, Spent], direction: Direction
) -> Trials:
    """The history of a part of the space."""
    complete_steps = _steps_of_complete(trials)
    found: list[TrackedTrial] = []
    for trial in trials:
        if (at := known[trial.number]) is None:
            continue
        cost = spent[trial.number].cost if trial.number in spent else Proposed.of(trial).cost
        found.append(_tracked(len(found), trial, at, cost, complete_steps, direction))
    return Trials.of(found)


def _tracked(
    number: int, trial: FrozenTrial, at: Known, cost: float | None, complete_steps: float,
    direction: Direction,
) -> TrackedTrial:  # fmt: skip
    def ended(status: Status, value: float | None = None, cost: float | None = cost, **more: object) -> TrackedTrial:
        return TrackedTrial(
            number, at.config, status, direction.turned(value), cost, counted=True, place=at.place, **more  # type: ignore[arg-type]
        )  # fmt: skip

    if not trial.state.is_finished():
        return TrackedTrial(
            number, at.config, Status.RUNNING, predicted_cost=cost, pending=True, place=at.place
        )  # fmt: skip
    if trial.state is TrialState.PRUNED:
        reports = finite_reports(trial)
        if not reports:
            return ended(Status.KILLED, ended_by=EndedBy.BUDGET)  # not its own doing, and at least this cost
        steps = max(complete_steps, len(trial.intermediate_values)) / len(trial.intermediate_values)
        best = (max if direction.maximize else min)(reports.values())
        return ended(Status.COMPLETE, best, None if cost is None else cost * steps)
    if trial.state is TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
        return ended(Status.COMPLETE, trial.value)
    return ended(Status.FAILED, error=f"Optuna: {trial.state.name}")


def finite_reports(trial: FrozenTrial) -> dict[int, float]:
    """What a trial reported, by step, in the order of steps."""
    reports = trial.intermediate_values
    return {step: float(reports[step]) for step in sorted(reports) if math.isfinite(reports[step])}


def _steps_of_complete(trials: Iterable[FrozenTrial]) -> float:
    """How many reports a complete trial makes, the median; 0 where none makes any."""
    counts = [len(trial.intermediate_values) for trial in trials if trial.state is TrialState.COMPLETE]
    return float(np.median(counts)) if counts else 0.0
