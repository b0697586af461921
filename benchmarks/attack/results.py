"""What one attack came to: how often it was tried, and what happened how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

YES, NO = "yes", "no"


@dataclass(frozen=True)
class Result:
    """The outcomes of one attack, counted, and numbers measured meanwhile."""

    name: str
    tries: int
    outcomes: Mapping[str, int]
    numbers: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def counted(cls, name: str, outcomes: Iterable[str], **numbers: float) -> Result:
        """From one word per try."""
        found = Counter(outcomes)
        return cls(name, found.total(), dict(sorted(found.items())), numbers)

    @classmethod
    def answered(cls, name: str, holds: bool, note: str = "", **numbers: float) -> Result:
        """From one question: does Farthing hold?"""
        return cls(name, 1, {YES if holds else NO: 1}, numbers, note)

    def __getitem__(self, outcome: str) -> int:
        return self.outcomes.get(outcome, 0)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{outcome} {count}" for outcome, count in self.outcomes.items())
        numbers = ", ".join(f"{name} {number:.4g}" for name, number in self.numbers.items())
        return f"{self.name}: " + "; ".join(part for part in (outcomes, numbers, self.note) if part)

    def as_json(self) -> dict[str, Any]:
        return vars(self)


def total(results: Iterable[Result], outcome: str) -> int:
    """How often an outcome was seen in all of them."""
    return sum(result[outcome] for result in results)
