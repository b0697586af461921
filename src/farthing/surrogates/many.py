"""Hyperparameters of thousands of observations, found from some of them (`numerics.rows` says which, and why)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farthing.surrogates.fitting import is_cold
from farthing.surrogates.gp import Hyperparameters


def found_from_some(
    n: int, warm: Hyperparameters | None, search: Callable[[Hyperparameters | None], Hyperparameters]
) -> Hyperparameters:
    """What `search` finds from some of n observations, given the last fit. It starts from several places when all n
    have grown enough for that: the number of those that it sees does not grow."""
    if warm is None or is_cold(n, warm):
        return replace(search(warm and replace(warm, cold_at=0)), cold_at=n, at=n)
    return replace(search(replace(warm, cold_at=n)), cold_at=warm.cold_at, at=n)
