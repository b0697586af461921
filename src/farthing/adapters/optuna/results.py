"""What became of a trial of Optuna, as a known result of a Farthing study.

A trial that Farthing exported says itself how it ended. Of others, a pruned one was stopped, a failed one failed, and
one that is running is nobody's here: it is interrupted, and will not be proposed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.frozen import OF_THE_USER
from farthing.budget import Budget
from farthing.checks import finite
from farthing.record.added import Added
from farthing.text.plain import cut_text, plain, stored_attributes
from farthing.trial import Config, EndedBy, Status

POSSIBLE: Mapping[TrialState, tuple[Status, ...]] = {  # of each state, the first by itself
    TrialState.COMPLETE: (Status.COMPLETE,),
    TrialState.PRUNED: (Status.STOPPED, Status.PAUSED),
    TrialState.FAIL: (Status.FAILED, Status.KILLED, Status.INTERRUPTED),
    TrialState.RUNNING: (Status.INTERRUPTED, Status.PAUSED),
}
FAILED = "failed in Optuna"
RUNNING = "it was running in Optuna"
UNREPORTED = "pruned in Optuna before it reported a value"
CLOSE = 1e-9  # a value that was rounded on its way is still the same


@dataclass(frozen=True)
class Reading:
    """How the trials of one Optuna study are read.

    `ours` says that Farthing exported them, `cost` names the user attribute that holds the cost, None takes durations;
    `curves` says whether intermediate values are values of the objective.
    """

    ours: bool
    maximize: bool
    budget: Budget
    cost: str | None = None
    curves: bool = True

    def added(self, number: int, config: Config, trial: FrozenTrial) -> Added:
        """The known result, with values to minimise."""
        status, curve = self._status(trial), self.curve(trial)
        value, error = finite(trial.value) if status is Status.COMPLETE else None, self._error(trial, status)
        if status is Status.COMPLETE and value is None:
            status, error = Status.FAILED, f"its value was {plain(trial.value)!r}"
        if status in (Status.STOPPED, Status.PAUSED) and not curve:
            status, error = Status.INTERRUPTED, UNREPORTED
        sign = -1.0 if self.maximize else 1.0
        turned = tuple(sign * step for step in curve)
        least = min(turned) if turned else None if value is None else sign * value
        return Added(
            number, config, least, self._cost(trial), error, turned, self._attributes(trial),
            _seconds(trial.datetime_start), _seconds(trial.datetime_complete), status, self._ended_by(trial, status),
        )  # fmt: skip

    def _status(self, trial: FrozenTrial) -> Status:
        possible = POSSIBLE[trial.state]
        said = trial.user_attrs.get("status") if self.ours else None
        return next((status for status in possible if status.value == said), possible[0])

    def _ended_by(self, trial: FrozenTrial, status: Status) -> EndedBy | None:
        """What a trial of ours says, if it ended as it says. A paused one goes on if the policy here wants it."""
        said = trial.user_attrs.get("ended_by") if self.ours and status is not Status.PAUSED else None
        found = next((by for by in EndedBy if by.value == said), None)
        return found if status.value == trial.user_attrs.get("status") else None

    def curve(self, trial: FrozenTrial) -> tuple[float, ...]:
        """What was reported in the order of its steps, up to the first value that is not a number."""
        reported = trial.intermediate_values
        values = [finite(reported[step]) for step in sorted(reported)] if self.curves else []
        whole = values if None not in values else values[: values.index(None)]
        if trial.state is TrialState.COMPLETE and len(whole) < len(values):
            return ()
        return tuple(value for value in whole if value is not None)

    def _error(self, trial: FrozenTrial, status: Status) -> str | None:
        said = trial.user_attrs.get("error") if self.ours else None
        if status is Status.COMPLETE:
            return None
        if isinstance(said, str):
            return cut_text(said)
        if trial.state is TrialState.RUNNING and status is Status.INTERRUPTED:
            return RUNNING
        return FAILED if status in (Status.FAILED, Status.KILLED) else None

    def _cost(self, trial: FrozenTrial) -> float | None:
        """In the budget's unit."""
        if self.cost is not None:
            given = finite(trial.user_attrs.get(self.cost))
            return given if given is not None and given >= 0.0 else None
        began, ended = _seconds(trial.datetime_start), _seconds(trial.datetime_complete)
        if began is None or ended is None or ended <= began:  # results that were added have no duration
            return None
        prices = {**self.budget.priced(ended - began), "compute_seconds": ended - began}
        return prices.get(self.budget.unit)

    def _attributes(self, trial: FrozenTrial) -> dict[str, Any]:
        given = trial.user_attrs
        if self.ours:
            given = {name[len(OF_THE_USER) :]: item for name, item in given.items() if name.startswith(OF_THE_USER)}
        return stored_attributes(given)


def agrees(value: Any, curve: Sequence[float]) -> bool:
    """Whether the value of a trial is that of its last step, or one of its extremes: then its steps report values."""
    number = finite(value)
    ends = (curve[-1], min(curve), max(curve)) if curve else ()
    return number is not None and any(math.isclose(number, end, rel_tol=CLOSE) for end in ends)


def _seconds(moment: datetime | None) -> float | None:
    """Seconds since 1970; None for a time that no clock shows."""
    try:
        seconds = None if moment is None else moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds is not None and seconds >= 0.0 else None
