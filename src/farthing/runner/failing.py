"""A run whose first trials all fail alike: nothing would come of the rest, so it ends with their error."""

from __future__ import annotations

from farthing.errors import EveryTrialFailed
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted, error_kind, headline
from farthing.trial import Trial

MAX_FAILURES = 5  # one bad region of a space may hold two or three first trials, hardly five that fail alike


class FirstFailures:
    """Hears how the first trials of a run ended, in the order in which they did.

    most  how many that fail with one type of error end the run; None: however many
    """

    def __init__(self, most: int | None) -> None:
        self._most, self._heard, self._kinds = most, 0, set[str]()

    def hear(self, trial: Trial, has_value: bool) -> None:
        """Raise `EveryTrialFailed` if this is the last of them. Nothing is raised once the study has a value.

        Trials that a signal or the end of the budget cut short say nothing of the objective, and do not count.
        """
        if self._most is None or has_value or not trial.unsuccessful:
            return
        self._heard += 1
        self._kinds.add(error_kind(trial.error or ""))
        if self._heard == self._most and len(self._kinds) == 1:
            raise EveryTrialFailed(
                f"the first {counted(self._most, 'trial')} all failed{_with(trial.error or '')}; max_failures=None "
                "goes on all the same"
            )


def _with(error: str) -> str:
    """Of an exception "with ValueError: ...", of anything else ": the objective ..."."""
    line = on_one_line(headline(error))
    return f" with {line}" if error_kind(error) == line.partition(":")[0] else f": {line}"
