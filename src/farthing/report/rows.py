"""The table of trials, as a page shows it: columns, and the rows of one page of it in the order asked for.

A cell is a number, a short text or None; what a cell cuts, and what has no column, is in the details of its row. All
text is plain text: whoever shows it must not read tags in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from itertools import islice
from operator import itemgetter
from typing import Any

from farthing import checks
from farthing.history.history import TrackedTrial
from farthing.report.drawing import cut, listed
from farthing.session import Session
from farthing.text.escaping import in_json, on_lines
from farthing.text.plain import LONGEST_WHOLE, cut_text, headline, plain
from farthing.trial import Trial

LONGEST_CELL = 80  # characters
LONGEST_DETAIL = 4_000
MOST_PARAMETERS = 30  # that have a column
MOST_ATTRIBUTES = 20  # in the details of a trial
LARGEST_NUMBER = 2**53  # whole numbers beyond it are not the same in a browser
COST_TITLES = {
    "usd": "Cost ($)", "seconds": "Cost (s)", "compute_seconds": "Cost (s of compute)", "joules": "Cost (J)",
}  # fmt: skip

Cell = float | int | str | None


def trial_rows(
    session: Session, sort: str = "number", descending: bool = False, offset: int = 0, count: int = 50
) -> dict[str, Any]:
    """One page of the table: `columns`, `rows` from `offset` on, and the `total` of trials."""
    trials = session.history.trials
    found = islice(ordered(session, sort, descending), offset, offset + count)
    return {"columns": columns(session), "rows": rows_of(session, found), "total": len(trials)}


def best_and_newest(session: Session, most: int) -> dict[str, Any]:
    """The table, with at most so many rows: of more trials the best half of that, and the newest."""
    trials = session.history.trials
    chosen: Iterable[TrackedTrial] = trials
    if len(trials) > most:
        by_value = ordered(session, "value", session.record.settings.maximize)
        kept = {trial.number for trial in islice(by_value, most // 2)}
        newest = (number for number in reversed(range(len(trials))) if number not in kept)
        chosen = [trials[number] for number in sorted(kept.union(islice(newest, most - len(kept))))]
    return {"columns": columns(session), "rows": rows_of(session, chosen), "total": len(trials)}


def columns(session: Session) -> list[dict[str, str]]:
    """Their keys, by which rows are sorted, with titles and whether they hold numbers mostly."""
    cost = COST_TITLES.get(session.ledger.unit, "Cost")
    steps = [_column("steps", "Steps", "number")] if any(len(trial.curve) for trial in session.history.trials) else []
    return [
        _column("number", "Trial", "number"), _column("status", "Status", "status"),
        _column("value", "Value", "number"), _column("cost", cost, "number"), *steps,
        *(_column(f"config.{name}", name, "parameter") for name in session.space.names[:MOST_PARAMETERS]),
        _column("reason", "Reason", "text"), _column("error", "Error", "text"),
    ]  # fmt: skip


def _column(key: str, title: str, kind: str) -> dict[str, str]:
    return {"key": key, "title": cut(title, LONGEST_CELL // 2), "kind": kind}


def ordered(session: Session, sort: str, descending: bool) -> list[TrackedTrial]:
    """All trials, sorted by one of the columns: numbers before text; those without come last in either direction."""
    value_of, placed, without = _value_of(session, sort), [], []
    for trial in session.history.trials:
        shown = cell(value_of(trial))
        if shown is None:
            without.append(trial)
        else:
            placed.append(((isinstance(shown, str), shown), trial))
    return [trial for _, trial in sorted(placed, key=itemgetter(0), reverse=descending)] + without


def _value_of(session: Session, key: str) -> Callable[[Trial], Any]:
    """What a column shows of a trial."""
    turned = session.record.direction.turned
    fixed: dict[str, Callable[[Trial], Any]] = {
        "number": lambda trial: trial.number, "status": lambda trial: trial.status.value,
        "value": lambda trial: turned(trial.value), "cost": lambda trial: trial.cost,
        "steps": lambda trial: len(trial.curve) or None, "reason": lambda trial: trial.reason or None,
        "error": lambda trial: headline(trial.error) if trial.error else None,
    }  # fmt: skip
    if key in fixed:
        return fixed[key]
    name = key.removeprefix("config.")
    if name == key or name not in session.space.names:
        checks.refuse("sort", f"one of {', '.join(fixed)}, or config. and the name of a parameter", key)
    return lambda trial: trial.config.get(name)


def rows_of(session: Session, trials: Iterable[TrackedTrial]) -> list[dict[str, Any]]:
    shown = [_value_of(session, column["key"]) for column in columns(session)]
    return [{"cells": [cell(value(trial)) for value in shown], "more": _more(trial)} for trial in trials]


def cell(value: Any) -> Cell:
    """A value in a table.

    >>> cell(0.5), cell(None), cell(True), cell(2**60), cell("a\\nb"), cell([1, 2])
    (0.5, None, 'true', '1152921504606846976', 'a\\\\nb', '[1, 2]')
    """
    if value is None or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is int and abs(value) <= LARGEST_NUMBER:
        return value
    if type(value) is int and value.bit_length() <= LONGEST_WHOLE:
        return str(value)
    return cut(_text(value), LONGEST_CELL)


def _text(value: Any) -> str:
    """A value as text: text as it is, everything else as JSON on one line, or its repr."""
    known = plain(value)
    return known if isinstance(known, str) else in_json(json.dumps(listed(known), ensure_ascii=False))


def _more(trial: TrackedTrial) -> list[tuple[str, str]]:
    """The details of a trial: names and texts."""
    row = trial.row
    found: list[tuple[str, Any]] = [
        *((name, value) for name, value in trial.config.items() if _is_cut(value)),
        ("predicted cost", trial.predicted_cost),
        ("began", _moment(row["began"])),
        ("ended", _moment(row["ended"])),
        ("ended by", row["ended_by"]),
        ("reason", trial.reason if _is_cut(trial.reason) else None),
        *islice(trial.attributes.items(), MOST_ATTRIBUTES),
    ]
    if (beyond := len(trial.attributes) - MOST_ATTRIBUTES) > 0:
        found.append(("attributes that are not shown", beyond))
    more = [(cut(name, LONGEST_CELL), cut(_text(value), LONGEST_DETAIL)) for name, value in found if value is not None]
    return more + ([("error", on_lines(cut_text(trial.error, LONGEST_DETAIL)))] if trial.error else [])


def _is_cut(value: Any) -> bool:
    return isinstance(shown := cell(value), str) and len(shown) >= LONGEST_CELL


def _moment(text: str | None) -> str | None:
    """A time to the second, in UTC."""
    return None if text is None else f"{text[:19].replace('T', ' ')} UTC"
