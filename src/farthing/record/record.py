"""The record of a study: its event log, the state that follows from it, and what a user sees of it.

The state is the fold of the events. `write` puts events into the log and only then lets the state grow by them, so that
what memory knows is always on disk; `replayed` is the same fold over the events that were read from a file.
`Results` shows it in the user's own sign, whether the study runs here or only its file is read.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from copy import deepcopy
from typing import Any

from farthing.budget import ACCOUNT_OF, Budget, Charges, Ledger, amount_text, worth_text
from farthing.direction import Direction
from farthing.errors import (
    BudgetSpent,
    FarthingError,
    InvalidArgument,
    NoTrial,
    NotWorthMore,
    StorageError,
    StudyEnded,
    TargetReached,
    UnknownTrial,
)  # fmt: skip
from farthing.history import History
from farthing.history.columns import Columns
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.warm_start import WarmStart
from farthing.record import added as added  # its kind of event is to be known
from farthing.record import stored_checks as stored
from farthing.record import stored_fits
from farthing.record.events import Asked
from farthing.record.heartbeat import Heartbeat
from farthing.record.lock import WriteLock
from farthing.record.moments import Moments
from farthing.record.requests import Answered
from farthing.record.state import AnyState, Encoding, Event, GrowingState, State, read_event, write_event
from farthing.record.storage import EventLog, SQLiteLog, open_log
from farthing.record.study_events import Budgeted, Charged, Noted, Opened, Valued
from farthing.record.writing import Overtaken
from farthing.space import Space
from farthing.text.escaping import on_one_line
from farthing.text.plain import headline, warn
from farthing.trial import Status, Trial

Rows = Sequence[tuple[str, str]]  # kind and JSON text of events

MANY = 32  # events that are read at once, so that it pays to go through all trials once more
LONGEST_CAUSE = 200  # characters of what is wrong with an event, in a message


class Record:
    """What has happened, on disk and in memory. Whoever writes holds `writing`, for one event or for longer."""

    def __init__(self, log: EventLog, settings: Opened, space: Space, knowledge: CostKnowledge) -> None:
        self.log, self.settings, self.space = log, settings, space
        self.direction = Direction(settings.maximize)
        self._encoding = Encoding(space, self.direction)
        warm_start = None if settings.warm_start is None else WarmStart.from_json(settings.warm_start)
        history = History(
            settings.seed, cost_knowledge=knowledge, warm_start=warm_start, max_steps=settings.max_steps
        )  # fmt: skip
        self._first = State(space, history)
        self.state = self._first
        self._moments: Moments | None = Moments()  # None after many events were read at once: see `moments`
        self._owed: Charges = {}  # found in the heartbeat of a process that was killed; the next write begins with it
        self._lock = threading.RLock()  # a heartbeat comes from another thread
        self.begun_at = 0.0  # when the study was begun, in seconds since 1970
        self.budget_set = 0.0  # when its budget was changed here
        self._last_of: dict[int, int] = {}  # the number of each trial's last event, of those that were read
        self.writing = WriteLock(self.storage)

    @classmethod
    def begun(cls, log: EventLog, settings: Opened, space: Space, knowledge: CostKnowledge) -> Record:
        """That of a new study."""
        record = cls(log, settings, space, knowledge)
        record.write(settings)
        record.begun_at = record.state.time or 0.0
        return record

    @classmethod
    def replayed(
        cls, log: EventLog, rows: Rows, settings: Opened, space: Space, knowledge: CostKnowledge
    ) -> Record:  # fmt: skip
        """That of an existing file, of which the first event is known. What a run left running there was
        interrupted, and what it spent since its last events is owed."""
        record = cls(log, settings, space, knowledge)
        record.begun_at = log.times[0]
        record.state = record.after(record.state, rows[1:], log.times[1:], 1)
        record._owed = record.spent_since(record.state, live=False)
        record.state = record.state.interrupted()
        if record._owed:
            record.state = record.state.charged(record._owed)
        return record

    @property
    def history(self) -> History:
        return self.state.history

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        try:
            return self.state.ledger
        except StorageError as error:
            raise StorageError(f"{self.log.name}: {error}") from None

    @property
    def notes(self) -> Mapping[str, Any]:
        return self.state.notes

    @property
    def storage(self) -> str | None:
        """The file, None when everything is in memory."""
        return str(self.log.path) if isinstance(self.log, SQLiteLog) else None

    def limit(self, budget: Budget) -> None:
        """Let the budget be this one from here on; not while another process runs the study, which would break."""
        if self.state.budgeted is None or self.state.budgeted.budget != budget:
            self.write(Budgeted(budget))
            self.budget_set = self.state.time or 0.0

    def value(self, worth: float | None) -> None:
        """Let an improvement by 1 be worth this much from here on; None leaves it as it is."""
        if worth is not None and worth != self.history.worth:
            self.write(Valued(worth))

    def note(self, notes: Mapping[str, Any]) -> None:
        """Keep these notes from here on; not while another process runs the study."""
        if notes != self.notes:
            self.write(Noted(dict(notes)))

    def write(self, *happened: Event) -> None:
        """On disk first, all of them or none, then in memory; while no other process writes."""
        with self._lock, self.writing.held():
            try:
                time = self._append(*happened)
            except Overtaken:
                if not self.writing.has_written:  # it was opened long ago, and others came before it
                    raise
                self._take_in_others()
                self._require_possible(happened)
                time = self._append(*happened)
            state = self.state.at(time)
            for event in happened:
                if self._moments is not None:
                    self._moments.pass_by(event, state)
                state = event.applied(state)
            self.state = state

    def _append(self, *happened: Event) -> float:
        """On disk, after what is owed; returns when that was."""
        owed = [Charged(self._owed)] if self._owed else []
        time = self.log.append(*(write_event(event, self._encoding) for event in (*owed, *happened)))
        self._owed = {}
        self.writing.wrote()
        return time

    def _take_in_others(self) -> None:
        """Somebody has written although we hold the file: an older Farthing, or a machine whose locks are not seen
        here. What runs here is not lost for that: we go on from what the file says now."""
        known, log = self.events, self.log
        assert isinstance(log, SQLiteLog)
        rows = list(log.read_on())
        self.state = self.after(self.state, rows, log.times, known)
        warn(
            f"{log.name}: another process has written to this study while it is held here by {os.getpid()}; its "
            f"{len(rows)} events are taken in, but two must not write to one study: end one of them"
        )

    def _require_possible(self, happened: Iterable[Event]) -> None:
        """What was about to be written may not go with what somebody else has written."""
        state = self.state
        for event in happened:
            try:
                event.check(state)
                state = event.applied(state)
            except (ValueError, FarthingError) as error:
                raise Overtaken(f"{self.log.name}: another process has written, and now {error}") from error

    def close(self) -> None:
        """Write no more, and let others."""
        self.log.close()
        self.writing.release()

    def beat(self, due: Charges, trials: Mapping[int, Mapping[str, float]], *, after: int | None = None) -> None:
        """Leave word of what was spent since the last events, for whoever opens the file after this process was killed.

        `due` belongs to no trial, `trials` to running ones by number. It is best effort: of a file that cannot be
        written nothing is said. `after` is the number of events (`events`) when the amounts were read; if more have
        been written since, they may be in those, and the heartbeat is left out.
        """
        with self._lock, suppress(StorageError, sqlite3.Error, OSError), self.writing.held():
            if self._owed:
                self._append()
            if after is None or after == self.events:
                self.log.beat(Heartbeat(self.events, due, trials))

    @property
    def events(self) -> int:
        """How many events there are."""
        return self.log.count

    def spent_since(self, state: State, *, live: bool) -> Charges:
        """What was spent after the last events that were read, by the heartbeat: of a process that was killed, or of
        one that is `live` and still evaluates its trials."""
        if self.log.heartbeat is None or state.budgeted is None:
            return {}
        running = {trial.number: self._last_of.get(trial.number, 0) for trial in state.history.running}
        account = ACCOUNT_OF[Status.COMPLETE if live else Status.INTERRUPTED]
        try:
            return Heartbeat.read(self.log.heartbeat).counted(self.log.count, running, account)
        except Exception as error:  # whatever a file of unknown origin holds
            cause = _shortened(repr(error))
            raise StorageError(f"{self.log.name}: its heartbeat cannot be read ({cause})") from error

    def after(self, state: State, rows: Rows, times: Sequence[float], known: int) -> State:
        """The state after some more events were read, of which the first comes after `known` others; each is checked
        before it is believed."""
        if len(rows) > MANY and len(rows) > len(state.history.trials) // MANY:
            self._moments = None
            return self._after(GrowingState(state), rows, times, known).state()
        return self._after(state, rows, times, known)

    def _after(self, state: AnyState, rows: Rows, times: Sequence[float], known: int) -> AnyState:
        for number, ((kind, body), time) in enumerate(zip(rows, times, strict=True), start=known + 1):
            try:
                event = read_event(kind, body, self._encoding)
                event.check(state)
                if isinstance(event, Asked):
                    stored_fits.check(event.proposal.fits, self.settings.policy, len(self.space))
                if self._moments is not None:
                    self._moments.pass_by(event, state)
                state = event.applied(state.at(time))
                if event.about is not None:
                    self._last_of[event.about] = number
            except Exception as error:  # whatever a file of unknown origin holds, and can make of our code
                raise StorageError(
                    f"{self.log.name}: event {number} cannot be read ({_shortened(repr(error))}); the {number - 1} "
                    "events before it are whole. Put back a copy of the file, or go on with these in a new one: "
                    f"farthing.record.storage.salvage({self.log.name!r}, 'new.db', events={number - 1})"
                ) from error
        self._require_finite_ledger(state)
        return state

    def _require_finite_ledger(self, state: State | GrowingState) -> None:
        """Each charge may be finite and their sum not."""
        ledger = state.budgeted
        if ledger is None:
            return
        try:
            finite = all(math.isfinite(ledger.total(unit)) for unit in stored.UNITS) and math.isfinite(ledger.committed)
        except OverflowError:
            finite = False
        if not finite:
            raise StorageError(f"{self.log.name}: what was spent is beyond all numbers; it is not used")

    def before(self, trial: int) -> State:
        """What was known when a trial was first proposed: trials that ended later are running, as they were then.

        Of several trials proposed at once, the earlier ones are running for the later ones.
        """
        states, asked = [self._first], list[Asked]()
        for event in self.past():
            if isinstance(event, Asked):
                if event.proposal.trial == trial:
                    known = event.prepared
                    return event.seen(
                        states[-1], asked, None if known is None else states[min(known.events, len(states) - 1)]
                    )
                asked.append(event)
            states.append(event.applied(states[-1]))
        state = states[-1]
        count = len(state.history.trials)
        raise InvalidArgument(f"trial: expected the number of a trial that was asked for, below {count}, got {trial!r}")

    @property
    def moments(self) -> Moments:
        """What was known when some of the trials were asked for; the file is read again for it, once, where it was read
        as a whole."""
        if self._moments is None:
            self._moments = Moments.of(self.past()[: self.events], self._first)
        return self._moments

    def past(self) -> list[Event]:
        """Every event so far. A file is looked at anew: reading moves where this log writes next."""
        log = self.log if self.storage is None else open_log(self.storage)
        with nullcontext(log) if log is self.log else closing(log):
            return [read_event(kind, body, self._encoding) for kind, body in log.read()]

    def replayed_from_start(self) -> Iterator[tuple[Event, State]]:
        """Every event so far, each with the state before it."""
        state = self._first
        for event in self.past():
            yield event, state
            state = event.applied(state)


def settings_in(rows: Rows, name: str) -> Opened:
    """What the study of a file is made of, or an error that names the file."""
    if not rows:
        raise StorageError(f"{name}: the file holds no study yet")
    kind, body = rows[0]
    if kind != Opened.kind:
        raise StorageError(f"{name}: the first event is {kind!r}, not {Opened.kind!r}")
    try:
        return Opened.read(json.loads(body))
    except Exception as error:  # whatever a file of unknown origin holds
        raise StorageError(f"{name}: event 1 cannot be read ({_shortened(repr(error))})") from error


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CAUSE else f"{text[:LONGEST_CAUSE]} ..."


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
    def requests(self) -> list[Answered]:
        """What was asked of the study by somebody who looks at it, and what came of it; the last ones."""
        return list(self.record.state.requests.recent)

    @property
    def is_paused(self) -> bool:
        """Whether the run begins nothing new until somebody resumes it."""
        return self.record.state.requests.is_paused

    @property
    def trials(self) -> list[Trial]:
        return [self.record.direction.shown(trial) for trial in self.record.history.trials]

    def some(self, numbers: Iterable[int]) -> list[Trial]:
        """The trials of these numbers, such as one page of a table; `columns` says in which order they may stand."""
        trials, shown = self.record.history.trials, self.record.direction.shown
        return [shown(trials[int(number)]) for number in numbers]

    @property
    def columns(self) -> Columns:
        """Of all trials, with values in the user's own sign."""
        columns = self.record.history.trials.columns
        return columns.turned if self.record.direction.maximize else columns

    def trial(self, number: int) -> Trial:
        trials = self.record.history.trials
        if not 0 <= number < len(trials):
            raise UnknownTrial(f"trial {number} was never asked for; trials so far: {len(trials)}")
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

    @property
    def ended(self) -> StudyEnded | None:
        """Why there will be no more proposals, as far as trials and ledger say, or None."""
        ledger, best = self.ledger, self.record.history.incumbent
        if unit := ledger.reached:
            limit = amount_text(unit, ledger.budget.limits[unit])
            return BudgetSpent(f"the budget of {limit} is spent; Study.resume(file, budget=...) can raise it")
        target = self.record.direction.turned(self.record.settings.stop_at)
        if target is not None and best is not None and best.value is not None and best.value <= target:
            return TargetReached(f"trial {best.number} reached the value asked for by stop_at")
        return self._not_worth_more

    @property
    def _not_worth_more(self) -> NotWorthMore | None:
        judged, worth = self.record.state.judged, self.record.history.worth
        if judged is None or worth is None:
            return None
        value, cost = (worth_text(self.ledger.budget, amount) for amount in (judged.gain * worth, judged.cost))
        return NotWorthMore(
            f"not worth more: the next evaluation is expected to bring {judged.gain:.2g}, worth {value}, and to cost "
            f"{cost}; Study.resume(file, stop_when_not_worth=...) can raise what an improvement is worth"
        )

    @property
    def why_ended(self) -> str:
        """The same in words; "" while the study may go on."""
        return "" if self.ended is None else str(self.ended).partition(";")[0]

    def found(self, trial: Trial | None) -> Trial:
        """That trial as it is shown, or an error if there is none."""
        if trial is None:
            raise NoTrial(f"no trial has succeeded yet{self._last_failure}")
        return self.record.direction.shown(trial)

    @property
    def _last_failure(self) -> str:
        """How many trials failed or were killed, and the last error."""
        last = next((t for t in reversed(self.record.history.trials) if t.unsuccessful and t.error), None)
        if last is None:
            return ""
        counts = {"failed": self.count(Status.FAILED), "killed": self.count(Status.KILLED)}
        said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return f" ({said}); the last error: {on_one_line(headline(last.error or ''))}"
