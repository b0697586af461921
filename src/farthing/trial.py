"""Proposal, Report, Outcome, Trial: what is asked, what is seen on the way, how it ended, and all together.

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

OUT_OF_BUDGET = "killed: the budget is spent"  # of a trial that was killed for no fault of its own


class Status(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"
    PAUSED = "paused"  # an iterative learner that can go on
    COMPLETE = "complete"
    STOPPED = "stopped"  # an iterative learner that will not go on
    FAILED = "failed"
    KILLED = "killed"  # at a limit: it would have cost more than it did
    INTERRUPTED = "interrupted"


class Decision(StrEnum):
    """What to do with a run after one of its steps."""

    CONTINUE = "continue"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class Report:
    """One step of training: its value, its cost in the budget's unit, and whether a checkpoint was written."""

    value: float
    cost: float | None = None
    train_value: float | None = None
    saved: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """What was reported, step by step; the first report is that of step 1."""

    values: tuple[float, ...] = ()
    costs: tuple[float | None, ...] = ()
    train_values: tuple[float | None, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def flipped(self) -> Curve:
        """With the signs of the values changed."""
        trained = tuple(None if value is None else -value for value in self.train_values)
        return Curve(tuple(-value for value in self.values), self.costs, trained)

    def with_report(self, report: Report) -> Curve:
        """One step longer."""
        return Curve(
            (*self.values, report.value), (*self.costs, report.cost), (*self.train_values, report.train_value)
        )  # fmt: skip


@dataclass(frozen=True)
class Proposal:
    """One configuration to evaluate, under the number of its trial.

    An iterative learner goes on from `start_step`, 0 for a new one, and is paused at `until_step` if that is set.
    `predicted_cost` is in the budget's unit, None while nothing is known; `reason` says in one sentence why this
    point; `fits` holds the hyperparameters found on the way, so that the next proposal can start from them.
    """

    trial: int
    config: Config
    predicted_cost: float | None = None
    reason: str = ""
    fits: Mapping[str, Any] = field(default_factory=dict, repr=False)
    start_step: int = 0
    until_step: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: a finite value, or the reason there is none. `cost` is in the budget's unit.

    Of a paused one `error` is None where the policy paused it, else it says what did.
    """

    status: Status
    value: float | None = None
    cost: float | None = None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One configuration and what became of it.

    Of an iterative learner `value` is the best that was reported, `curve` is all of it, and training goes on from step
    `kept_step`: where it was paused while the run is alive, else where its last checkpoint was written, else 0.
    """

    number: int
    config: Config
    status: Status
    value: float | None = None
    cost: float | None = None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    predicted_cost: float | None = None
    reason: str = ""
    curve: Curve = field(default_factory=Curve, repr=False)
    kept_step: int = 0  # of a running trial, where it is
    saved_step: int = 0  # of the last checkpoint
    from_step: int = field(default=0, repr=False, compare=False)  # where it went on when it was asked for last
    until_step: int | None = field(default=None, repr=False)
    counted: bool = field(default=False, repr=False)  # as an evaluation
    undecided: bool = field(default=False, repr=False)  # nothing was decided or done since its last step
    key: tuple[Any, ...] = field(default=(), repr=False, compare=False)  # what makes two configs the same
    unit: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)  # (p,)

    @property
    def unsuccessful(self) -> bool:
        """Whether it ended without a value by its own doing: it raised, died, or went past a limit of trials."""
        return self.status is Status.FAILED or (self.status is Status.KILLED and self.error != OUT_OF_BUDGET)

    @property
    def censored(self) -> bool:
        """Whether its cost is only what was spent until it was cut short: complete, it would cost more."""
        return self.status in (Status.KILLED, Status.INTERRUPTED)

    @property
    def row(self) -> dict[str, Any]:
        """As one row of a table.

        >>> list(Trial(0, {"x": 0.5}, Status.COMPLETE, attributes={"epochs": 3}).row)[5:]
        ['steps', 'config.x', 'attributes.epochs', 'error']
        """
        return {
            "number": self.number,
            "status": self.status.value,
            "value": self.value,
            "cost": self.cost,
            "predicted_cost": self.predicted_cost,
            "steps": len(self.curve),
            **{f"config.{name}": value for name, value in self.config.items()},
            **{f"attributes.{name}": value for name, value in self.attributes.items()},
            "error": self.error,
        }
