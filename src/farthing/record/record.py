"""The chronicle of a study: its event log, and the history and ledger that follow from it.

Both are a fold over events. `record` writes events to the log and only then lets history and ledger grow by them, so
that what memory knows is always on disk; `replay` is the same fold over the events read from a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

from farthing.budget import Budget, Ledger
from farthing.errors import StorageError
from farthing.history import History
from farthing.history.cost_knowledge import CostKnowledge
from farthing.record.events import (
    Asked,
    Budgeted,
    Charged,
    Codec,
    Dropped,
    Event,
    Noted,
    Opened,
    Reported,
    Told,
    read_opened,
)
from farthing.record.lock import exclusive
from farthing.record.plausible import require_plausible, require_plausible_opening
from farthing.record.storage import EventLog, MemoryLog, open_log
from farthing.space import Space


class Chronicle:
    """What has happened, on disk and in memory."""

    def __init__(self, log: EventLog, space: Space, first: Opened, knowledge: CostKnowledge) -> None:
        self.log, self._space, self._codec = log, space, Codec(space, first.maximize)
        self.history = History(first.seed, cost_knowledge=knowledge, max_steps=first.max_steps)
        self.notes: Mapping[str, Any] = {}
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        if self._ledger is None:
            raise StorageError(f"{self.log.name}: the file ends before the study had a budget")
        return self._ledger

    @property
    def storage(self) -> str | None:
        """The file, None when all lives in memory."""
        return None if isinstance(self.log, MemoryLog) else self.log.name

    def past(self) -> list[Event]:
        """Every event so far. A file is read by a connection of its own: reading moves where this one writes next."""
        log = self.log if self.storage is None else open_log(self.storage)
        with nullcontext(log) if log is self.log else closing(log):
            return [self._codec.read(kind, body) for kind, body in log.read()]

    def limit(self, budget: Budget) -> None:
        """Let the budget be this one from here on; not while another process runs the study, which would be broken."""
        if self._ledger is None or self._ledger.budget != budget:
            with exclusive(self.storage):
                self.record(Budgeted(budget))

    def note(self, notes: Mapping[str, Any]) -> None:
        """Keep these notes from here on; not while another process runs the study."""
        if notes != self.notes:
            with exclusive(self.storage):
                self.record(Noted(dict(notes)))

    def record(self, *events: Event) -> None:
        """On disk first, all of them or none, then in memory."""
        self.log.append(*map(self._codec.write, events))
        for event in events:
            self._apply(event)

    def replay(self, events: Sequence[tuple[str, str]], *, elsewhere: bool = False) -> None:
        """Take in the events of a file after its first; whatever was running there is not running any more, unless
        another process runs it elsewhere."""
        for number, (kind, body) in enumerate(events, start=2):
            try:
                event = self._codec.read(kind, body)
                require_plausible(event, self.history)
                self._apply(event)
            except Exception as error:  # whatever a file of unknown origin holds, and can make of our code
                raise StorageError(
                    f"{self.log.name}: event {number} cannot be read ({_shortened(repr(error))}); the {number - 1} "
                    "events before it are whole. Put back a copy of the file, or go on with these in a new one: "
                    f"farthing.record.storage.salvage({self.log.name!r}, 'new.db', events={number - 1})"
                ) from error
        if elsewhere:
            return
        self.history = self.history.interrupted()
        if self._ledger is not None:
            self._ledger = self._ledger.promised(-self._ledger.committed, -self._ledger.running)

    def _apply(self, event: Event) -> None:
        match event:
            case Budgeted(budget):
                held = self._ledger or Ledger(budget)
                self._ledger = Ledger(budget, held.accounts, held.committed, held.running)
            case Noted(notes):
                self.notes = notes
            case Charged(charges):
                self._ledger = self.ledger.charged(charges)
            case Asked(proposal=proposal, charges=charges):
                self.history = self.history.asked(event, self._space)
                self._ledger = self.ledger.charged(charges).promised(proposal.predicted_cost or 0.0, 1)
            case Reported(charges=charges):
                self.history = self.history.reported(event)
                self._ledger = self.ledger.charged(charges)
            case Dropped():
                self.history = self.history.dropped(event)
            case Told(trial, charges=charges):
                promised = self.history.running_trial(trial).predicted_cost or 0.0
                self.history = self.history.told(event)
                self._ledger = self.ledger.charged(charges).promised(-promised, -1)


def first_event(events: Sequence[tuple[str, str]], name: str) -> Opened:
    """What the study of a file is made of, or an error that names the file."""
    kind, body = events[0]
    if kind != "opened":
        raise StorageError(f"{name}: the first event is {kind!r}, not 'opened'")
    try:
        first = read_opened(json.loads(body))
        require_plausible_opening(first)
        return first
    except Exception as error:  # whatever a file of unknown origin holds
        raise StorageError(f"{name}: event 1 cannot be read ({error!r})") from error


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
