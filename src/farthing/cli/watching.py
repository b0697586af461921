"""`farthing status --watch`: a study that runs, seen from another terminal.

Only what is new in the file is read. The picture is redrawn in its place on a terminal; anywhere else there is a line
for each change, of text or of JSON. It ends with the process that runs the study, and leaves the last picture.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from farthing.cli import formatting, run_note
from farthing.cli.picture import Picture, drawn, picture_of, signs_for, trials_text
from farthing.cli.streams import show
from farthing.record.reader import StudyFile, read_study
from farthing.runner.outlet import is_terminal
from farthing.text.escaping import on_one_line

ENDS = "Ctrl-C ends this view, not the study"


def watch(path: str, interval: float, as_json: bool) -> None:
    """Show a study until nobody runs it any more."""
    stored = read_study(path)
    with _view(as_json) as view:
        view.show(stored)
        while stored.runner is not None:
            time.sleep(interval)
            stored.refresh()
            view.show(stored)


def status_json(stored: StudyFile) -> dict[str, Any]:
    """The state of a study, for programs."""
    settings, trials = stored.record.settings, stored.record.history.trials
    return {
        "runner": stored.runner, "policy": settings.policy.get("name"), "seed": settings.seed,
        "maximize": settings.maximize, "trials": formatting.counts(trials),
        "last_error": formatting.last_error_json(trials),
        "ended": stored.why_ended,
        "best": formatting.best_json(stored.best) if stored.best_value is not None else None,
        "ledger": formatting.ledger_json(stored.ledger),
        "run": stored.notes.get(run_note.NAME),
    }  # fmt: skip


class View(Protocol):
    """Shows a study again and again."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, stored: StudyFile) -> None: ...


def _view(as_json: bool) -> View:
    if as_json:
        return Lines(lambda stored: formatting.as_json_line(status_json(stored)))
    if not is_terminal(sys.stdout):
        return Lines(_line)
    from rich.console import Console

    console = Console(file=sys.stdout)
    return Lines(_line) if console.is_dumb_terminal else Redrawn(console)


def _line(stored: StudyFile) -> str:
    best = "none yet" if stored.best_value is None else f"{stored.best_value:.6g}"
    ended = f"; ended: {stored.why_ended}" if stored.why_ended else "" if stored.runner else "; not running"
    used = f"{stored.ledger.fraction:.0%} of {stored.ledger.budget} used"
    return on_one_line(f"trials {trials_text(stored)}; best {best}; {used}{ended}")


class Lines:
    """A line for each change."""

    def __init__(self, text_of: Callable[[StudyFile], str]) -> None:
        self._text_of, self._shown = text_of, ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def show(self, stored: StudyFile) -> None:
        text = self._text_of(stored)
        if text != self._shown:
            show(text)
            self._shown = text


class Redrawn:
    """A picture that is redrawn in its place."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live

        self._console, self._signs = console, signs_for(sys.stdout.encoding)
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._seen: tuple[object, str | None] = (None, None)
        self._picture: Picture | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def show(self, stored: StudyFile) -> None:
        state, runner = stored.record.state, stored.runner
        if self._picture is None or state is not self._seen[0] or runner != self._seen[1]:
            self._picture, self._seen = picture_of(stored), (state, runner)
        text = drawn(self._picture, self._console.width, time.time(), self._signs)
        if stored.runner is not None:
            text.append(f"\n{time.strftime('%H:%M:%S')}    {ENDS}", style="bright_black")
        self._live.update(text, refresh=True)
