"""The state of a study, which follows from its events so far, and what an event is: a step from one state to the next.

`Encoding` and `Event` say how events are written to a file and read from it; the kinds of events are in events.py.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from farthing.budget import Charges, Ledger
from farthing.direction import Direction
from farthing.errors import StorageError
from farthing.history import History
from farthing.history.growing import GrowingHistory
from farthing.history.history import TrackedTrial
from farthing.history.persistent import Vector
from farthing.record import stored_checks as stored
from farthing.record.requests import Requests
from farthing.space import Space
from farthing.trial import EndedBy, Proposal, Status

Json = dict[str, Any]

# A trial that is running in the file may have been interrupted: the process that ran it had no time to say so.
CAN_GO_ON = frozenset({Status.RUNNING, Status.PAUSED, Status.INTERRUPTED})


NO_BUDGET = "the file ends before the study had a budget"


class Ran(NamedTuple):
    """An objective that was run, by its code (runner/objective_code.py), and the first trial after it came."""

    code: str
    since: int


class Improvement(NamedTuple):
    """A trial became the best of its study, or is it no longer and another one is: the value, and what was spent."""

    trial: int
    value: float
    ledger: Ledger | None  # with the charges of the event; None before the first budget

    def spent(self, unit: str) -> float:
        """In a unit, on all accounts."""
        return 0.0 if self.ledger is None else self.ledger.total(unit)


class Prospect(NamedTuple):
    """The evaluation that is expected to bring most for its cost: by how much it improves the value, and its cost."""

    gain: float
    cost: float


NO_REQUESTS = Requests()


@dataclass(frozen=True)
class State:
    """History, ledger and notes; a new one after every event."""

    space: Space
    history: History
    budgeted: Ledger | None = None  # None before the first budget
    notes: Mapping[str, Any] = field(default_factory=dict)
    objective: Ran | None = None  # None where no run has said what it evaluates
    time: float | None = None  # of the event that is applied, in seconds since 1970
    judged: Prospect | None = None  # which was not worth its cost; None once anything has happened since
    requests: Requests = NO_REQUESTS
    improvements: Vector[Improvement] = field(default_factory=Vector, compare=False)  # whenever the best value changed

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        if self.budgeted is None:
            raise StorageError(NO_BUDGET)
        return self.budgeted

    def charged(self, charges: Charges) -> State:
        """With more amounts in the accounts of the ledger."""
        ledger = self.ledger
        return self.changed(budgeted=ledger.charged(charges) if charges else ledger)

    def grown(self, history: History, charges: Charges, cost: float = 0.0, count: int = 0) -> State:
        """With another history, more amounts in the accounts of the ledger, and `count` more evaluations running, which
        are expected to cost `cost` together. Every event comes here: `replace` would take four times as long."""
        ledger = self.ledger
        if charges:
            ledger = ledger.charged(charges)
        if cost or count:
            ledger = ledger.promised(cost, count)
        improvements = self.improved(history, ledger)
        return State(
            self.space, history, ledger, self.notes, self.objective, self.time, None, self.requests, improvements
        )  # fmt: skip

    def learned(self, history: History) -> State:
        """With another history, in which a result became known that was not paid for."""
        return self.changed(history=history, improvements=self.improved(history, self.budgeted))

    def improved(self, history: History, ledger: Ledger | None) -> Vector[Improvement]:
        """The improvements, with one more if the best value of that history is another."""
        best, before = history.trials.best, self.history.trials.best
        if best is None or best is before or best.value is None:
            return self.improvements
        if before is not None and before.value == best.value:
            return self.improvements
        return self.improvements.with_item(len(self.improvements), Improvement(best.number, best.value, ledger))

    def changed(self, **fields: Any) -> State:
        """With other values in some fields."""
        return replace(self, **fields)

    def at(self, time: float) -> State:
        """At the time of the next event."""
        return State(
            self.space, self.history, self.budgeted, self.notes, self.objective, time, self.judged, self.requests,
            self.improvements,
        )  # fmt: skip

    def interrupted(self) -> State:
        """As read from a file that nobody runs: trials of a run that were running there were interrupted, and paused
        learners are gone but for their checkpoints. What `ask` gave to a loop of the user's may still be evaluated
        somewhere."""
        trials = self.history.trials
        history = replace(self.history, trials=trials.with_trials(_interrupted(trial) for trial in trials.resumable))
        judged = None if self.history.running else self.judged
        if self.budgeted is None:
            return replace(self, history=history, judged=judged)
        committed = math.fsum(trial.predicted_cost or 0.0 for trial in history.running)
        ledger = replace(self.budgeted, committed=committed, running=len(history.running))
        return replace(self, history=history, budgeted=ledger, judged=judged)


def _interrupted(trial: TrackedTrial) -> TrackedTrial:
    if trial.status is Status.PAUSED:
        return trial.changed(kept_step=trial.saved_step)
    if trial.status is not Status.RUNNING or trial.pending:
        return trial
    return trial.changed(kept_step=trial.saved_step, status=Status.INTERRUPTED, ended_by=EndedBy.INTERRUPT)


class GrowingState:
    """What becomes of a state while many events are read: it changes in place, and nobody else has seen it. `state` is
    the value that comes out, the same as if each event had made one."""

    def __init__(self, begun: State) -> None:
        self.space, self.history = begun.space, GrowingHistory(begun.history)
        self.notes, self.objective = begun.notes, begun.objective
        self.time, self.judged, self.requests = begun.time, begun.judged, begun.requests
        self.budgeted, self._improvements = begun.budgeted, list(begun.improvements)
        self._best = self.history.best_value

    @property
    def budgeted(self) -> Ledger | None:
        """As a value, which is made anew each time; None before the first budget."""
        if self._ledger is None:
            return None
        accounts = {account: dict(amounts) for account, amounts in self._accounts.items()}
        return Ledger(self._ledger.budget, accounts, self._committed, self._running)

    @budgeted.setter
    def budgeted(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        if ledger is not None:
            self._accounts = {account: dict(amounts) for account, amounts in ledger.accounts.items()}
            self._committed, self._running = ledger.committed, ledger.running

    def state(self) -> State:
        """As a value."""
        return State(
            self.space, self.history.history(), self.budgeted, self.notes, self.objective, self.time, self.judged,
            self.requests, Vector.of(self._improvements),
        )  # fmt: skip

    def charged(self, charges: Charges) -> GrowingState:
        """Takes in more amounts in the accounts of the ledger, as `Ledger.charged` does."""
        if self._ledger is None:
            raise StorageError(NO_BUDGET)
        for account, amounts in charges.items():
            held = self._accounts.setdefault(account, {})
            for unit, amount in amounts.items():
                held[unit] = held.get(unit, 0.0) + amount
        return self

    def grown(
        self, history: GrowingHistory, charges: Charges, cost: float = 0.0, count: int = 0
    ) -> GrowingState:  # fmt: skip
        """Takes in what `State.grown` does; the history has grown already."""
        self.charged(charges)
        if cost or count:  # as Ledger.promised
            self._committed = max(self._committed + cost, 0.0)
            self._running += count
        self.judged = None
        return self.learned(history)

    def learned(self, history: GrowingHistory) -> GrowingState:
        """Takes in what `State.learned` does."""
        best, before = history.best, self._best
        self._best = history.best_value
        if best is not None and best.value is not None and best.value != before:
            self._improvements.append(Improvement(best.number, best.value, self.budgeted))
        return self

    def changed(self, **fields: Any) -> GrowingState:
        """Puts other values into some fields."""
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def at(self, time: float) -> GrowingState:
        """At the time of the next event."""
        self.time = time
        return self


AnyState = TypeVar("AnyState", State, GrowingState)


@dataclass(frozen=True)
class Encoding:
    """What the JSON of events in one file depends on: options are stored by index, values in the user's sign."""

    space: Space
    direction: Direction


class Event(ABC):
    """Something that happened to a study."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        Event.kinds[cls.kind] = cls

    @property
    def about(self) -> int | None:
        """The number of the trial that it happened to, if any."""
        number: int | None = getattr(self, "trial", None)
        return number

    @abstractmethod
    def body(self, encoding: Encoding) -> Json:
        """As JSON."""

    @classmethod
    @abstractmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        """From JSON of any origin; whatever is wrong with it may raise any exception."""

    @abstractmethod
    def check(self, state: State | GrowingState) -> None:
        """A ValueError if this cannot have happened at that state."""

    @abstractmethod
    def applied(self, state: AnyState) -> AnyState:
        """The state after it."""


def check_stretch(proposal: Proposal, state: State | GrowingState) -> None:
    """A new trial begins at step 0; an earlier one goes on as it is, if it can, from a step that it has seen."""
    if proposal.until_step is not None:
        stored.whole("until_step", proposal.until_step, least=1, most=stored.MOST_STEPS)
    if proposal.trial == len(state.history.trials):
        stored.whole("start_step", proposal.start_step, most=0)
        return
    trial = state.history.trials[proposal.trial]
    stored.whole("start_step", proposal.start_step, most=len(trial.curve))
    if trial.status not in CAN_GO_ON:
        raise ValueError(f"trial {trial.number} is {trial.status.value}, and was asked for again")
    if state.space.key(proposal.config) != trial.key:
        raise ValueError(f"trial {trial.number} was asked for with another config")


def write_event(event: Event, encoding: Encoding) -> tuple[str, str]:
    """An event as its kind and JSON text."""
    return event.kind, json.dumps(event.body(encoding), separators=(",", ":"))


def read_event(kind: str, text: str, encoding: Encoding) -> Event:
    """The event of a kind and a JSON text."""
    if kind not in Event.kinds:
        raise ValueError(f"unknown kind of event {kind!r}, of a newer Farthing if of any")
    return Event.kinds[kind].read(parsed(text), encoding)


_raw_decode = json.JSONDecoder().raw_decode


def parsed(text: str) -> Any:
    """What `json.loads` makes of a text, or raises; the usual text without a space around it in half the time."""
    try:
        found, end = _raw_decode(text)
    except ValueError:
        return json.loads(text)
    return found if end == len(text) else json.loads(text)
