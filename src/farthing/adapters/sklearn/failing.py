"""Searches that come to nothing: every fit fails, or the budget ends before a candidate is fitted.

Both end with words that help: the error of the fits, or what the budget was spent on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from farthing.adapters.sklearn.folds import FOLDS
from farthing.budget import Ledger, amount_text
from farthing.trial import EndedBy, Status, Trial

MOSTLY = 0.5  # of the budget: what took more than this is to blame
RAISED_LINE = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")  # of a traceback: the type of the error, and its text


def is_hopeless(trials: Sequence[Trial], most: int | None) -> bool:
    """Whether at least `most` candidates have ended, and each failed on all folds with the same type of error.

    One that exceeded a limit of trials is no reason to give up: others may be faster.
    """
    ended = [trial for trial in trials if trial.status is not Status.RUNNING]
    if most is None or len(ended) < most:
        return False
    types = {_error_type(trial) for trial in ended}
    return len(types) == 1 and None not in types


def _error_type(trial: Trial) -> str | None:
    """The type of the error with which a candidate failed; None if it did not, or not on all folds."""
    if trial.status is not Status.FAILED or trial.ended_by is not EndedBy.OBJECTIVE:
        return None
    errors = [record["fit_error"] for record in trial.attributes.get(FOLDS, [])] or [trial.error]
    return None if None in errors else type_in(errors[0])


def type_in(traceback: str) -> str:
    """The type of the error in the text of a traceback, or the text if there is none.

    >>> type_in("Traceback ...:\\n  File 'x.py', line 1, in f\\nValueError: a text\\nof: two lines\\n")
    'ValueError'
    """
    after = traceback.rpartition("\n  File ")[2].splitlines()
    found = next((match for line in after if (match := RAISED_LINE.match(line))), None)
    return found.group(1) if found else traceback


def nothing_fitted(trials: Sequence[Trial], ledger: Ledger, folds: int) -> str:
    """Why there is no candidate with a score, and what to do about it."""
    budget, unit = ledger.budget, ledger.unit
    begins = f"no candidate was fitted on all {folds} folds within {budget}"
    starting, thinking = ledger.account("start-up"), ledger.account("optimiser")
    if starting + thinking > MOSTLY * budget.limits.get(unit, float("inf")):
        took = amount_text(unit, starting + thinking)
        return (
            f"{begins}: {took} of it went by before a candidate could be fitted, in starting worker processes (which "
            "import scikit-learn and the estimator's package) and choosing candidates: use a larger budget"
        )
    cut = sum(trial.ended_by is EndedBy.BUDGET for trial in trials)
    return f"{begins} ({cut} were cut short): use a larger budget or fewer folds"
