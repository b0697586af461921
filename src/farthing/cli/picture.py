"""A picture of a study in a terminal: `farthing status --watch` draws it again and again.

What is seen is a value, taken from the file when that has changed; drawing it needs only the width and the time. Names,
options, errors and the name of the runner may be a stranger's: each is shown on its line, without control codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.budget import Ledger, amount_text
from farthing.cli import formatting
from farthing.errors import NoTrial
from farthing.policies.value_cost import bought
from farthing.record.reader import StudyFile
from farthing.runner.closing import best_line
from farthing.text.cards import COLOUR_OF
from farthing.text.escaping import on_one_line
from farthing.text.plain import headline
from farthing.trial import Status, Trial

if TYPE_CHECKING:
    from rich.text import Text

BEGINNING = 12  # characters of what a line begins with, as in `farthing status`
NARROWEST, WIDEST = 20, 100  # characters of a line or a bar
ROWS = 3  # of the line of values
MOST_RUNNING = 5  # trials that are listed
LONGEST = 300  # characters of one text
GREY = "bright_black"


@dataclass(frozen=True)
class Signs:
    """What lines and bars are drawn with: `levels` from nothing to full."""

    levels: str
    mark: str
    ellipsis: bool


BLOCKS, ASCII = Signs(" ▁▂▃▄▅▆▇█", "■", True), Signs(" .:#", "", False)


def signs_for(encoding: str | None) -> Signs:
    """Blocks, or letters where a terminal has no blocks."""
    try:
        f"{BLOCKS.levels}{BLOCKS.mark}…━".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


@dataclass(frozen=True)
class Picture:
    """What is to be seen of a study: texts by the name of their line, and what is drawn."""

    study: str
    search: str
    best: str
    config: str
    trials: str
    ended: str
    error: str
    ledger: Ledger
    running: tuple[Trial, ...]
    points: tuple[tuple[float, float], ...]  # (total cost, best value), in the user's own sign


def picture_of(stored: StudyFile) -> Picture:
    """As the file has it now."""
    settings, history = stored.record.settings, stored.record.history
    best = None if stored.best_value is None else stored.best
    aim = "maximise" if settings.maximize else "minimise"
    return Picture(
        study=f"{stored.path}, {f'run by {stored.runner}' if stored.runner else 'not running'}",
        search=f"{aim}, policy {settings.policy.get('name')}, seed {settings.seed}",
        best="none yet" if best is None else best_line(best, stored.ledger.unit),
        config="" if best is None else formatting.config_text(best.config, LONGEST),
        trials=trials_text(stored),
        ended=stored.why_ended,
        error=_last_error(history.trials) if stored.count(Status.FAILED, Status.KILLED) else "",
        ledger=stored.ledger,
        running=tuple(history.running),
        points=tuple(_points(stored)),
    )


def trials_text(stored: StudyFile) -> str:
    """How many trials there are, in all and by status."""
    kinds = ", ".join(f"{count} {status}" for status in Status if (count := stored.count(status)))
    return f"{stored.count()}{f': {kinds}' if kinds else ''}"


def _last_error(trials: Sequence[Trial]) -> str:
    last = next((trial for trial in reversed(trials) if trial.unsuccessful and trial.error), None)
    return "" if last is None else f"trial {last.number}: {headline(last.error or '')}"[:LONGEST]


def _points(stored: StudyFile) -> Iterable[tuple[float, float]]:
    turned = stored.record.direction.turned
    try:
        return [(point.cost, turned(point.value)) for point in bought(stored.record.history.trials)]
    except NoTrial:  # costs are not known
        return []


def drawn(picture: Picture, width: int, now: float, signs: Signs = BLOCKS) -> Text:
    """The picture as wide as a terminal; `now` is in seconds since 1970."""
    room = min(max(width - BEGINNING - 1, NARROWEST), WIDEST)
    lines = [
        _line("study", picture.study), _line("search", picture.search), _line("best", picture.best, "bold green"),
        _line("", picture.config),
        *_values(picture, room, signs),
        _bar(picture.ledger, room, signs), *_legend(picture.ledger, room, signs),
        _line("trials", picture.trials),
        *_running(picture, now),
        _line("last error", picture.error, "red"), _line("ended", picture.ended, "cyan"),
    ]  # fmt: skip
    from rich.text import Text

    held = Text("\n", no_wrap=True, overflow="ellipsis" if signs.ellipsis else "crop", end="")
    return held.join([line for line in lines if len(line) > BEGINNING])


def _line(name: str, text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(f"{name:<{BEGINNING}}").append(on_one_line(text), style=style)


def _values(picture: Picture, room: int, signs: Signs) -> list[Text]:
    rows = staircase(picture.points, room, ROWS, signs.levels)
    if not rows:
        return []
    (_, first), (cost, last) = picture.points[0], picture.points[-1]
    about = f"from {first:.4g} to {last:.4g} over {amount_text(picture.ledger.unit, cost)} of trials"
    names = ["over cost", *[""] * ROWS]
    return [*(_line(name, row, "green") for name, row in zip(names, rows, strict=False)), _line("", about, GREY)]


def staircase(points: Sequence[tuple[float, float]], width: int, rows: int, levels: str) -> list[str]:
    """The best value over the total cost as `rows` of text, the largest value on top; none where nothing changes.

    levels  signs from nothing to a full one

    >>> staircase([(1, 4.0), (2, 1.0), (4, 0.0)], 8, 2, " .#")
    [' ##', ' ######.']
    """
    low, high = (end((value for _, value in points), default=0.0) for end in (min, max))
    if not low < high or not points[-1][0] > 0.0:
        return []
    steps = len(levels) - 1
    cost, value = np.array([point[0] for point in points]), np.array([point[1] for point in points])
    at = points[-1][0] * (np.arange(width) + 1) / width  # the cost at the end of each column
    known = np.searchsorted(cost, at, side="right") - 1  # the last point that is not beyond it; -1 before the first
    share = (value[known] / 2 - low / 2) / (high / 2 - low / 2)  # the difference itself may be beyond all numbers
    heights = np.where(known < 0, 0, 1 + np.round(share * (rows * steps - 1)).astype(int))
    return [
        "".join(levels[fill] for fill in np.clip(heights - row * steps, 0, steps).tolist()).rstrip()
        for row in reversed(range(rows))
    ]


def _bar(ledger: Ledger, room: int, signs: Signs) -> Text:
    """The used part of the budget, divided among accounts; in letters where there are no blocks."""
    used = f"  {ledger.fraction:.0%} of {ledger.budget} used"
    width = max(room - len(used), NARROWEST // 2)
    line, begun, share = _line("budget", ""), 0, 0.0
    for name, part in ledger.shares.items():
        share += part
        count = round(share * width) - begun
        line.append(("━" if signs.ellipsis else name[0]) * count, style=COLOUR_OF.get(name, GREY))
        begun += count
    return line.append(("━" if signs.ellipsis else ".") * (width - begun), style=GREY).append(on_one_line(used))


def _legend(ledger: Ledger, room: int, signs: Signs) -> list[Text]:
    """The accounts and what they hold, on as many lines as that takes."""
    lines = [_line("", "")]
    for name, amount in ledger.spent_on.items():
        text = f"{name} {amount_text(ledger.unit, amount)}"
        if len(lines[-1]) > BEGINNING and len(lines[-1]) + len(signs.mark) + len(text) > BEGINNING + room:
            lines.append(_line("", ""))
        lines[-1].append(signs.mark and f"{signs.mark} ", style=COLOUR_OF.get(name, GREY)).append(f"{text}  ")
    return lines


def _running(picture: Picture, now: float) -> list[Text]:
    lines = [_line("running", _running_text(trial, picture.ledger.unit, now)) for trial in picture.running]
    left = len(lines) - MOST_RUNNING
    return [*lines[:MOST_RUNNING], _line("", f"... and {left} more")] if left > 0 else lines


def _running_text(trial: Trial, unit: str, now: float) -> str:
    """How far it is, or how long it has been running, and what it was expected to cost."""
    parts = [f"trial {trial.number}"]
    if len(trial.curve):
        parts.append(f"step {len(trial.curve)}")
    elif trial.began is not None and now >= trial.began:
        parts.append(amount_text("seconds", round(now - trial.began, 1)))
    if trial.predicted_cost is not None:
        parts.append(f"predicted {amount_text(unit, trial.predicted_cost)}")
    return f"{', '.join(parts)}  {formatting.config_text(trial.config, LONGEST)}"
