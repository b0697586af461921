"""Wall-clock time of a run, divided between objective and optimiser."""

from __future__ import annotations

import time

from farthing.budget import Charges
from farthing.study import Study


class Clock:
    """Wall-clock time of a run, from a clock that never goes backwards, divided without rest.

    What passes between `begin` and `spent` is the objective's, all the rest the optimiser's: that is due until it is
    charged with the next event.
    """

    def __init__(self, study: Study) -> None:
        self._study, self._last, self._due = study, time.perf_counter(), 0.0
        self._inside = False

    def begin(self) -> None:
        """The objective's turn."""
        self._due += self._lap()
        self._inside = True

    def spent(self, cost: float | None) -> dict[str, float]:
        """What the objective spent since `begin`, with the cost that it reported in place of the meter's."""
        ledger, seconds = self._study.ledger, self._lap()
        self._inside = False
        spent = {**ledger.budget.priced(seconds), "compute_seconds": seconds}
        return spent if cost is None else {**spent, ledger.unit: cost}

    def overhead(self) -> Charges:
        """What the optimiser spent until now and was not charged for yet."""
        self._due += self._lap()
        return self.due()

    def due(self) -> Charges:
        """What the optimiser spent until the objective's turn and was not charged for yet."""
        seconds, self._due = self._due, 0.0
        return {"optimiser": self._study.ledger.budget.priced(seconds)}

    def left(self) -> float:
        """What remains of the budget in its unit, less what the objective has spent in its turn so far."""
        ledger = self._study.ledger
        seconds = time.perf_counter() - self._last
        unwritten = {**ledger.budget.priced(seconds), "compute_seconds": seconds if self._inside else 0.0}
        return max(ledger.remaining - unwritten.get(ledger.unit, 0.0), 0.0)

    def _lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
