"""The state of a study, which follows from its events so far, and what an event is: a step from one state to the next.

`Encoding` and `Event` say how events are written to a file and read from it; the kinds of events are in events.py.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

from farthing.budget import Charges, Ledger
from farthing.direction import Direction
from farthing.errors import StorageError
from farthing.history import History
from farthing.history.history import TrackedTrial, Trials
from farthing.record import stored_checks as stored
from farthing.space import Space
from farthing.trial import EndedBy, Proposal, Status

Json = dict[str, Any]

# A trial that is running in the file may have been interrupted: the process that ran it had no time to say so.
CAN_GO_ON = frozenset({Status.RUNNING, Status.PAUSED, Status.INTERRUPTED})


class Ran(NamedTuple):
    """An objective that was run, by its code (runner/objective_code.py), and the first trial after it came."""

    code: str
    since: int


class Prospect(NamedTuple):
    """The evaluation that is expected to bring most for its cost: by how much it improves the value, and its cost."""

    gain: float
    cost: float


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

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        if self.budgeted is None:
            raise StorageError("the file ends before the study had a budget")
        return self.budgeted

    def charged(self, charges: Charges) -> State:
        """With more amounts in the accounts of the ledger."""
        return self.grown(self.history, charges)

    def grown(self, history: History, charges: Charges, cost: float = 0.0, count: int = 0) -> State:
        """With another history, more amounts in the accounts of the ledger, and `count` more evaluations running, which
        are expected to cost `cost` together. Every event comes here: `replace` would take four times as long."""
        ledger = self.ledger
        if charges:
            ledger = ledger.charged(charges)
        if cost or count:
            ledger = ledger.promised(cost, count)
        judged = self.judged if history is self.history else None
        return State(self.space, history, ledger, self.notes, self.objective, self.time, judged)

    def at(self, time: float) -> State:
        """At the time of the next event."""
        return State(self.space, self.history, self.budgeted, self.notes, self.objective, time, self.judged)

    def interrupted(self) -> State:
        """As read from a file that nobody runs: trials of a run that were running there were interrupted, and paused
        learners are gone but for their checkpoints. What `ask` gave to a loop of the user's may still be evaluated
        somewhere."""
        history = replace(self.history, trials=Trials.of(map(_interrupted, self.history.trials)))
        judged = None if self.history.running else self.judged
        if self.budgeted is None:
            return replace(self, history=history, judged=judged)
        committed = math.fsum(trial.predicted_cost or 0.0 for trial in history.running)
        ledger = replace(self.budgeted, committed=committed, running=len(history.running))
        return replace(self, history=history, budgeted=ledger, judged=judged)


def _interrupted(trial: TrackedTrial) -> TrackedTrial:
    if trial.status is Status.PAUSED:
        return replace(trial, kept_step=trial.saved_step)
    if trial.status is not Status.RUNNING or trial.pending:
        return trial
    return replace(trial, kept_step=trial.saved_step, status=Status.INTERRUPTED, ended_by=EndedBy.INTERRUPT)


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
    def check(self, state: State) -> None:
        """A ValueError if this cannot have happened at that state."""

    @abstractmethod
    def applied(self, state: State) -> State:
        """The state after it."""


def check_stretch(proposal: Proposal, state: State) -> None:
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
    return Event.kinds[kind].read(json.loads(text), encoding)
