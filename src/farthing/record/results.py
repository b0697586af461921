"""What a study has found, as its user sees it: in the user's own sign, whether the study runs here or only its file is
read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from farthing.budget import Ledger
from farthing.errors import NoTrial, UnknownTrial
from farthing.record.record import Record
from farthing.trial import Status, Trial


class Results:
    """The trials, the best one, the ledger and the notes of a record."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def ledger(self) -> Ledger:
        return self.record.ledger

    @property
    def notes(self) -> dict[str, Any]:
        return deepcopy(dict(self.record.notes))

    @property
    def trials(self) -> list[Trial]:
        return [self.record.direction.shown(trial) for trial in self.record.history.trials]

    def trial(self, number: int) -> Trial:
        trials = self.record.history.trials
        if not 0 <= number < len(trials):
            raise UnknownTrial(f"trial {number} was never asked for; there are {len(trials)}")
        return self.record.direction.shown(trials[number])

    def count(self, *status: Status) -> int:
        return self.record.history.count(*status)

    @property
    def best(self) -> Trial:
        return self.found(self.record.history.incumbent)

    @property
    def best_value(self) -> float | None:
        """None before there is one."""
        best = self.record.history.incumbent
        return None if best is None else self.record.direction.turned(best.value)

    def found(self, trial: Trial | None) -> Trial:
        """That trial as it is shown, or an error if there is none."""
        if trial is None:
            failed = self.count(Status.FAILED)
            raise NoTrial(f"no trial has succeeded yet ({failed} failed); each trial keeps its error")
        return self.record.direction.shown(trial)
