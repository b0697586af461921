"""Studies and trials in writing: as text for people, as CSV and JSON for programs.

Names, options, errors and attributes may be a stranger's: none of these forms holds a control code, a line break in a
value does not make a line of a table, and no cell of a CSV file is a formula.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from farthing.budget import Ledger
from farthing.runner.closing import best_line
from farthing.text.escaping import in_json, on_lines, on_one_line
from farthing.text.plain import plain
from farthing.trial import Status, Trial

PLAIN_COLUMNS = ("number", "status", "value", "cost", "predicted_cost", "steps")
LAST_COLUMNS = ("began", "ended", "ended_by", "reason", "error")  # sentences, and whole tracebacks
STEP_COLUMNS = ("number", "step", "value", "cost", "train_value")
OF_THE_USER = ("config.", "attributes.")
LONGEST = 60  # characters of a config in a table: with the other columns, a line of most terminals
# What makes a cell a formula, also after the characters that spreadsheets skip; the wide ones are full-width forms.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
NO_BEST = "best        none: no trial has succeeded"


def as_json(thing: Any) -> str:
    """Indented JSON that any program can read: NaN and infinities become null, control codes are escaped.

    >>> print(as_json({"value": float("nan")}))
    {
      "value": null
    }
    """
    return in_json(json.dumps(_finite(plain(thing)), indent=2, ensure_ascii=False, allow_nan=False))


def as_json_line(thing: Any) -> str:
    """The same on one line, in ASCII, for a stream of them."""
    return json.dumps(_finite(plain(thing)), allow_nan=False)


def _finite(thing: Any) -> Any:
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    if isinstance(thing, dict):
        return {key: _finite(item) for key, item in thing.items()}
    return [_finite(item) for item in thing] if isinstance(thing, list) else thing


def trial_json(trial: Trial) -> dict[str, Any]:
    """A trial, for `farthing export`."""
    row = trial.row
    return {
        **{name: row[name] for name in PLAIN_COLUMNS},
        "config": trial.config,
        "curve": list(trial.curve.values),
        "attributes": dict(trial.attributes),
        **{name: row[name] for name in row if name not in PLAIN_COLUMNS and not name.startswith(OF_THE_USER)},
    }


def step_rows(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The training curves: a row per step."""
    return [
        {"number": trial.number, "step": step, "value": value, "cost": cost, "train_value": train_value}
        for trial in trials
        for step, (value, cost, train_value) in enumerate(
            zip(trial.curve.values, trial.curve.costs, trial.curve.train_values, strict=True), 1
        )
    ]


def best_json(trial: Trial) -> dict[str, Any]:
    """The best trial, for `farthing best`."""
    return {
        "trial": trial.number,
        "value": trial.value,
        "cost": trial.cost,
        "steps": len(trial.curve),
        "config": trial.config,
    }


def ledger_json(ledger: Ledger) -> dict[str, Any]:
    """What was spent, and what remains."""
    return {
        "budget": ledger.budget.as_json(),
        "unit": ledger.unit,
        "spent": {unit: ledger.total(unit) for unit in (*ledger.budget.limits, ledger.unit)},
        "remaining": {unit: ledger.left(unit) for unit in ledger.budget.limits},
        "fraction": ledger.fraction,
        "accounts": ledger.accounts,
    }


def counts(trials: Iterable[Trial]) -> dict[str, int]:
    """The number of trials by status, without those that do not occur."""
    found = [trial.status for trial in trials]
    return {status.value: found.count(status) for status in Status if status in found}


def best_text(trial: Trial, unit: str) -> str:
    """The best trial: its value and cost on one line, then its configuration."""
    lines = [f"best        {best_line(trial, unit)}"]
    shown = [(on_one_line(name), on_one_line(cell(value))) for name, value in trial.config.items()]
    width = max((len(name) for name, _ in shown), default=0)
    lines += [f"  {name:<{width}}  {value}" for name, value in shown]
    return "\n".join(lines)


def counts_text(trials: Sequence[Trial]) -> str:
    """The number of trials, in all and by status."""
    found = ", ".join(f"{count} {status}" for status, count in counts(trials).items())
    return f"trials      {len(trials)}{f': {found}' if found else ''}"


def last_error(trials: Sequence[Trial]) -> Trial | None:
    """The last trial that failed or was killed, None if there is none."""
    return next((trial for trial in reversed(trials) if trial.unsuccessful and trial.error), None)


def last_line(trial: Trial) -> str:
    """The error of a trial on one line: the last of a traceback, which says what was raised."""
    return on_one_line((trial.error or "").strip().splitlines()[-1])


def last_error_text(trials: Sequence[Trial]) -> str:
    """The last error and its trial; empty if no trial has failed."""
    last = last_error(trials)
    return "" if last is None else f"last error  trial {last.number}: {last_line(last)}"


def last_error_json(trials: Sequence[Trial]) -> dict[str, Any] | None:
    last = last_error(trials)
    return None if last is None else {"trial": last.number, "status": last.status.value, "error": last.error}


def config_text(config: Mapping[str, Any], longest: int = LONGEST) -> str:
    """A configuration on one line.

    >>> config_text({"lr": 0.1234567891, "kind": "a b"})
    "lr=0.123457 kind='a b'"
    """
    text = on_one_line(" ".join(f"{name}={_brief(value)}" for name, value in config.items()))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value) if isinstance(value, str) and (not value or set(value) & set(" \"'=")) else cell(value)


def cell(value: Any) -> str:
    """A value as text: text as it is, nothing for None, everything else as JSON or its repr.

    >>> cell("it's"), cell(None), cell(True), cell(0.1), cell([1])
    ("it's", '', 'true', '0.1', '[1]')
    """
    if value is None:
        return ""
    known = plain(value)
    return known if isinstance(known, str) else json.dumps(known, ensure_ascii=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as they need to be.

    >>> print(table(["a", "b"], [["1", "long"], ["22", "x"]]))
    a   b
    1   long
    22  x
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def as_csv(trials: Sequence[Trial], names: Sequence[str], *, one_line: bool = False) -> str:
    """One row per trial, one column per parameter and attribute; for a terminal, each on one line."""
    rows = [trial.row for trial in trials]
    found = dict.fromkeys(column for row in rows for column in row)
    first = dict.fromkeys([*PLAIN_COLUMNS, *(f"config.{name}" for name in names)])
    last = dict.fromkeys(LAST_COLUMNS)
    columns = [*first, *(column for column in found if column not in first | last), *last]
    return csv_text(columns, rows, one_line=one_line)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, one_line: bool = False) -> str:
    """A table with a header."""
    safe = on_one_line if one_line else on_lines
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(on_one_line, columns))
    writer.writerows([safe(csv_cell(row.get(column))) for column in columns] for row in rows)
    return out.getvalue()


def csv_cell(value: Any) -> str:
    """A value in a CSV file. Text that a spreadsheet would run gets an apostrophe in front, which makes it text there;
    numbers stay numbers.

    >>> csv_cell("=1+2"), csv_cell("-1"), csv_cell(-1.5), csv_cell("- one")
    ("'=1+2", '-1', '-1.5', "'- one")
    """
    text = cell(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
