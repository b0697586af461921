"""Wall-clock time of a run, all of it divided between evaluations and the optimiser.

While the run waits for evaluations, time is theirs, however many there are; all the rest is the optimiser's. Both are
due until they are charged with the next event. The clock never goes backwards. A second thread may read it
(heartbeat.py): what it holds is one value, which is replaced and never changed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from farthing.budget import Budget, Charges
from farthing.record.state import State
from farthing.session import Session

# Of the time left, for one choice. With 1,000 trials known and 5 seconds left, a twentieth found less where evaluations
# take 0.3 seconds, all of it where they take 0.02, and a quarter nearly as much as the better of these two in both.
THINKING_SHARE = 0.25

_began: ContextVar[float | None] = ContextVar("farthing_began", default=None)


@contextmanager
def counted_from(began: float) -> Iterator[None]:
    """Inside, the first run counts wall-clock time from `began`, a reading of `time.perf_counter`. What comes before a
    run, such as opening a file, is then a part of its budget. The runs after it count from their own beginning."""
    token = _began.set(began)
    try:
        yield
    finally:
        _began.reset(token)


def take_beginning() -> float:
    """When the run that begins now has begun: now, or as `counted_from` says."""
    began = _began.get()
    if began is None:
        return time.perf_counter()
    _began.set(None)  # a study that an objective runs, or a second run, has its own time
    return began


def is_timed(budget: Budget) -> bool:
    """Whether a limit is used up by time alone: one of seconds, or of dollars at a rate."""
    return not {"seconds", "compute_seconds"}.isdisjoint(budget.limits) or (
        "usd" in budget.limits and budget.usd_per_hour is not None
    )


class Uncharged(NamedTuple):
    """Two sums that grow in turn, as they were at `moment`."""

    moment: float
    waiting: bool = False  # whether time is the evaluations'
    waited: float = 0.0
    worked: float = 0.0

    def at(self, moment: float) -> Uncharged:
        """As they are at a later moment; an objective in this process may have turned back the clock."""
        seconds = max(moment - self.moment, 0.0)
        if self.waiting:
            return self._replace(moment=moment, waited=self.waited + seconds)
        return self._replace(moment=moment, worked=self.worked + seconds)


class Clock:
    """Says whose time it is, and how much of it is not charged yet."""

    def __init__(self, session: Session, began: float, metered: Collection[str] = ()) -> None:
        self._session, self.began = session, began
        self._metered = metered  # units that something else measures
        self._due = Uncharged(began)
        self._taken_at: State | None = None  # what was known when amounts were last taken to be charged

    def wait(self) -> None:
        """From here on time is the evaluations'."""
        self._due = self.now._replace(waiting=True)

    def work(self) -> None:
        """From here on time is the optimiser's."""
        self._due = self.now._replace(waiting=False)

    @property
    def now(self) -> Uncharged:
        """What is not charged yet at this moment."""
        return self._due.at(time.perf_counter())

    @property
    def due(self) -> Charges:
        """What belongs to no trial and would be lost if the run were killed now."""
        now = self.now
        due = {"optimiser": self._session.ledger.budget.priced(now.worked)}
        return due if "seconds" in self._metered else {**due, "interrupted": {"seconds": now.waited}}

    @property
    def is_charging(self) -> bool:
        """Whether amounts were taken and the event that charges them is not written yet."""
        return self._taken_at is self._session.record.state

    def waited(self) -> float:
        """Seconds of evaluations that were not charged yet; they are charged with the next event."""
        self._taken_at = self._session.record.state
        seconds, self._due = self._due.waited, self._due._replace(waited=0.0)
        return seconds

    def overhead(self) -> Charges:
        """What the optimiser spent until now and was not charged for yet; it is charged with the next event."""
        self._taken_at = self._session.record.state
        due = self.now
        self._due = due._replace(worked=0.0)
        return {"optimiser": self._session.ledger.budget.priced(due.worked)}

    def seconds_left(self, ages: Collection[float]) -> float:
        """Seconds until a limit that time uses up is reached, while evaluations of these ages (seconds that were not
        charged yet) go on; infinite without such a limit."""
        ledger, due, running = self._session.ledger, self.now, len(ages)
        rate = (ledger.budget.usd_per_hour or 0.0) / 3600.0
        used = {
            "seconds": (due.waited + due.worked, 1.0),
            "compute_seconds": (sum(ages), float(running)),
            "usd": (rate * (sum(ages) + due.worked), rate * running),
        }
        timed = {unit: facts for unit, facts in used.items() if unit not in self._metered and facts[1] > 0.0}
        limited = ((ledger.left(unit) - spent) / speed for unit, (spent, speed) in timed.items())
        return max(min(limited, default=float("inf")), 0.0)

    def seconds_to_think(self, ages: Collection[float]) -> float:
        """Seconds that the optimiser may think now, while evaluations of these ages go on; infinite where nothing is
        timed. Where time has a price, thinking has it too."""
        seconds, price, ledger = self.seconds_left(ages), self.speed("usd"), self._session.ledger
        if price > 0.0:
            unspent = ledger.left("usd") - price * (sum(ages) + self.now.worked)
            seconds = min(seconds, max(unspent, 0.0) / (price * (len(ages) + 1)))
        return THINKING_SHARE * seconds

    def left(self, age: float) -> float:
        """What remains of the budget in its unit, for an evaluation of that age in seconds."""
        ledger, due = self._session.ledger, self.now
        used = {"seconds": due.waited + due.worked, "compute_seconds": age}
        used["usd"] = (age + due.worked) * self.speed("usd")
        return max(ledger.remaining - used.get(ledger.unit, 0.0), 0.0)

    def speed(self, unit: str) -> float:
        """How much of a unit one second of one evaluation uses up."""
        rate = (self._session.ledger.budget.usd_per_hour or 0.0) / 3600.0
        return 0.0 if unit in self._metered else {"seconds": 1.0, "compute_seconds": 1.0, "usd": rate}.get(unit, 0.0)
