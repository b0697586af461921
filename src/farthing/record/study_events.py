"""What happens to a study as a whole: it is opened, gets its budget, is charged and noted. What an event is, is said in
state.py; what happens to trials is in events.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from farthing.budget import Budget, Charges, Ledger
from farthing.record import stored_checks as stored
from farthing.record import stored_settings
from farthing.record.mailbox import ACTIONS, ENQUEUE, is_id
from farthing.record.requests import MOST_QUEUED, Answered
from farthing.record.state import AnyState, Encoding, Event, GrowingState, Prospect, State
from farthing.text.plain import plain
from farthing.trial import Config

Json = dict[str, Any]


@dataclass(frozen=True)
class Opened(Event):
    """The first event: all that a study is made of except its budget. It is as the file holds it: the encoding of the
    others depends on it."""

    kind = "opened"

    space: Json
    policy: Json
    seed: int
    maximize: bool
    start: tuple[Json, ...] = ()  # stored configs
    stop_at: float | None = None
    cost: Json = field(default_factory=dict)  # what is known of cost in advance: CostKnowledge
    max_steps: int | None = None
    warm_start: Json | None = None  # what was taken over from earlier studies: WarmStart

    def body(self, encoding: Encoding | None = None) -> Json:
        body = {
            "space": self.space, "policy": self.policy, "seed": self.seed, "maximize": self.maximize,
            "start": list(self.start), "stop_at": self.stop_at, "cost": self.cost, "max_steps": self.max_steps,
        }  # fmt: skip
        return body if self.warm_start is None else {**body, "warm_start": self.warm_start}  # older files have no key

    @classmethod
    def read(cls, body: Json, encoding: Encoding | None = None) -> Self:
        stored_settings.check(body)
        return cls(**{**body, "start": tuple(body["start"])})

    def check(self, state: State | GrowingState) -> None:
        raise ValueError("a study is opened once")

    def applied(self, state: AnyState) -> AnyState:
        return state


@dataclass(frozen=True)
class Budgeted(Event):
    """The budget from here on."""

    kind = "budgeted"

    budget: Budget

    def body(self, encoding: Encoding) -> Json:
        return {"budget": self.budget.as_json()}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(Budget.from_json(body["budget"]))

    def check(self, state: State | GrowingState) -> None:
        """A Budget checks itself."""

    def applied(self, state: AnyState) -> AnyState:
        held = state.budgeted or Ledger(self.budget)
        ledger = Ledger(self.budget, held.accounts, held.committed, held.running)
        return state.changed(budgeted=ledger, judged=None)


@dataclass(frozen=True)
class Valued(Event):
    """What an improvement of the value by 1 is worth from here on, in the budget's unit."""

    kind = "valued"

    worth: float

    def body(self, encoding: Encoding) -> Json:
        return {"worth": self.worth}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["worth"])

    def check(self, state: State | GrowingState) -> None:
        stored.number("worth", self.worth)
        if self.worth <= 0.0:
            raise ValueError(f"an improvement is worth {self.worth!r}")

    def applied(self, state: AnyState) -> AnyState:
        return state.changed(history=state.history.changed(worth=self.worth), judged=None)


@dataclass(frozen=True)
class Judged(Event):
    """No evaluation is worth its cost: what the best of them is expected to bring and to cost."""

    kind = "judged"

    gain: float
    cost: float
    charges: Charges

    def body(self, encoding: Encoding) -> Json:
        return {"gain": self.gain, "cost": self.cost, "charges": self.charges}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["gain"], body["cost"], body["charges"])

    def check(self, state: State | GrowingState) -> None:
        for name in ("gain", "cost"):
            stored.amount(name, getattr(self, name))
        stored.charges(self.charges)
        if state.history.worth is None:
            raise ValueError("nobody has said what an improvement is worth")

    def applied(self, state: AnyState) -> AnyState:
        return state.charged(self.charges).changed(judged=Prospect(self.gain, self.cost))


@dataclass(frozen=True)
class Charged(Event):
    """What a run spent after its last trial."""

    kind = "charged"

    charges: Charges

    def body(self, encoding: Encoding) -> Json:
        return {"charges": self.charges}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["charges"])

    def check(self, state: State | GrowingState) -> None:
        stored.charges(self.charges)

    def applied(self, state: AnyState) -> AnyState:
        return state.charged(self.charges)


@dataclass(frozen=True)
class Noted(Event):
    """What whoever runs the study wants to find in its file again, as JSON; it replaces what was noted before."""

    kind = "noted"

    notes: Json

    def body(self, encoding: Encoding) -> Json:
        return {"notes": plain(self.notes)}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["notes"])

    def check(self, state: State | GrowingState) -> None:
        stored.mapping("notes", self.notes)
        stored.plain("notes", self.notes)

    def applied(self, state: AnyState) -> AnyState:
        return state.changed(notes=self.notes)


@dataclass(frozen=True)
class Requested(Event):
    """Somebody who looks at the study has asked for something (mailbox.py), and it was done, or `refused`, and why.

    A new budget is an event of its own, before this one. A `config` is to be evaluated next. Without an `id` nobody has
    asked: a run has begun, and is not paused, whatever the one before it was.
    """

    kind = "requested"

    id: str
    action: str
    budget: str | None = None  # as it was asked for
    config: Config | None = None  # of one that was done
    refused: str | None = None

    def body(self, encoding: Encoding) -> Json:
        config = None if self.config is None else encoding.space.store_config(self.config)
        given = {"budget": self.budget, "config": config, "refused": self.refused}
        return {"id": self.id, "action": self.action, **{key: part for key, part in given.items() if part is not None}}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        config = encoding.space.load_config(body["config"]) if "config" in body else None
        return cls(body["id"], body["action"], body.get("budget"), config, body.get("refused"))

    def check(self, state: State | GrowingState) -> None:
        stored.text("id", self.id)
        if self.id and not is_id(self.id):
            raise ValueError(f"{self.id[:80]!r} is the id of no request")
        if self.action not in ACTIONS:
            raise ValueError("nobody can ask for that action")
        for name in ("budget", "refused"):
            if getattr(self, name) is not None:
                stored.text(name, getattr(self, name))
        if (self.config is not None) != (self.action == ENQUEUE and self.refused is None):
            raise ValueError("a request has a configuration exactly if that is to be evaluated")
        if self.config is not None and len(state.requests.still_queued(state.history.taken)) >= MOST_QUEUED:
            raise ValueError(f"{MOST_QUEUED} configurations wait to be evaluated")

    def applied(self, state: AnyState) -> AnyState:
        if not self.id:
            return state.changed(requests=state.requests.begun_anew())
        answer = Answered(self.id, self.action, state.time, self.budget, self.config, self.refused)
        key = None if self.config is None else state.space.key(self.config)
        requests = state.requests.with_answer(answer, key, state.history.taken)
        judged = state.judged if self.config is None else None  # there is something to evaluate again
        return state.changed(requests=requests, judged=judged)
