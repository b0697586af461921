"""The heartbeat of a run: twice a second its file is told what was spent since the last event.

A process that is killed cannot charge what it spent. Whoever opens its file next does so, from the last beat, so that
about a second is lost at most. A beat is one row that the next one overwrites, not an event. A thread of its own writes
it, also while the optimiser computes or an objective runs in this process, but not while native code holds the
interpreter's lock.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from farthing.budget import Budget
from farthing.runner.background import start_thread
from farthing.runner.clock import Clock
from farthing.runner.meters import Gauges
from farthing.session import Session

INTERVAL = 0.5  # seconds: a kill loses half of that on average, and writing takes a few milliseconds
TRIES = 5  # for one beat, when events are written at the same time
PAUSE = 0.01  # seconds between them: an event takes milliseconds
ENDING_SECONDS = 0.5  # for a beat that is being written: a meter that hangs is not waited for


@dataclass(frozen=True)
class Spending:
    """An evaluation that is advancing, since its last event."""

    began: float
    gauges: Gauges

    def amounts(self, budget: Budget, now: float) -> dict[str, float]:
        """By unit. Wall-clock seconds pass for all evaluations together, so they are no part of it unless metered."""
        seconds = now - self.began
        amounts = {**budget.priced(seconds), "compute_seconds": seconds}
        del amounts["seconds"]
        with suppress(Exception):  # whatever a meter raises: the run will meet it too
            amounts.update(self.gauges.spent())
        return amounts


class Heartbeat:
    """Beats while it is entered, if the study has a file."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session, self._clock = session, clock
        self._spending: dict[int, Spending] = {}  # the thread copies it at once before it looks
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._session.storage is not None:
            self._thread = start_thread("farthing-heartbeat", self._beat_on)
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(ENDING_SECONDS)

    def advances(self, trial: int, gauges: Gauges) -> None:
        """From here on an evaluation spends."""
        self._spending[trial] = Spending(self._clock.read(), gauges)

    def rests(self, trial: int) -> None:
        """What an evaluation spent is charged with the next event."""
        self._spending.pop(trial, None)

    def _beat_on(self) -> None:
        """What came before the run counts too, so the first beat may be overdue."""
        wait = max(self._clock.began + INTERVAL - self._clock.read(), 0.0)
        while not self._ended.wait(wait):
            self._beat()
            wait = INTERVAL

    def _beat(self) -> None:
        """Not between taking amounts and writing the event that charges them; if an event comes meanwhile, again."""
        record = self._session.record
        for _ in range(TRIES):
            events, budget = record.events, record.ledger.budget
            due, now = self._clock.due, self._clock.read()
            trials = {number: spending.amounts(budget, now) for number, spending in self._spending.copy().items()}
            if self._ended.is_set():
                return
            if self._clock.is_charging:
                self._ended.wait(PAUSE)
                continue
            record.beat(due, trials, after=events)
            if record.events == events:
                return
