"""How a run shows itself: a live line on a terminal, a bar in a notebook, plain lines elsewhere, or nothing.

All output to a stream goes through an `Outlet`: whatever becomes of standard error, the run goes on.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self, TextIO

from farthing.budget import amount_text
from farthing.policies.outlook import outlook_in_time
from farthing.runner.closing import as_text, closing_rows, then_in_python
from farthing.runner.displays import Following, Progress, Silent, how_it_ended, summary
from farthing.runner.notebook import Notebook, is_notebook
from farthing.runner.outlet import Outlet, is_terminal
from farthing.session import Session
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted, shown
from farthing.trial import Trial

if TYPE_CHECKING:
    from rich.text import Text

logger = logging.getLogger("farthing")

SHOWN_ANYWAY = {"shown_anyway": True}  # of a log record: the progress display says it too
REFRESH_PER_SECOND = 8
BAR_WIDTH = 24


def progress_for(session: Session, wanted: bool | None, stream: TextIO | None = None) -> Progress:
    """Silent for False or without standard error; else a bar in a notebook, live on a terminal and plain lines
    elsewhere."""
    if wanted is not False and stream is None and is_notebook():
        return Notebook(session)
    stream = stream or sys.stderr
    if wanted is False or stream is None:
        return Silent()
    return Live(session, stream) if is_terminal(stream) else Lines(session, stream)


class Lines(Silent):
    """One plain line for each trial that ends or is paused."""

    is_shown: ClassVar[bool] = True

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

    def interrupted(self, text: str) -> None:
        self.message(text)

    def message(self, text: str) -> None:
        self._outlet.write(text + "\n")

    def end(self, outlook: str) -> None:
        if outlook:
            self.message(outlook)


class Live(Following):
    """A line that is redrawn while trials run; at the end a summary takes its place."""

    def __init__(self, session: Session, stream: TextIO) -> None:
        super().__init__(session)
        self._outlet = Outlet(stream, says_dropped=False)
        self._closing = ""
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
            self._live.transient = bool(self._closing) or not self._session.shows_end
            self._live.stop()
        if self._closing:
            self._outlet.write(f"{self._closing}\n")
        self._outlet.close()

    def message(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def end(self, outlook: str) -> None:
        rows = closing_rows(self._session, outlook, then_in_python(self._session))
        self._closing = as_text(rows, self._live.console.width)

    def _line(self) -> Text:
        from rich.text import Text

        used = self._fraction_now()
        filled = round(used * BAR_WIDTH)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("━" * filled, style="green").append("━" * (BAR_WIDTH - filled), style="bright_black")
        line.append(f" {used:>4.0%} of {self._session.ledger.budget}  {summary(self._session, fraction=False)}")
        if doing := self._doing:
            line.append(f"  {doing}", style="cyan")
        if self._why_ended:
            line.append(f"  ended: {on_one_line(self._why_ended)}", style="cyan")
        if self._last_error:
            line.append(f"  last {self._last_error}", style="red")
        return line


def say_why_ended(session: Session, progress: Progress) -> None:
    """At the end of a run: why, and after an interruption also what was found and how to go on."""
    if not session.interrupted:
        logger.info("ended: %s", session.why_ended)
        progress.run_ended(session.why_ended)
        return
    text = f"interrupted after {counted(session.results.count(), 'trial')}{_best_text(session)}"
    text += f"; Study.resume({session.storage!r}) goes on" if session.storage else ""
    logger.warning(text, extra=SHOWN_ANYWAY)
    progress.interrupted(on_one_line(text))


def say_end(session: Session, progress: Progress) -> None:
    """What was found and what more budget is expected to bring, where somebody looks and it is found out in a moment;
    not charged. Nobody waits for it after Ctrl-C."""
    if progress.is_shown and session.shows_end:
        outlook = None if session.interrupted else outlook_in_time(session.record, session.policy)
        progress.end(str(outlook or ""))


def _best_text(session: Session) -> str:
    if session.results.best_value is None:
        return ""
    best = session.results.best
    return f"; the best is trial {best.number}, value {best.value:.6g}, {shown(best.config)}"
