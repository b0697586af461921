"""Proposal, Outcome, Trial: what is asked, how it ended, and both together.

Inside the library values are minimised; `Study` shows them in the user's own sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Config = dict[str, Any]


class Status(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Proposal:
    """One configuration to evaluate, under the number of its trial.

    `predicted_cost` is in the budget's unit, None while nothing is known; `reason` says in one sentence why this
    point; `fits` holds the hyperparameters found on the way, so that the next proposal can start from them.
    """

    trial: int
    config: Config
    predicted_cost: float | None = None
    reason: str = ""
    fits: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: a finite value, or the reason there is none. `cost` is in the budget's unit."""

    status: Status
    value: float | None = None
    cost: float | None = None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One configuration and what became of it."""

    number: int
    config: Config
    status: Status
    value: float | None = None
    cost: float | None = None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    predicted_cost: float | None = None
    reason: str = ""
    key: tuple[Any, ...] = field(default=(), repr=False, compare=False)  # what makes two configs the same
    unit: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)  # (p,)
