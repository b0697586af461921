"""The end of `farthing run` and `farthing resume`: what was found, how the study ended, and the exit status."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from typing import TextIO

from farthing.budget import Ledger
from farthing.cli import formatting
from farthing.cli.exit_status import FAILURE, INTERRUPTED
from farthing.cli.running import Ran, session_of
from farthing.cli.streams import json_for, say
from farthing.errors import NoTrial
from farthing.policies.outlook import outlook_in_time
from farthing.runner.closing import as_text, closing_rows
from farthing.runner.outlet import is_terminal
from farthing.study import Study
from farthing.text.escaping import on_lines, on_one_line
from farthing.trial import Trial

NOTHING_MORE = "there is nothing more to propose"


def show_end(ran: Ran, storage: str | None, as_json: bool, out: TextIO) -> int:
    """Write what a run found and how it ended; the exit status."""
    study = ran.study
    trials, best, ledger = study.trials, _best_of(study), study.ledger
    why = on_one_line(study.why_ended) or NOTHING_MORE
    summary = _summary(ran, storage) if ran.summary else ""
    study.close()
    if as_json:
        found = {
            "ended": why, "best": best and formatting.best_json(best), "trials": formatting.counts(trials),
            "last_error": formatting.last_error_json(trials), "ledger": formatting.ledger_json(ledger),
            "storage": storage,
        }  # fmt: skip
        text = json_for(out, formatting.as_json(found))
    elif summary and is_terminal(out):
        text = summary
    else:
        text = "\n".join(_report(trials, best, ledger, why, storage))
    if summary and not is_terminal(out):
        say(summary)
    written = _write_result(text, storage, out)
    if study.interrupted:
        if storage is not None:
            say(f"farthing: interrupted; to continue: farthing resume {shlex.quote(storage)}")
        return INTERRUPTED
    if ran.error is not None:
        raise ran.error
    if best is None:
        raise NoTrial(_no_trial(trials, why))
    return 0 if written else FAILURE


def _summary(ran: Ran, storage: str | None) -> str:
    """The same on a terminal, with what more would bring and what to do next. Nobody waits for it after Ctrl-C."""
    study, session = ran.study, session_of(ran.study)
    ahead = not study.interrupted and ran.error is None
    outlook = outlook_in_time(session.record, study.policy) if ahead else None
    rows = closing_rows(session, str(outlook or ""), _next(ran, storage), formatting.cell)
    return as_text(rows, shutil.get_terminal_size().columns)


def _next(ran: Ran, storage: str | None) -> str:
    """What to do next, unless how the run ended says it."""
    if ran.study.interrupted or ran.error is not None:
        return ""
    if storage is None:
        return "--storage FILE keeps the study, for farthing report and farthing resume"
    more = " --budget TOTAL" if ran.study.ended is not None else ""
    return f"farthing report {shlex.quote(storage)}; farthing resume {shlex.quote(storage)}{more}"


def _report(trials: list[Trial], best: Trial | None, ledger: Ledger, why: str, storage: str | None) -> Iterable[str]:
    """The result for people, line by line."""
    yield formatting.best_text(best, ledger.unit) if best is not None else formatting.NO_BEST
    yield formatting.counts_text(trials)
    if error := formatting.last_error_text(trials):
        more = f"all: farthing export {shlex.quote(storage)}" if storage else "--storage FILE keeps all of them"
        yield f"{error}  ({more})"
    yield f"ended       {why}"
    yield str(ledger)


def _best_of(study: Study) -> Trial | None:
    try:
        return study.best
    except NoTrial:
        return None


def _no_trial(trials: list[Trial], why: str) -> str:
    """Why there is no result: the last error, or that nothing was evaluated to its end."""
    last = next((trial for trial in reversed(trials) if trial.error), None)
    if last is not None:
        return f"no trial has succeeded; the last error: {formatting.last_line(last)}"
    if not trials:
        return f"no trial has succeeded: none was begun, because {why}"
    return "no trial has succeeded"


def _write_result(text: str, storage: str | None, out: TextIO) -> bool:
    """Write the result of a run, which is stored already: a standard output that cannot take it loses nothing else."""
    try:
        out.write(f"{on_lines(text)}\n")
        out.flush()
    except OSError as error:
        kept = "" if storage is None else f"; the study is stored: farthing best {shlex.quote(storage)}"
        say(f"farthing: error: the result cannot be written to standard output: {error.strerror}{kept}")
        return False
    return True
