"""The state of a study: all that follows from its events so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.budget import Charges, Ledger
from farthing.errors import StorageError
from farthing.history import History
from farthing.history.trials import Trials
from farthing.space import Space
from farthing.trial import EndedBy, Status


@dataclass(frozen=True)
class State:
    """History, ledger and notes; a new one after every event."""

    space: Space
    history: History
    budgeted: Ledger | None = None  # None before the first budget
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        if self.budgeted is None:
            raise StorageError("the file ends before the study had a budget")
        return self.budgeted

    def charged(self, charges: Charges) -> State:
        """With more amounts in the accounts of the ledger."""
        return replace(self, budgeted=self.ledger.charged(charges))

    def promised(self, cost: float, count: int) -> State:
        """With `count` more evaluations running, which are expected to cost `cost` together."""
        return replace(self, budgeted=self.ledger.promised(cost, count))

    def interrupted(self) -> State:
        """As read from a file that nobody runs: what was running there was interrupted, and paused learners are gone
        but for their checkpoints."""
        trials = Trials.of(
            replace(
                trial, kept_step=trial.saved_step,
                status=Status.PAUSED if trial.status is Status.PAUSED else Status.INTERRUPTED,
                ended_by=trial.ended_by or EndedBy.INTERRUPT,
            ) if trial.status in (Status.RUNNING, Status.PAUSED) else trial
            for trial in self.history.trials
        )  # fmt: skip
        state = replace(self, history=replace(self.history, trials=trials))
        if self.budgeted is None:
            return state
        return state.promised(-self.budgeted.committed, -self.budgeted.running)
