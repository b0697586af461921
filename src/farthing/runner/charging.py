"""What an action of an evaluation cost: as the objective reports it, as meters show it, or by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farthing.errors import InvalidBudget
from farthing.history import History
from farthing.runner.clock import Clock
from farthing.runner.heartbeat import Heartbeat
from farthing.runner.meters import Meters
from farthing.session import Session
from farthing.trial import Status

RATE = ", or name a rate: $5 at $2.5/h, Budget(usd=5, usd_per_hour=2.5)"
SILENT = 20  # trials in a row without a cost in a unit that only the objective can tell, before that is an error


@dataclass(frozen=True, eq=False)
class Charging:
    """Over the evaluations of a run, which may run beside each other."""

    session: Session
    clock: Clock
    heartbeat: Heartbeat
    meters: Meters
    in_this_process: bool

    def spent(
        self, number: int, shown: Mapping[str, float], seconds: float, reported: float | None
    ) -> tuple[dict[str, float], float | None]:  # fmt: skip
        """What an action that took `seconds`, and for which meters have `shown` amounts, spent, and its cost in the
        budget's unit: as the objective reported it, or as measured. Wall-clock seconds are those that passed, however
        many evaluations they served. The next event must charge it."""
        ledger, waited = self.session.ledger, self.clock.waited()
        self.heartbeat.rests(number)
        own = waited if self.in_this_process else seconds
        spent = {**ledger.budget.priced(own), "compute_seconds": own, **shown}
        cost = spent.get(ledger.unit) if reported is None else reported
        if "seconds" not in self.meters.units:
            spent["seconds"] = waited
        return (spent if reported is None else {**spent, ledger.unit: reported}), cost

    def require_cost(self, cost: float | None, number: int) -> None:
        """Raise InvalidBudget if the budget is in a unit in which nothing has a cost."""
        unit = self.session.ledger.unit
        known = cost is not None or self.session.history.trials[number].cost is not None
        if known or _ever_charged(self.session.history):
            return
        raise InvalidBudget(
            f"the budget is in {unit}, which nothing here measures: return {{'value': ..., 'cost': ...}} from the "
            f"objective, or report(value, cost=...){RATE if unit == 'usd' else ''}"
            f"{f' ({self.meters.missing})' if self.meters.missing else ''}"
        )


def _ever_charged(history: History) -> bool:
    """Whether one of the last trials said what it cost. A failure cannot, so a few silent ones prove nothing."""
    last = history.trials[-SILENT:]
    if all(trial.status is Status.FAILED for trial in last) and len(last) < SILENT:
        return True
    return any(trial.cost is not None for trial in last)
