"""The end of a run on a terminal: a short summary of what was found, where the budget went, and what to do next."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from farthing.budget import Ledger, amount_text
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted, headline, shown
from farthing.trial import Status, Trial

if TYPE_CHECKING:
    from farthing.session import Session

MOST_PARAMETERS = 12  # that are listed
LONGEST_NAME = 30  # characters of a parameter
LONGEST = 200  # characters of a value or an error
NARROWEST = 20  # characters beside what a line begins with

Rows = list[tuple[str, str]]  # what each line begins with, and the rest of it


def closing_rows(session: Session, outlook: str, then: str, text_of: Callable[[Any], str] = shown) -> Rows:
    """What a run has come to, a row for each answer.

    text_of  how a value of a configuration is written
    """
    results, counts = session.results, session.history.trials.counts
    best = None if results.best_value is None else results.best
    found = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts.get(status))
    rows = [("best", "none: no trial has succeeded" if best is None else best_line(best, session.ledger.unit))]
    config = [] if best is None else _config(best.config, text_of)
    rows = [(f"{name:<11} ", text) for name, text in rows] + config
    more = {
        "trials": f"{results.count()}{f': {found}' if found else ''}",
        "last error": _last_error(session),
        "spent": spent_text(session.ledger),
        "ended": session.why_ended,
        "outlook": outlook,
        "next": then,
    }
    return rows + [(f"{name:<11} ", text) for name, text in more.items() if text]


def as_text(rows: Rows, width: int) -> str:
    """The rows, wrapped to the width of a terminal; what a stranger has named is on its own line.

    >>> print(as_text([("spent  ", "1s of 2s in all, of which 1s is the trials")], 30))
    spent  1s of 2s in all, of
           which 1s is the trials
    """
    lines: list[str] = []
    for beginning, text in rows:
        first, room = on_one_line(beginning), max(width - 1, len(beginning) + NARROWEST)
        lines += textwrap.wrap(
            on_one_line(text), room, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
        ) or [first]
    return "\n".join(lines)


def spent_text(ledger: Ledger) -> str:
    """How much of the budget was used, and where it went, on one line.

    >>> from farthing.budget import Budget
    >>> spent_text(Ledger(Budget(cost=10), {"evaluation": {"cost": 4.0}, "failed": {"cost": 1.0}}))
    '50% of 10 cost: evaluation 4 cost, failed 1 cost'
    """
    where = ", ".join(f"{name} {amount_text(ledger.unit, amount)}" for name, amount in ledger.spent_on.items())
    if not any(map(math.isfinite, ledger.budget.limits.values())):  # as when one trial is finished
        return where
    return f"{ledger.fraction:.0%} of {ledger.budget}{f': {where}' if where else ''}"


def then_in_python(session: Session) -> str:
    """What somebody who called `tune` or `run` may do next."""
    if session.storage is None:
        return 'storage="study.db" would keep the study, for `farthing report` and Study.resume'
    more = ", budget=..." if session.ended is not None else ""
    again = f"Study.resume({session.storage!r}{more}) continues it"
    return again if session.interrupted else f"farthing report {shlex.quote(session.storage)}; {again}"


def best_line(trial: Trial, unit: str) -> str:
    """The best value, and the trial that has it."""
    steps = f", {counted(len(trial.curve), 'step')}" if len(trial.curve) else ""
    cost = "" if trial.cost is None else f", cost {amount_text(unit, trial.cost)}"
    return f"{trial.value:.6g}  (trial {trial.number}{steps}{cost})"


def _config(config: dict[str, Any], text_of: Callable[[Any], str]) -> Rows:
    listed = [(on_one_line(name[:LONGEST_NAME]), text_of(value)) for name, value in config.items()][:MOST_PARAMETERS]
    width = max((len(name) for name, _ in listed), default=0)
    rows = [(f"  {name:<{width}}  ", text[:LONGEST]) for name, text in listed]
    left = len(config) - len(listed)
    return [*rows, ("  ", f"... and {left} more")] if left else rows


def _last_error(session: Session) -> str:
    if not session.results.count(Status.FAILED, Status.KILLED):
        return ""
    last = next((trial for trial in reversed(session.history.trials) if trial.unsuccessful and trial.error), None)
    return "" if last is None else f"trial {last.number}: {headline(last.error or '')}"[:LONGEST]
