"""Wall-clock time of a run, all of it divided between evaluations and the optimiser.

While the run waits for evaluations, time is theirs, however many there are; all the rest is the optimiser's. Both are
due until they are charged with the next event. The clock never goes backwards.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from farthing.budget import Budget, Charges
from farthing.session import Session

# Of the time left, for one choice. With 1,000 trials known and 5 seconds left, a twentieth found less where evaluations
# take 0.3 seconds, all of it where they take 0.02, and a quarter nearly as much as the better of these two in both.
THINKING_SHARE = 0.25


def is_timed(budget: Budget) -> bool:
    """Whether a limit is used up by time alone: one of seconds, or of dollars at a rate."""
    return not {"seconds", "compute_seconds"}.isdisjoint(budget.limits) or (
        "usd" in budget.limits and budget.usd_per_hour is not None
    )


class Clock:
    """Two sums that grow in turn."""

    def __init__(self, session: Session, began: float, metered: Collection[str] = ()) -> None:
        self._session, self._last = session, began
        self._metered = metered  # units that something else measures
        self._waited = self._worked = 0.0  # not charged yet
        self._waiting = False

    def wait(self) -> None:
        """From here on time is the evaluations'."""
        self._lap()
        self._waiting = True

    def work(self) -> None:
        """From here on time is the optimiser's."""
        self._lap()
        self._waiting = False

    def waited(self) -> float:
        """Seconds of evaluations that were not charged yet."""
        seconds, self._waited = self._waited, 0.0
        return seconds

    def overhead(self) -> Charges:
        """What the optimiser spent until now and was not charged for yet."""
        self._lap()
        seconds, self._worked = self._worked, 0.0
        return {"optimiser": self._session.ledger.budget.priced(seconds)}

    def seconds_left(self, ages: Collection[float]) -> float:
        """Seconds until a limit that time uses up is reached, while evaluations of these ages (seconds that were not
        charged yet) go on; infinite without such a limit."""
        self._lap()
        ledger, running = self._session.ledger, len(ages)
        rate = (ledger.budget.usd_per_hour or 0.0) / 3600.0
        due = {
            "seconds": (self._waited + self._worked, 1.0),
            "compute_seconds": (sum(ages), float(running)),
            "usd": (rate * (sum(ages) + self._worked), rate * running),
        }
        timed = {unit: facts for unit, facts in due.items() if unit not in self._metered and facts[1] > 0.0}
        limited = ((ledger.left(unit) - spent) / speed for unit, (spent, speed) in timed.items())
        return max(min(limited, default=float("inf")), 0.0)

    def seconds_to_think(self, ages: Collection[float]) -> float:
        """Seconds that the optimiser may think now, while evaluations of these ages go on; infinite where nothing is
        timed. Where time has a price, thinking has it too."""
        seconds, price, ledger = self.seconds_left(ages), self.speed("usd"), self._session.ledger
        if price > 0.0:
            unspent = ledger.left("usd") - price * (sum(ages) + self._worked)
            seconds = min(seconds, max(unspent, 0.0) / (price * (len(ages) + 1)))
        return THINKING_SHARE * seconds

    def left(self, age: float) -> float:
        """What remains of the budget in its unit, for an evaluation of that age in seconds."""
        self._lap()
        ledger = self._session.ledger
        due = {"seconds": self._waited + self._worked, "compute_seconds": age}
        due["usd"] = (age + self._worked) * self.speed("usd")
        return max(ledger.remaining - due.get(ledger.unit, 0.0), 0.0)

    def speed(self, unit: str) -> float:
        """How much of a unit one second of one evaluation uses up."""
        rate = (self._session.ledger.budget.usd_per_hour or 0.0) / 3600.0
        return 0.0 if unit in self._metered else {"seconds": 1.0, "compute_seconds": 1.0, "usd": rate}.get(unit, 0.0)

    def _lap(self) -> None:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        if self._waiting:
            self._waited += seconds
        else:
            self._worked += seconds
