"""A known result: a trial that was evaluated elsewhere, by whatever program. It costs this study nothing, and every
model learns from it. It is how results are imported too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from farthing.direction import Direction
from farthing.history.history import TrackedTrial
from farthing.plain import cut_text, stored_attributes
from farthing.record import stored_checks as stored
from farthing.record.state import Encoding, Event, State
from farthing.trial import Config, Curve, EndedBy, Outcome, Status

Json = dict[str, Any]

REASON = "a known result"


@dataclass(frozen=True)
class Added(Event):
    """A complete or failed trial of its own number came from outside.

    A `curve` holds the value after each step; then `value` is the best of them. `cost` is what the evaluation cost
    then, in the budget's unit; `began` and `ended` say when it was, if that is known.
    """

    kind = "added"

    trial: int
    config: Config
    value: float | None = None
    cost: float | None = None
    error: str | None = None  # of a failed one
    curve: tuple[float, ...] = ()
    attributes: Json = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None

    @classmethod
    def of(cls, number: int, config: Config, outcome: Outcome, curve: Iterable[float], direction: Direction) -> Self:
        """From values in the user's own sign."""
        values = tuple(map(direction.turned, curve))
        value = min(values) if values else direction.turned(outcome.value)
        error, attributes = outcome.error and cut_text(outcome.error), stored_attributes(outcome.attributes)
        return cls(number, config, value, outcome.cost, error, values, attributes)

    def body(self, encoding: Encoding) -> Json:
        turned = encoding.direction.turned
        return {
            "trial": self.trial,
            "config": encoding.space.store_config(self.config),
            "value": turned(self.value),
            "cost": self.cost,
            "error": self.error,
            "curve": [turned(value) for value in self.curve],
            "attributes": self.attributes,
            "began": self.began,
            "ended": self.ended,
        }

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        turned = encoding.direction.turned
        return cls(
            body["trial"], encoding.space.load_config(body["config"]), turned(body["value"]), body["cost"],
            body["error"], tuple(turned(value) for value in body["curve"]), body["attributes"], body.get("began"),
            body.get("ended"),
        )  # fmt: skip

    def check(self, state: State) -> None:
        stored.whole("trial", self.trial, least=len(state.history.trials), most=len(state.history.trials))
        if (self.value is None) == (self.error is None):
            raise ValueError("a known result has either a value or an error")
        for value in (*self.curve, *([] if self.value is None else [self.value])):
            stored.number("value", value)
        if self.curve and self.value != min(self.curve):
            raise ValueError("the value of a known result is not the best of its curve")
        stored.amount("cost", self.cost)
        if self.error is not None:
            stored.text("error", self.error)
        stored.attributes(self.attributes)
        for name, time in (("began", self.began), ("ended", self.ended)):
            stored.amount(name, time)

    def applied(self, state: State) -> State:
        history, space, steps = state.history, state.space, len(self.curve)
        trial = TrackedTrial(
            self.trial, dict(self.config), Status.COMPLETE if self.error is None else Status.FAILED, self.value,
            self.cost, self._curve, self.error, self.attributes, reason=REASON, ended_by=EndedBy.OBJECTIVE,
            began=self.began, ended=self.ended, kept_step=steps, saved_step=0, counted=True, added=True,
            key=space.key(self.config), unit=space.encode(self.config),
        )  # fmt: skip
        length = steps if steps and self.error is None else None
        return replace(state, history=replace(history.with_trial(trial), max_steps=history.max_steps or length))

    @property
    def _curve(self) -> Curve:
        """Nobody knows what each step cost: all the same, as far as is known."""
        steps = len(self.curve)
        share = None if self.cost is None or not steps else self.cost / steps
        return Curve(self.curve, (share,) * steps, (None,) * steps)
