"""What every display of a run can do, what it knows of the run, and how it says it."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import ClassVar, Protocol, Self

from farthing.budget import amount_text
from farthing.session import Session
from farthing.text.escaping import on_one_line
from farthing.text.plain import error_kind, headline
from farthing.trial import Proposal, Status, Trial


class Progress(Protocol):
    """Hears of every trial that begins, of its steps, and of its end or pause; then of the end of the run, and of what
    more budget is expected to bring, "" where that is not known."""

    is_shown: ClassVar[bool]

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def trial_began(self, proposal: Proposal) -> None: ...
    def stepped(self) -> None: ...
    def rested(self) -> None: ...
    def trial_ended(self, trial: Trial) -> None: ...
    def run_ended(self, why: str) -> None: ...
    def interrupted(self, text: str) -> None: ...
    def message(self, text: str) -> None: ...
    def end(self, outlook: str) -> None: ...


class Silent:
    """Shows nothing."""

    is_shown: ClassVar[bool] = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def trial_began(self, proposal: Proposal) -> None:
        pass

    def stepped(self) -> None:
        pass

    def rested(self) -> None:
        """No time has passed for the study, which is paused."""

    def trial_ended(self, trial: Trial) -> None:
        pass

    def run_ended(self, why: str) -> None:
        pass

    def interrupted(self, text: str) -> None:
        pass

    def message(self, text: str) -> None:
        pass

    def end(self, outlook: str) -> None:
        pass


class Following(Silent):
    """Follows a run for a display that is drawn anew from time to time, by a thread."""

    is_shown = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: dict[int, tuple[Proposal, float]] = {}  # and since when; a thread copies it before it looks
        self._entry = time.perf_counter()  # of the ledger's last entry
        self._errors: Counter[str] = Counter()  # by their kind
        self._last_error = self._why_ended = ""

    def trial_began(self, proposal: Proposal) -> None:
        self._entry = time.perf_counter()
        self._running[proposal.trial] = (proposal, self._entry)

    def stepped(self) -> None:
        self._entry = time.perf_counter()

    def rested(self) -> None:
        self._entry = time.perf_counter()

    def trial_ended(self, trial: Trial) -> None:
        self._entry = time.perf_counter()
        self._running.pop(trial.number, None)
        if trial.unsuccessful:
            self._failed(trial)

    def _failed(self, trial: Trial) -> None:
        """Each new kind of error is a message, once; the last error and its count are always shown."""
        kind = error_kind(trial.error or "")
        self._errors[kind] += 1
        self._last_error = error_text(trial) + (f" ({self._errors[kind]} times)" if self._errors[kind] > 1 else "")
        if self._errors[kind] == 1:
            self.message(f"trial {trial.number} {error_text(trial)}")

    def run_ended(self, why: str) -> None:
        self._why_ended = why

    @property
    def _doing(self) -> str:
        """What is running, and whether nothing more begins."""
        running = [
            running_text(proposal, time.perf_counter() - since, self._session)
            for proposal, since in list(self._running.copy().values())
        ]
        doing = running if len(running) < 2 else [f"{len(running)} trials running"]
        paused = ["paused"] if self._session.is_paused and not self._why_ended else []
        return ", ".join(doing + paused)

    def _fraction_now(self) -> float:
        """The ledger's fraction, moved on by the time since its last entry where seconds are limited."""
        ledger = self._session.ledger
        limit = ledger.budget.limits.get("seconds")
        if limit is None:
            return ledger.fraction
        return min(max(ledger.fraction, (ledger.total("seconds") + time.perf_counter() - self._entry) / limit), 1.0)


def summary(session: Session, *, fraction: bool = True) -> str:
    """Best value, how many trials are done, paused, stopped, failed and killed, and how much of the budget is used."""
    results = session.results
    others = {status: results.count(status) for status in (Status.PAUSED, Status.STOPPED, Status.FAILED, Status.KILLED)}
    counts = "".join(f", {count} {status.value}" for status, count in others.items() if count)
    best = "none yet" if results.best_value is None else f"{results.best_value:.6g}"
    used = f", {session.ledger.fraction:.0%} of {session.ledger.budget} used" if fraction else ""
    return f"best {best}, {results.count(Status.COMPLETE)} done{counts}{used}"


def how_it_ended(trial: Trial) -> str:
    """Its value or its error, and the step at which it was paused or stopped."""
    if trial.status is Status.FAILED or trial.value is None:
        return error_text(trial)
    rests = f"{trial.status.value} after step {len(trial.curve)}, " if trial.status is not Status.COMPLETE else ""
    return f"{rests}value {trial.value:.6g}"


def running_text(proposal: Proposal, seconds: float, session: Session) -> str:
    """The running trial: how long it has taken, and what it was predicted to cost."""
    text = f"trial {proposal.trial} running {amount_text('seconds', seconds)}"
    if proposal.predicted_cost is None:
        return text
    return f"{text}, predicted {amount_text(session.ledger.unit, proposal.predicted_cost)}"


def error_text(trial: Trial) -> str:
    """How a trial without a value ended, and its error on one line.

    >>> error_text(Trial(0, {}, Status.FAILED, error="ValueError: no"))
    'failed: ValueError: no'
    >>> error_text(Trial(0, {}, Status.KILLED, error="killed: the budget is spent"))
    'killed: the budget is spent'
    """
    line, status = on_one_line(headline(trial.error or "")), trial.status.value
    return line if line.startswith(status) else f"{status}: {line}"
