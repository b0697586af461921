"""A known result: a trial that was evaluated elsewhere, by whatever program. It costs this study nothing, and every
model learns from it. It is how results are imported too: then it may also have been stopped, paused, killed or given
up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from farthing.direction import Direction
from farthing.history.history import Place, TrackedTrial
from farthing.record import stored_checks as stored
from farthing.record.state import AnyState, Encoding, Event, GrowingState, State
from farthing.text.plain import cut_text, stored_attributes
from farthing.trial import ENDS_OF_STUDY, USUAL_END, Config, Curve, EndedBy, Outcome, Status

Json = dict[str, Any]

REASON = "a known result"


@dataclass(frozen=True)
class Added(Event):
    """A trial of its own number came from outside.

    A `curve` holds the value after each step; then `value` is the best of them. `cost` is what the evaluation cost
    then, in the budget's unit; `began` and `ended` say when it was, if that is known. Without a `status` the trial is
    complete, or failed if it has an error. One that was paused can go on, from its beginning; one that was interrupted
    does not.
    """

    kind = "added"

    trial: int
    config: Config
    value: float | None = None
    cost: float | None = None
    error: str | None = None  # of one that is not complete
    curve: tuple[float, ...] = ()
    attributes: Json = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None
    status: Status | None = None
    ended_by: EndedBy | None = None  # None: the usual one of its status

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
            **({} if self.status is None else {"status": self.status.value}),
            **({} if self.ended_by is None else {"ended_by": self.ended_by.value}),
        }

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        turned, status, ended_by = encoding.direction.turned, body.get("status"), body.get("ended_by")
        return cls(
            body["trial"], encoding.space.load_config(body["config"]), turned(body["value"]), body["cost"],
            body["error"], tuple(turned(value) for value in body["curve"]), body["attributes"], body.get("began"),
            body.get("ended"), None if status is None else Status(status),
            None if ended_by is None else EndedBy(ended_by),
        )  # fmt: skip

    def check(self, state: State | GrowingState) -> None:
        stored.whole("trial", self.trial, least=len(state.history.trials), most=len(state.history.trials))
        self._check_end()
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

    def _check_end(self) -> None:
        """A value and an error go with how it ended."""
        status = self.final_status
        if status is Status.RUNNING:
            raise ValueError("a known result is running")
        if status is Status.COMPLETE and (self.value is None or self.error is not None):
            raise ValueError("a known result that is complete has a value and no error")
        if status is not Status.COMPLETE and (self.value is None) != (not self.curve):
            raise ValueError(f"a known result that is {status.value} has a value where it has a curve, and only there")
        if status in (Status.FAILED, Status.KILLED) and self.error is None:
            raise ValueError(f"a known result that is {status.value} has an error")
        if status in (Status.STOPPED, Status.PAUSED) and not self.curve:
            raise ValueError(f"a known result that is {status.value} has a curve")
        if status is Status.PAUSED and self.ended_by in ENDS_OF_STUDY:  # it would go on by itself, in no ask
            raise ValueError("a known result that is paused was paused by the end of a study")

    @property
    def final_status(self) -> Status:
        return self.status or (Status.COMPLETE if self.error is None else Status.FAILED)

    def applied(self, state: AnyState) -> AnyState:
        history, status, steps = state.history, self.final_status, len(self.curve)
        trial = TrackedTrial(
            self.trial, dict(self.config), status, self.value, self.cost, self._curve, self.error, self.attributes,
            reason=REASON, ended_by=self.ended_by or USUAL_END[status], began=self.began, ended=self.ended,
            kept_step=0 if status in (Status.PAUSED, Status.INTERRUPTED) else steps, saved_step=0,
            counted=status is not Status.PAUSED,  # what goes on here becomes an evaluation of this study
            forgotten=status is Status.INTERRUPTED, added=True, place=Place.of(state.space, self.config),
        )  # fmt: skip
        length = steps if steps and status is Status.COMPLETE else None
        return state.learned(history.with_trial(trial).changed(max_steps=history.max_steps or length))

    @property
    def _curve(self) -> Curve:
        """Nobody knows what each step cost: all the same, as far as is known."""
        steps = len(self.curve)
        share = None if self.cost is None or not steps else self.cost / steps
        return Curve(self.curve, (share,) * steps, (None,) * steps)
