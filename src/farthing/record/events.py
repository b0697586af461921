"""What happens to trials, as values. A study is the fold of its events, and its file holds nothing else.

Each event knows its form in the file (`body`, `read`), whether one that was read can have happened (`check`), and what
it does to the state (`applied`); state.py says what an event is, and study_events.py has those that are about no trial.
A new kind of event is one class: a subclass with a `kind` is known by that name.

In the file, values are in the user's own sign and options are indices; in memory, values are minimised and
configurations hold the options themselves. What Study writes was checked before, but a file may come from anywhere: a
NaN, a text or a list in the place of a number would spoil every model and budget after it. All that is read is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from farthing.budget import Charges, Ledger
from farthing.history import Seen, Way
from farthing.history.history import Place, TrackedTrial
from farthing.record import stored_checks as stored
from farthing.record.state import CAN_GO_ON, AnyState, Encoding, Event, GrowingState, Ran, State, check_stretch
from farthing.trial import ENDS_OF_STUDY, EndedBy, Outcome, Proposal, Report, Status

Json = dict[str, Any]

NEW = TrackedTrial(0, {}, Status.RUNNING)  # before it is known which

TOLD = "cost"  # the unit that no meter shows

ASKED_BY = {
    "run": False,
    "ask": True,
}  # who has a trial, and whether it is pending; in older files runs have all


class PreparedFrom(NamedTuple):
    """What an ask had seen when it was prepared: the first so many events, and the ledger of that moment."""

    events: int
    ledger: Mapping[str, Any]


@dataclass(frozen=True)
class Asked(Event):
    """A proposal was handed out: in which ask, what the ledger said, what the optimiser spent on it, the seconds it was
    given to think (None: as many as it takes) and the way it took. `prepared` says what it had seen when it was
    prepared in the background, None for an ask that was made in turn.

    A new trial is running then, or a paused or interrupted one again; it is `pending` if a loop of the user's has it,
    and not a run. `objective` is the code that a run evaluates, in the first event after it changed.
    """

    kind = "asked"

    ask: int
    proposal: Proposal
    ledger: Mapping[str, Any]
    charges: Charges = field(default_factory=dict)
    seconds: float | None = None
    way: Way = Way.FULL
    pending: bool = False
    objective: str | None = None
    prepared: PreparedFrom | None = None

    @property
    def about(self) -> int:
        return self.proposal.trial

    def body(self, encoding: Encoding) -> Json:
        proposal = self.proposal
        return {
            "ask": self.ask,
            "trial": proposal.trial,
            "config": encoding.space.store_config(proposal.config),
            "predicted_cost": proposal.predicted_cost,
            "reason": proposal.reason,
            "fits": dict(proposal.fits),
            "start_step": proposal.start_step,
            "until_step": proposal.until_step,
            "ledger": dict(self.ledger),
            "charges": self.charges,
            "seconds": self.seconds,
            "way": self.way.value,
            "by": "ask" if self.pending else "run",
            **({} if self.objective is None else {"objective": self.objective}),
            **({} if self.prepared is None else {"prepared": self.prepared._asdict()}),
        }

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        proposal = Proposal(
            body["trial"], encoding.space.load_config(body["config"]), body["predicted_cost"], body["reason"],
            body["fits"], body.get("start_step", 0), body.get("until_step"),
        )  # fmt: skip
        way = stored.member(Way, body.get("way", "full"))  # older files know no other
        pending = ASKED_BY[body.get("by", "run")]
        charges, seconds, objective = body["charges"], body.get("seconds"), body.get("objective")
        prepared = PreparedFrom(**body["prepared"]) if "prepared" in body else None
        return cls(body["ask"], proposal, body["ledger"], charges, seconds, way, pending, objective, prepared)

    def check(self, state: State | GrowingState) -> None:
        proposal = self.proposal
        stored.whole("ask", self.ask, most=state.history.asks)
        stored.whole("trial", proposal.trial, most=len(state.history.trials))
        stored.amount("predicted_cost", proposal.predicted_cost)
        stored.text("reason", proposal.reason)
        stored.mapping("fits", proposal.fits)
        stored.amount("seconds", self.seconds)
        stored.ledger(self.ledger)
        stored.charges(self.charges)
        if self.objective is not None:
            stored.text("objective", self.objective)
        if self.prepared is not None:
            stored.whole("prepared", self.prepared.events, least=1)
            stored.ledger(self.prepared.ledger)
        check_stretch(proposal, state)

    def applied(self, state: AnyState) -> AnyState:
        history, proposal = state.history, self.proposal
        new = proposal.trial >= len(history.trials)
        before = NEW if new else history.trials[proposal.trial]
        # What a trial that was cut short has spent of its predicted cost still counts.
        same_stretch = not new and (before.status is Status.RUNNING or before.cut_short)
        trial = before.changed(
            status=Status.RUNNING, predicted_cost=proposal.predicted_cost, reason=proposal.reason, error=None,
            ended_by=None, kept_step=proposal.start_step, until_step=proposal.until_step,
            from_step=before.from_step if same_stretch else proposal.start_step,
            pending=self.pending, forgotten=False, ended=None, **(self._begun(state) if new else {}),
        )  # fmt: skip
        if self.objective is not None:
            state = state.changed(objective=Ran(self.objective, proposal.trial))
        grown = history.with_asked(trial, self.ask + 1, proposal.fits)
        known = not new and before.status is Status.RUNNING  # promised by a process that ended without a word
        cost = (proposal.predicted_cost or 0.0) - (before.predicted_cost or 0.0 if known else 0.0)
        return state.grown(grown, self.charges, cost, 0 if known else 1)

    def _begun(self, state: State | GrowingState) -> dict[str, Any]:
        """What a new trial keeps from its beginning."""
        config = dict(self.proposal.config)
        return {
            "number": self.proposal.trial, "config": config, "place": Place.of(state.space, config),
            "began": state.time, "start_up": self.charges.get("start-up", {}), "cold": _is_cold(state),
        }  # fmt: skip

    def seen(self, before: State, earlier: Iterable[Asked], prepared_from: State | None = None) -> State:
        """What this ask knew: the ledger as it was stored, and what was promised to its own earlier proposals; and the
        way in which it thought about it, and from what it was prepared."""
        ledger = Ledger(before.ledger.budget, **self.ledger)
        for other in earlier:
            if other.ask == self.ask:
                ledger = ledger.promised(other.proposal.predicted_cost or 0.0, 1)
        history = replace(before.history, asks=self.ask, way=self.way, prepared=self._seen_from(prepared_from))
        return replace(before, history=history, budgeted=ledger)

    def _seen_from(self, state: State | None) -> Seen | None:
        if self.prepared is None or state is None:
            return None
        return Seen(replace(state.history, way=self.way), Ledger(state.ledger.budget, **self.prepared.ledger))


@dataclass(frozen=True)
class Reported(Event):
    """A running trial is one step further. A step that is trained again adds nothing but its cost."""

    kind = "reported"

    trial: int
    report: Report
    charges: Charges = field(default_factory=dict)

    def body(self, encoding: Encoding) -> Json:
        report, turned = self.report, encoding.direction.turned
        return {
            "trial": self.trial,
            "value": turned(report.value),
            "cost": report.cost,
            "train_value": turned(report.train_value),
            "saved": report.saved,
            "attributes": report.attributes,
            "charges": self.charges,
        }

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        turned = encoding.direction.turned
        report = Report(
            turned(body["value"]), body["cost"], turned(body["train_value"]), body["saved"], body["attributes"]
        )  # fmt: skip
        return cls(body["trial"], report, body["charges"])

    def check(self, state: State | GrowingState) -> None:
        report = self.report
        stored.whole("trial", self.trial)
        stored.number("value", report.value)
        stored.amount("cost", report.cost)
        if report.train_value is not None:
            stored.number("train_value", report.train_value)
        stored.switch("saved", report.saved)
        stored.attributes(report.attributes)
        stored.charges(self.charges)

    def applied(self, state: AnyState) -> AnyState:
        trial, report = state.history.running_trial(self.trial), self.report
        step = trial.kept_step + 1
        new = step > len(trial.curve)
        further = trial.changed(
            curve=trial.curve.with_report(report) if new else trial.curve,
            value=least_of(trial.value, report.value if new else None), cost=sum_of(trial.cost, report.cost),
            attributes={**trial.attributes, **report.attributes}, kept_step=step, undecided=new,
            saved_step=step if report.saved else trial.saved_step,
        )  # fmt: skip
        return state.grown(state.history.with_trial(further), self.charges)


@dataclass(frozen=True)
class Moved(Event):
    """The policy moved the step at which a trial is to be paused. Its predicted cost follows in proportion."""

    kind = "moved"

    trial: int
    until_step: int

    def body(self, encoding: Encoding) -> Json:
        return {"trial": self.trial, "until_step": self.until_step}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["trial"], body["until_step"])

    def check(self, state: State | GrowingState) -> None:
        stored.whole("trial", self.trial, most=len(state.history.trials) - 1)
        trial = state.history.trials[self.trial]
        stored.whole("until_step", self.until_step, least=trial.kept_step + 1, most=stored.MOST_STEPS)
        if trial.status not in CAN_GO_ON:
            raise ValueError(f"trial {self.trial} is {trial.status.value}, and its stop was moved")

    def applied(self, state: AnyState) -> AnyState:
        before = state.history.trials[self.trial]
        cost = _in_proportion(before, self.until_step)
        trial = before.changed(until_step=self.until_step, predicted_cost=cost, undecided=False)
        promised = (cost or 0.0) - (before.predicted_cost or 0.0) if before.status is Status.RUNNING else 0.0
        return state.grown(state.history.with_trial(trial), {}, promised)


@dataclass(frozen=True)
class Dropped(Event):
    """A paused learner is not alive any more: it will go on from its checkpoint, or from the beginning."""

    kind = "dropped"

    trial: int
    kept_step: int = 0  # of the checkpoint

    def body(self, encoding: Encoding) -> Json:
        return {"trial": self.trial, "kept_step": self.kept_step}

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        return cls(body["trial"], body["kept_step"])

    def check(self, state: State | GrowingState) -> None:
        stored.whole("trial", self.trial, most=len(state.history.trials) - 1)
        trial = state.history.trials[self.trial]
        stored.whole("kept_step", self.kept_step, most=len(trial.curve))
        if trial.status not in CAN_GO_ON:
            raise ValueError(f"trial {self.trial} is {trial.status.value}, and was dropped")

    def applied(self, state: AnyState) -> AnyState:
        trial = state.history.trials[self.trial].changed(kept_step=self.kept_step, saved_step=self.kept_step)
        return state.changed(history=state.history.with_trial(trial))


@dataclass(frozen=True)
class Ended(Event):
    """A running trial ended, or was paused, and what it cost beyond its reports."""

    kind = "told"  # as files have called it from the beginning

    trial: int
    outcome: Outcome
    charges: Charges = field(default_factory=dict)
    forgotten: bool = False  # by the loop that had it: an interrupted trial that does not run again

    def body(self, encoding: Encoding) -> Json:
        outcome = self.outcome
        return {
            "trial": self.trial,
            "status": outcome.status.value,
            "ended_by": outcome.ended_by,
            "value": encoding.direction.turned(outcome.value),
            "cost": outcome.cost,
            "error": outcome.error,
            "attributes": outcome.attributes,
            "charges": self.charges,
            **({"forgotten": True} if self.forgotten else {}),
        }

    @classmethod
    def read(cls, body: Json, encoding: Encoding) -> Self:
        status, error = stored.member(Status, body["status"]), body["error"]
        if "ended_by" in body:
            ended_by: EndedBy | None = stored.member(EndedBy, body["ended_by"])
        else:
            ended_by = _ended_by_in_old_files(status, error)
        outcome = Outcome(
            status, encoding.direction.turned(body["value"]), body["cost"], error, body["attributes"], ended_by
        )  # fmt: skip
        return cls(body["trial"], outcome, body["charges"], body.get("forgotten", False))

    def check(self, state: State | GrowingState) -> None:
        outcome = self.outcome
        stored.switch("forgotten", self.forgotten)
        stored.whole("trial", self.trial)
        if outcome.status is Status.RUNNING:
            raise ValueError("a trial ended as running")
        if outcome.value is not None:
            stored.number("value", outcome.value)
        running = state.history.running_trial(self.trial)
        if outcome.status is Status.COMPLETE and outcome.value is None and not len(running.curve):
            raise ValueError("a trial is complete without a value")
        stored.amount("cost", outcome.cost)
        if outcome.error is not None:
            stored.text("error", outcome.error)
        stored.attributes(outcome.attributes)
        stored.charges(self.charges)

    def applied(self, state: AnyState) -> AnyState:
        history, outcome = state.history, self.outcome
        running = history.running_trial(self.trial)
        iterative, alive = len(running.curve) > 0, outcome.status is Status.PAUSED
        trial = running.changed(
            status=outcome.status, value=least_of(running.value, outcome.value),
            cost=sum_of(running.cost, outcome.cost) if iterative else outcome.cost, error=outcome.error,
            attributes={**running.attributes, **outcome.attributes}, ended_by=outcome.ended_by,
            kept_step=running.kept_step if alive else running.saved_step,
            counted=running.counted or outcome.status is not Status.INTERRUPTED,
            undecided=running.undecided and alive and outcome.ended_by in ENDS_OF_STUDY,
            pending=False, forgotten=self.forgotten, ended=state.time,
        )  # fmt: skip
        length = len(trial.curve) if iterative and trial.status is Status.COMPLETE else None
        grown = history.with_trial(trial)
        if history.max_steps is None and length is not None:
            grown = grown.changed(max_steps=length)
        return state.grown(grown, self.charges, -(running.predicted_cost or 0.0), -1)


def _in_proportion(trial: TrackedTrial, until_step: int) -> float | None:
    """The predicted cost of a trial's stretch if it ends at another step."""
    if trial.predicted_cost is None or trial.until_step is None or trial.until_step <= trial.from_step:
        return trial.predicted_cost
    return trial.predicted_cost * max(until_step - trial.from_step, 1) / (trial.until_step - trial.from_step)


def least_of(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _is_cold(state: State | GrowingState) -> bool:
    """Whether a new trial is one of the first that a process evaluates, and its cost is what a meter shows."""
    latest_first = reversed(state.history.trials)  # known results may be thousands, and have not been evaluated here
    ledger = None if any(map(_has_ended, latest_first)) else state.budgeted
    return ledger is not None and ledger.unit != TOLD


def _has_ended(trial: TrackedTrial) -> bool:
    return trial.status is not Status.RUNNING and not trial.added


def sum_of(a: float | None, b: float | None) -> float | None:
    """What is known of two costs together."""
    return a if b is None else (a or 0.0) + b


def _ended_by_in_old_files(status: Status, error: object) -> EndedBy | None:
    """Files of version 0.1 say it in words alone."""
    if status is Status.KILLED and error == "killed: the budget is spent":
        return EndedBy.BUDGET
    if status is Status.PAUSED and error:
        return EndedBy.TARGET if str(error).endswith("reached the value asked for by stop_at") else EndedBy.BUDGET
    return None
