"""Wall-clock time of a run, all of it divided between evaluations, starting workers, and the optimiser.

While the run waits for evaluations, time is theirs, however many there are. While nothing runs and the run waits for a
worker process to be ready, it is time to start up. All the rest is the optimiser's. All three are due until they are
charged with the next event. The clock never goes backwards. While nothing runs because somebody has paused the study,
time is nobody's, and never charged. A second thread may read it (heartbeat.py): what it holds
is one value, which is replaced and never changed.

What the time is, a timer says: all of a run reads the one of its clock. Where evaluations are simulated, it is that of
the simulation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from farthing.budget import Budget, Charges
from farthing.record.state import State
from farthing.runner.meters import Held
from farthing.session import Session

# Of the time left, for one choice. With 1,000 trials known and 5 seconds left, a twentieth found less where evaluations
# take 0.3 seconds, all of it where they take 0.02, and a quarter nearly as much as the better of these two in both.
THINKING_SHARE = 0.25

Timer = Callable[[], float]  # seconds since any moment

_began: ContextVar[float | None] = ContextVar("farthing_began", default=None)


def wall_clock() -> float:
    """The timer of runs."""
    return time.perf_counter()


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


class Ages(NamedTuple):
    """Seconds that were not charged yet, of several evaluations side by side."""

    running: int = 0
    seconds: float = 0.0

    def with_one(self, seconds: float, instead_of: float) -> Ages:
        """As if one of them were of another age."""
        return Ages(self.running, self.seconds - instead_of + seconds)


NOBODY = Ages()


class Uncharged(NamedTuple):
    """Sums that grow in turn, as they were at `moment`."""

    moment: float
    growing: str = "worked"  # which of the sums
    waited: float = 0.0  # for evaluations
    started: float = 0.0  # workers
    worked: float = 0.0  # the optimiser
    rested: float = 0.0  # while the study was paused: nobody's

    def at(self, moment: float) -> Uncharged:
        """As they are at a later moment; an objective in this process may have turned back the clock."""
        seconds = max(moment - self.moment, 0.0)
        return self._replace(moment=moment, **{self.growing: getattr(self, self.growing) + seconds})

    @property
    def seconds(self) -> float:
        return self.waited + self.not_waited

    @property
    def not_waited(self) -> float:
        """Seconds that belong to no evaluation."""
        return self.started + self.worked


class Clock:
    """Says whose time it is, and how much of it is not charged yet."""

    def __init__(
        self, session: Session, began: float, metered: Collection[str] = (), timer: Timer = wall_clock, *,
        held: Held | None = None,
    ) -> None:  # fmt: skip
        self._session, self.began, self.read = session, began, timer
        self._metered = metered  # units that something else measures
        self._held = held  # machines that cost dollars while nothing runs on them too
        self._due = Uncharged(began)
        self._taken_at: State | None = None  # what was known when amounts were last taken to be charged

    def wait(self) -> None:
        """From here on time is the evaluations'."""
        self._due = self.now._replace(growing="waited")

    def work(self) -> None:
        """From here on time is the optimiser's."""
        self._due = self.now._replace(growing="worked")

    def rest(self) -> None:
        """From here on time is nobody's: somebody has paused the study, and nothing runs."""
        self._due = self.now._replace(growing="rested")

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Inside, nothing runs and the run waits for a worker to be ready."""
        self._due = self.now._replace(growing="started")
        try:
            yield
        finally:
            self.work()

    @property
    def now(self) -> Uncharged:
        """What is not charged yet at this moment."""
        return self._due.at(self.read())

    @property
    def due(self) -> Charges:
        """What belongs to no trial and would be lost if the run were killed now."""
        now = self.now
        due = self._not_of_trials(now, 0.0 if self._held is None else self._held.idle_usd())
        return due if "seconds" in self._metered else {**due, "interrupted": {"seconds": now.waited}}

    def _not_of_trials(self, due: Uncharged, idle_usd: float) -> dict[str, Mapping[str, float]]:
        """What is due for starting workers, if any was started, for machines that wait, and for the optimiser."""
        priced = self._session.ledger.budget.priced
        start_up = {**(priced(due.started) if due.started else {}), **({"usd": idle_usd} if idle_usd else {})}
        return {**({"start-up": start_up} if start_up else {}), "optimiser": priced(due.worked)}

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
        """What the optimiser and starting workers took until now and was not charged yet; it is charged with the next
        event."""
        self._taken_at = self._session.record.state
        due = self.now
        self._due = due._replace(started=0.0, worked=0.0)
        return self._not_of_trials(due, 0.0 if self._held is None else self._held.take_idle_usd())

    def seconds_left(self, ages: Ages = NOBODY) -> float:
        """Seconds until a limit that time uses up is reached, while evaluations of these ages go on; infinite without
        such a limit."""
        return max(self.seconds_ahead(ages), 0.0)

    def seconds_ahead(self, ages: Ages) -> float:
        """As `seconds_left`; below 0, the seconds since the limit was reached."""
        ledger, due, running = self._session.ledger, self.now, ages.running
        rate = (ledger.budget.usd_per_hour or 0.0) / 3600.0
        used = {
            "seconds": (due.seconds, 1.0),
            "compute_seconds": (ages.seconds, float(running)),
            "usd": (rate * (ages.seconds + due.not_waited), rate * max(running, 1)),  # what is nobody's costs too
        }
        timed = {unit: facts for unit, facts in used.items() if unit not in self._metered and facts[1] > 0.0}
        limits = {unit: limit for unit, limit in ledger.budget.limits.items() if unit in timed}
        ahead = ((limit - ledger.total(unit) - timed[unit][0]) / timed[unit][1] for unit, limit in limits.items())
        return min(ahead, default=float("inf"))

    def seconds_to_think(self, ages: Ages) -> float:
        """Seconds that the optimiser may think now, while evaluations of these ages go on; infinite where nothing is
        timed. Where time has a price, thinking has it too."""
        seconds, price, ledger = self.seconds_left(ages), self.speed("usd"), self._session.ledger
        if price > 0.0:
            unspent = ledger.left("usd") - price * (ages.seconds + self.now.not_waited)
            seconds = min(seconds, max(unspent, 0.0) / (price * (ages.running + 1)))
        return THINKING_SHARE * seconds

    def left(self, age: float) -> float:
        """What remains of the budget in its unit, for an evaluation of that age in seconds."""
        ledger, due = self._session.ledger, self.now
        used = {"seconds": due.seconds, "compute_seconds": age}
        used["usd"] = (age + due.not_waited) * self.speed("usd")
        return max(ledger.remaining - used.get(ledger.unit, 0.0), 0.0)

    def speed(self, unit: str) -> float:
        """How much of a unit one second of one evaluation uses up."""
        if unit == "usd" and self._held is not None:
            return self._held.usd_per_second
        rate = (self._session.ledger.budget.usd_per_hour or 0.0) / 3600.0
        return 0.0 if unit in self._metered else {"seconds": 1.0, "compute_seconds": 1.0, "usd": rate}.get(unit, 0.0)
