"""The end of `farthing run` and `farthing resume`: what was found, how the study ended, and the exit status."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TextIO

from farthing.budget import Ledger
from farthing.cli import formatting
from farthing.cli.exit_status import FAILURE, INTERRUPTED
from farthing.cli.running import Ran
from farthing.cli.streams import json_for, say
from farthing.errors import NoTrial
from farthing.escaping import on_lines, on_one_line
from farthing.study import Study
from farthing.trial import Trial

NOTHING_MORE = "there is nothing more to propose"


def show_end(ran: Ran, storage: str | None, as_json: bool, out: TextIO) -> int:
    """Write what a run found and how it ended; the exit status."""
    study = ran.study
    trials, best, ledger = study.trials, _best_of(study), study.ledger
    why = on_one_line(study.why_ended) or NOTHING_MORE
    study.close()
    if as_json:
        found = {
            "ended": why, "best": best and formatting.best_json(best), "trials": formatting.counts(trials),
            "last_error": formatting.last_error_json(trials), "ledger": formatting.ledger_json(ledger),
            "storage": storage,
        }  # fmt: skip
        text = json_for(out, formatting.as_json(found))
    else:
        text = "\n".join(_report(trials, best, ledger, why, storage))
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
