"""Limits of one evaluation: how long it may take, how much memory it may hold."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from farthing.budget import Budget, amount_text
from farthing.errors import InvalidArgument, InvalidBudget

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)
RUNAWAY_TIMES = 10.0  # what was predicted, and
RUNAWAY_SHARE = 0.2  # of what is left, both of which a trial may take
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class TrialLimits:
    """Seconds of one trial, over all its steps, and bytes in the memory of its process and all that it starts."""

    seconds: float = math.inf
    bytes: float = math.inf
    why: str = field(default="the limit of a trial", repr=False)  # of seconds

    def __bool__(self) -> bool:
        return min(self.seconds, self.bytes) < math.inf

    @classmethod
    def of(cls, seconds: float | str | None, memory: float | str | None) -> TrialLimits:
        """From what a user gives: numbers, or texts such as "90s" and "2GB".

        >>> TrialLimits.of("1m30s", "2GB")
        TrialLimits(seconds=90.0, bytes=2000000000.0)
        """
        return cls(
            math.inf if seconds is None else _seconds(seconds),
            math.inf if memory is None else _bytes(memory),
        )

    def or_runaway(self, before: float, predicted: float | None, left: float) -> TrialLimits:
        """For a trial that has taken some seconds before, was predicted to take so many more, with so many left of the
        budget: where no limit was given, one that takes many times what was predicted must not take all that is left.
        """
        if predicted is None or not math.isinf(self.seconds) or math.isinf(left):
            return self
        most = max(RUNAWAY_TIMES * predicted, RUNAWAY_SHARE * left)
        return replace(self, seconds=before + most, why=f"predicted were {amount_text('seconds', before + predicted)}")

    @property
    def seconds_text(self) -> str:
        return f"killed: it took longer than {amount_text('seconds', self.seconds)}, {self.why}"

    @property
    def bytes_text(self) -> str:
        return f"killed: it held more than {self.bytes / 1e9:.3g} GB of memory, the limit of a trial"


def _seconds(given: float | str) -> float:
    try:
        limits = Budget.of(given).limits if isinstance(given, str) else {"seconds": Budget(seconds=given).seconds}
    except InvalidBudget:
        limits = {}
    if set(limits) != {"seconds"}:
        raise InvalidArgument(f'trial_seconds: expected a number above 0 or text such as "90s", got {given!r}')
    return float(limits["seconds"] or 0.0)


def _bytes(given: float | str) -> float:
    """1 kB is 1000 bytes, 1 KiB 1024.

    >>> _bytes("512 MiB") == 512 * 2**20
    True
    """
    amount = math.nan
    if isinstance(given, str):
        if match := _MEMORY.fullmatch(given.strip()):
            unit = match[2].lower()
            amount = float(match[1]) * (1024 if "i" in unit else 1000) ** _POWERS[unit.rstrip("ib")]
    elif isinstance(given, int | float) and not isinstance(given, bool):
        amount = float(given)
    if not 0.0 < amount < math.inf:
        raise InvalidArgument(f'trial_memory: expected bytes, a number above 0, or text such as "2GB", got {given!r}')
    return amount
