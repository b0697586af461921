"""Limits of one evaluation: how long it may take, and how much memory it may hold."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from farthing.budget import Budget, amount_text
from farthing.checks import finite, refuse
from farthing.errors import InvalidBudget

RUNAWAY_TIMES = 10.0  # times the predicted seconds: predictions are often wrong by a factor of two or three, not ten
RUNAWAY_SHARE = 0.2  # of what is left of the budget: a trial that takes less does little harm, whatever was predicted

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class TrialLimits:
    """The most seconds of a trial, over all its steps, and the most memory of its process and all that it starts."""

    seconds: float = math.inf
    bytes: float = math.inf
    why: str = field(default="the limit of a trial", repr=False)  # where the limit of seconds comes from

    def __bool__(self) -> bool:
        return min(self.seconds, self.bytes) < math.inf

    @classmethod
    def of(cls, trial_seconds: float | str | None, trial_memory: float | str | None) -> TrialLimits:
        """From what a user gives: numbers, or texts such as "90s" and "2GB".

        >>> TrialLimits.of("1m30s", "2GB")
        TrialLimits(seconds=90.0, bytes=2000000000.0)
        """
        return cls(
            math.inf if trial_seconds is None else _read_seconds(trial_seconds),
            math.inf if trial_memory is None else read_bytes("trial_memory", trial_memory),
        )

    def with_runaway_limit(self, before: float, predicted: float | None, left: float) -> TrialLimits:
        """These limits, and if they have none of seconds, one that stops a trial from using up the rest of the budget
        when it takes far longer than predicted.

        before     seconds that the trial has taken already
        predicted  seconds that it is predicted to take from now on, if there is a prediction
        left       seconds until the budget is spent
        """
        if predicted is None or not math.isinf(self.seconds) or math.isinf(left):
            return self
        most = max(RUNAWAY_TIMES * predicted, RUNAWAY_SHARE * left)
        why = f"and was predicted to take {amount_text('seconds', before + predicted)}"
        return replace(self, seconds=before + most, why=why)

    @property
    def seconds_text(self) -> str:
        """The error of a trial that took too long."""
        return f"killed: it took longer than {amount_text('seconds', self.seconds)}, {self.why}"

    @property
    def bytes_text(self) -> str:
        """The error of a trial that held too much memory."""
        return f"killed: it held more than {self.bytes / 1e9:.3g} GB of memory, the limit of a trial"


def _read_seconds(given: float | str) -> float:
    seconds = _seconds_in(given) if isinstance(given, str) else finite(given)
    if seconds is None or seconds <= 0.0:
        refuse("trial_seconds", 'a number of seconds above 0, or text such as "90s"', given)
    return seconds


def _seconds_in(text: str) -> float | None:
    """A duration, as budgets are written; None if the text is something else."""
    try:
        limits = Budget.of(text).limits
    except InvalidBudget:
        return None
    return limits["seconds"] if set(limits) == {"seconds"} else None


def read_bytes(name: str, given: float | str) -> float:
    """An amount of memory that a user gives under that name."""
    amount = _bytes_in(given) if isinstance(given, str) else finite(given)
    if amount is None or not 0.0 < amount < math.inf:
        refuse(name, 'a number of bytes above 0, or text such as "2GB"', given)
    return amount


def _bytes_in(text: str) -> float | None:
    """An amount of memory, None if the text is something else. 1 kB is 1000 bytes, 1 KiB is 1024.

    >>> _bytes_in("512 MiB") == 512 * 2**20
    True
    """
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        return None
    unit = match[2].lower()
    factor: int = (1024 if "i" in unit else 1000) ** _POWERS[unit.rstrip("ib")]
    return float(match[1]) * factor
