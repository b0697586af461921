"""What happens to a study as a whole: it is opened, gets its budget, is charged and noted. What an event is, is said in
state.py; what happens to trials is in events.py."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from farthing.budget import Budget, Charges, Ledger
from farthing.plain import plain
from farthing.record import stored_checks as stored
from farthing.record import stored_settings
from farthing.record.state import Encoding, Event, Prospect, State

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

    def check(self, state: State) -> None:
        raise ValueError("a study is opened once")

    def applied(self, state: State) -> State:
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

    def check(self, state: State) -> None:
        """A Budget checks itself."""

    def applied(self, state: State) -> State:
        held = state.budgeted or Ledger(self.budget)
        ledger = Ledger(self.budget, held.accounts, held.committed, held.running)
        return replace(state, budgeted=ledger, judged=None)


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

    def check(self, state: State) -> None:
        stored.number("worth", self.worth)
        if self.worth <= 0.0:
            raise ValueError(f"an improvement is worth {self.worth!r}")

    def applied(self, state: State) -> State:
        return replace(state, history=replace(state.history, worth=self.worth), judged=None)


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

    def check(self, state: State) -> None:
        for name in ("gain", "cost"):
            stored.amount(name, getattr(self, name))
        stored.charges(self.charges)
        if state.history.worth is None:
            raise ValueError("nobody has said what an improvement is worth")

    def applied(self, state: State) -> State:
        return replace(state.charged(self.charges), judged=Prospect(self.gain, self.cost))


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

    def check(self, state: State) -> None:
        stored.charges(self.charges)

    def applied(self, state: State) -> State:
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

    def check(self, state: State) -> None:
        stored.mapping("notes", self.notes)
        stored.plain("notes", self.notes)

    def applied(self, state: State) -> State:
        return replace(state, notes=self.notes)
