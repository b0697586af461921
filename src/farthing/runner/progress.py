"""How a run shows itself: a live line on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from farthing.budget import amount_text
from farthing.errors import NoTrial
from farthing.study import Study
from farthing.trial import Proposal, Status, Trial

if TYPE_CHECKING:
    from rich.text import Text

REFRESH_PER_SECOND = 8
BAR_WIDTH = 24


class Progress(Protocol):
    """Told of every trial that begins, of its steps, and when it ends or is paused."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def asked(self, proposal: Proposal) -> None: ...
    def stepped(self) -> None: ...
    def told(self, trial: Trial) -> None: ...
    def ended(self, message: str) -> None: ...


def progress_for(study: Study, wanted: bool | None, stream: TextIO | None = None) -> Progress:
    """Silent for False; else live on a terminal and plain lines elsewhere, both to standard error."""
    stream = stream or sys.stderr
    if wanted is False:
        return Silent()
    if stream.isatty():
        return Live(study, stream)
    return Lines(study, stream)


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def asked(self, proposal: Proposal) -> None:
        pass

    def stepped(self) -> None:
        pass

    def told(self, trial: Trial) -> None:
        pass

    def ended(self, message: str) -> None:
        pass


class Lines(Silent):
    """One plain line for each trial that ends or is paused."""

    def __init__(self, study: Study, stream: TextIO) -> None:
        self._study, self._stream = study, stream

    def told(self, trial: Trial) -> None:
        unit = self._study.ledger.unit
        cost = "" if trial.cost is None else f", cost {amount_text(unit, trial.cost)}"
        line = f"trial {trial.number}: {how_it_ended(trial)}{cost}; {summary(self._study)}"
        self._stream.write(line + "\n")
        self._stream.flush()

    def ended(self, message: str) -> None:
        self._stream.write(message + "\n")
        self._stream.flush()


class Live(Silent):
    """A line that is redrawn while trials run."""

    def __init__(self, study: Study, stream: TextIO) -> None:
        self._study, self._stream = study, stream
        self._running: dict[int, tuple[Proposal, float]] = {}  # and since when
        self._entry = time.perf_counter()  # of the ledger's last entry
        self._live: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live as RichLive

        console = Console(file=self._stream)
        self._live = RichLive(
            get_renderable=self._line,
            console=console,
            refresh_per_second=REFRESH_PER_SECOND,
            redirect_stdout=sys.stdout.isatty(),  # print above the line on a terminal, but never out of a file
        )
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._running = {}
        self._live.stop()

    def asked(self, proposal: Proposal) -> None:
        self._entry = time.perf_counter()
        self._running = {**self._running, proposal.trial: (proposal, self._entry)}

    def stepped(self) -> None:
        self._entry = time.perf_counter()

    def told(self, trial: Trial) -> None:
        self._entry = time.perf_counter()
        self._running = {number: facts for number, facts in self._running.items() if number != trial.number}

    def ended(self, message: str) -> None:
        self._live.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _line(self) -> Text:
        from rich.text import Text

        used = self._fraction_now()
        filled = round(used * BAR_WIDTH)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("━" * filled, style="green").append("━" * (BAR_WIDTH - filled), style="bright_black")
        line.append(f" {used:>4.0%} of {self._study.ledger.budget}  {summary(self._study, fraction=False)}")
        running = list(self._running.values())
        if running:
            proposal, since = running[0]
            text = running_text(proposal, time.perf_counter() - since, self._study)
            line.append(f"  {text if len(running) == 1 else f'{len(running)} trials running'}", style="cyan")
        return line

    def _fraction_now(self) -> float:
        """The ledger's fraction, moved on by the time since its last entry where seconds are limited."""
        ledger = self._study.ledger
        limit = ledger.budget.limits.get("seconds")
        if limit is None:
            return ledger.fraction
        return min(max(ledger.fraction, (ledger.total("seconds") + time.perf_counter() - self._entry) / limit), 1.0)


def summary(study: Study, *, fraction: bool = True) -> str:
    """Best value, how many trials are done, paused, stopped, failed and killed, and how much of the budget is used."""
    others = {status: study.count(status) for status in (Status.PAUSED, Status.STOPPED, Status.FAILED, Status.KILLED)}
    counts = "".join(f", {count} {status.value}" for status, count in others.items() if count)
    try:
        best = f"{study.best.value:.6g}"
    except NoTrial:
        best = "none yet"
    used = f", {study.ledger.fraction:.0%} of {study.ledger.budget} used" if fraction else ""
    return f"best {best}, {study.count(Status.COMPLETE)} done{counts}{used}"


def how_it_ended(trial: Trial) -> str:
    """Its value, or what stands in its way; where it rests."""
    if trial.status is Status.FAILED or trial.value is None:
        return f"{trial.status.value}: {_last_line(trial)}"
    rests = f"{trial.status.value} after step {len(trial.curve)}, " if trial.status is not Status.COMPLETE else ""
    return f"{rests}value {trial.value:.6g}"


def running_text(proposal: Proposal, seconds: float, study: Study) -> str:
    """The running trial: how long it has taken, and what it was predicted to cost."""
    text = f"trial {proposal.trial} running {amount_text('seconds', seconds)}"
    if proposal.predicted_cost is None:
        return text
    return f"{text}, predicted {amount_text(study.ledger.unit, proposal.predicted_cost)}"


def _last_line(trial: Trial) -> str:
    return (trial.error or "").strip().splitlines()[-1] if trial.error else ""
