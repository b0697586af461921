"""What a model-based policy makes of its models: candidates in order, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from farthing.acquisitions.maximize import Ranking
from farthing.numerics.arrays import Array


def in_words(alpha: float) -> str:
    """Improvement per cost^alpha.

    >>> in_words(0.684), in_words(0.0)
    ('largest expected improvement per cost^0.68', 'largest expected improvement')
    """
    power = f"{alpha:.2g}"
    return "largest expected improvement" + {"0": "", "1": " per cost"}.get(power, f" per cost^{power}")


class RankingWithReason(NamedTuple):
    """Candidates, best first, and why they are, in words for the user."""

    ranking: Ranking
    reason: str
    searched: Array | None = None  # (m, p) by improvement, where the ranking is by something else
    fits: Mapping[str, Any] = MappingProxyType({})  # what the policy wants to find at its next ask
