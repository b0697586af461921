"""How a run shows itself: a live line on a terminal, plain lines elsewhere, or nothing.

All output goes through an `Outlet`: whatever becomes of standard error, the run goes on.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TextIO

from farthing.budget import amount_text
from farthing.escaping import on_one_line
from farthing.plain import counted, error_kind, headline, shown
from farthing.policies.outlook import outlook_in_time
from farthing.runner.outlet import Outlet, is_terminal
from farthing.session import Session
from farthing.trial import Proposal, Status, Trial

if TYPE_CHECKING:
    from rich.text import Text

logger = logging.getLogger("farthing")

SHOWN_ANYWAY = {"shown_anyway": True}  # of a log record: the progress display says it too
REFRESH_PER_SECOND = 8
BAR_WIDTH = 24


class Progress(Protocol):
    """Hears of every trial that begins, of its steps, and of its end or pause."""

    is_shown: ClassVar[bool]

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def trial_began(self, proposal: Proposal) -> None: ...
    def stepped(self) -> None: ...
    def trial_ended(self, trial: Trial) -> None: ...
    def run_ended(self, why: str) -> None: ...
    def message(self, text: str) -> None: ...


def progress_for(session: Session, wanted: bool | None, stream: TextIO | None = None) -> Progress:
    """Silent for False or without standard error; else live on a terminal and plain lines elsewhere, both there."""
    stream = stream or sys.stderr
    if wanted is False or stream is None:
        return Silent()
    if is_terminal(stream):
        return Live(session, stream)
    return Lines(session, stream)


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

    def trial_ended(self, trial: Trial) -> None:
        pass

    def run_ended(self, why: str) -> None:
        pass

    def message(self, text: str) -> None:
        pass


class Lines(Silent):
    """One plain line for each trial that ends or is paused."""

    is_shown = True

    def __init__(self, session: Session, stream: TextIO) -> None:
        self._session, self._outlet = session, Outlet(stream)

    def __exit__(self, *exception: object) -> None:
        self._outlet.close()

    def trial_ended(self, trial: Trial) -> None:
        cost = "" if trial.cost is None else f", cost {amount_text(self._session.ledger.unit, trial.cost)}"
        cost = cost.removesuffix(" cost")  # the unit of one's own
        self.message(f"trial {trial.number}: {how_it_ended(trial)}{cost}; {summary(self._session)}")

    def run_ended(self, why: str) -> None:
        self.message(f"ended: {on_one_line(why)}")

    def message(self, text: str) -> None:
        self._outlet.write(text + "\n")


class Live(Silent):
    """A line that is redrawn while trials run."""

    is_shown = True

    def __init__(self, session: Session, stream: TextIO) -> None:
        self._session, self._outlet = session, Outlet(stream, says_dropped=False)
        self._running: dict[int, tuple[Proposal, float]] = {}  # and since when; a thread copies it before it looks
        self._entry = time.perf_counter()  # of the ledger's last entry
        self._errors: Counter[str] = Counter()  # by their kind
        self._last_error = self._why_ended = ""
        self._live: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live as RichLive

        console = Console(file=self._outlet)  # type: ignore[arg-type]  # it needs no more than that
        self._live = RichLive(
            get_renderable=self._line,
            console=console,
            refresh_per_second=REFRESH_PER_SECOND,
            redirect_stdout=is_terminal(sys.stdout),  # print above the line on a terminal, but never out of a file
        )
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._running = {}
        with suppress(Exception):  # drawing for the last time is no reason to end with an error
            self._live.stop()
        self._outlet.close()

    def trial_began(self, proposal: Proposal) -> None:
        self._entry = time.perf_counter()
        self._running[proposal.trial] = (proposal, self._entry)

    def stepped(self) -> None:
        self._entry = time.perf_counter()

    def trial_ended(self, trial: Trial) -> None:
        self._entry = time.perf_counter()
        self._running.pop(trial.number, None)
        if trial.unsuccessful:
            self._failed(trial)

    def _failed(self, trial: Trial) -> None:
        """Each new kind of error is shown above the line, once; the last error and its count are on the line."""
        kind = error_kind(trial.error or "")
        self._errors[kind] += 1
        self._last_error = error_text(trial) + (f" ({self._errors[kind]} times)" if self._errors[kind] > 1 else "")
        if self._errors[kind] == 1:
            self.message(f"trial {trial.number} {error_text(trial)}")

    def run_ended(self, why: str) -> None:
        self._why_ended = why

    def message(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _line(self) -> Text:
        from rich.text import Text

        used = self._fraction_now()
        filled = round(used * BAR_WIDTH)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("━" * filled, style="green").append("━" * (BAR_WIDTH - filled), style="bright_black")
        line.append(f" {used:>4.0%} of {self._session.ledger.budget}  {summary(self._session, fraction=False)}")
        running = list(self._running.copy().values())
        if running:
            proposal, since = running[0]
            text = running_text(proposal, time.perf_counter() - since, self._session)
            line.append(f"  {text if len(running) == 1 else f'{len(running)} trials running'}", style="cyan")
        if self._why_ended:
            line.append(f"  ended: {on_one_line(self._why_ended)}", style="cyan")
        if self._last_error:
            line.append(f"  last {self._last_error}", style="red")
        return line

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


def say_why_ended(session: Session, progress: Progress) -> None:
    """At the end of a run: why, and after an interruption also what was found and how to go on."""
    if not session.interrupted:
        logger.info("ended: %s", session.why_ended)
        progress.run_ended(session.why_ended)
        return
    text = f"interrupted after {counted(session.results.count(), 'trial')}{_best_text(session)}"
    text += f"; Study.resume({session.storage!r}) goes on" if session.storage else ""
    logger.warning(text, extra=SHOWN_ANYWAY)
    progress.message(on_one_line(text))


def say_outlook(session: Session, progress: Progress) -> None:
    """What more budget is expected to bring, where somebody looks and it is found out in a moment; not charged."""
    if session.interrupted or not progress.is_shown:
        return
    if outlook := outlook_in_time(session.record, session.policy):
        progress.message(str(outlook))


def _best_text(session: Session) -> str:
    if session.results.best_value is None:
        return ""
    best = session.results.best
    return f"; the best is trial {best.number}, value {best.value:.6g}, {shown(best.config)}"
