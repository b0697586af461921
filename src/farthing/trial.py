"""Proposal, Report, Outcome, Trial: what is proposed, what is seen on the way, how it ended, and all of it together.

Inside the library values are minimised; `Study` shows them in the user's own sign (direction.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from farthing.text.cards import RED, beside, card, facts, large, line, option, sparkline
from farthing.text.plain import headline

Config = dict[str, Any]
Objective = Callable[[Config], Any]  # what users tune


class Status(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"
    PAUSED = "paused"  # an iterative learner that can go on
    COMPLETE = "complete"
    STOPPED = "stopped"  # an iterative learner that will not go on
    FAILED = "failed"
    KILLED = "killed"  # at a limit: it would have cost more than it did
    INTERRUPTED = "interrupted"


class EndedBy(StrEnum):
    """Who or what ended the last stretch of a trial, or paused it."""

    OBJECTIVE = "objective"  # it returned, raised, or its process died
    POLICY = "policy"  # it paused or stopped the training
    TRIAL_LIMIT = "trial_limit"  # of seconds or memory, or what was predicted many times over
    BUDGET = "budget"  # of the study
    TARGET = "target"  # another trial reached the value of `stop_at`
    INTERRUPT = "interrupt"  # Ctrl-C, SIGTERM, or the process that ran the study ended


ENDS_OF_STUDY = frozenset({EndedBy.BUDGET, EndedBy.TARGET})
USUAL_END = {  # of a trial with that status, where nothing else is said
    Status.COMPLETE: EndedBy.OBJECTIVE,
    Status.FAILED: EndedBy.OBJECTIVE,
    Status.PAUSED: EndedBy.POLICY,
    Status.STOPPED: EndedBy.POLICY,
    Status.KILLED: EndedBy.TRIAL_LIMIT,
    Status.INTERRUPTED: EndedBy.INTERRUPT,
}


class Decision(StrEnum):
    """What to do with a run after one of its steps."""

    CONTINUE = "continue"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class ContinueTo:
    """The decision to go on, and to pause at another step than was planned: earlier or later, but still to come."""

    step: int


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

    def with_report(self, report: Report) -> Curve:
        """One step longer."""
        return Curve(
            (*self.values, report.value), (*self.costs, report.cost), (*self.train_values, report.train_value)
        )  # fmt: skip


@dataclass(frozen=True)
class Proposal:
    """One configuration to evaluate, under the number of its trial.

    An iterative learner goes on from `start_step`, 0 for a new one, and is paused at `until_step` if that is set,
    unless its policy moves that step. `predicted_cost` is in the budget's unit, None while nothing is known; `reason`
    says in one sentence why this point; `fits` holds the hyperparameters found on the way, so that the next proposal
    can start from them.
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
    """How an evaluation ended: a finite value, or an error that says why there is none. `cost` is in the budget's unit.

    `ended_by` is the usual one of its status unless another is given.
    """

    status: Status
    value: float | None = None
    cost: float | None = None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    ended_by: EndedBy | None = None

    def __post_init__(self) -> None:
        if self.ended_by is None:
            object.__setattr__(self, "ended_by", USUAL_END.get(self.status))

    @property
    def error_line(self) -> str:
        """The last line of the error, which is the exception itself where there is a traceback."""
        return (self.error or "").rpartition("\n")[2]


@dataclass(frozen=True)
class Trial:
    """One configuration and what became of it.

    Of an iterative learner `value` is the best that was reported, and `curve` is all of it. `error` says in words what
    `ended_by` says as a value; `ended_by` is None while the trial is running. `began` is when it was first asked for,
    `ended` when it ended or was paused last, in seconds since 1970; None where that is not known, or not yet.
    `checkpoint_dir` is the folder with the checkpoint of its best step, None if nothing was written.
    """

    number: int
    config: Config
    status: Status
    value: float | None = None
    cost: float | None = None
    curve: Curve = field(default_factory=Curve, repr=False)
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    predicted_cost: float | None = None
    reason: str = ""
    ended_by: EndedBy | None = None
    began: float | None = field(default=None, repr=False, compare=False)  # two runs of one seed are equal
    ended: float | None = field(default=None, repr=False, compare=False)
    checkpoint_dir: Path | None = field(default=None, repr=False, compare=False)

    @property
    def unsuccessful(self) -> bool:
        """Whether it ended without a value by its own doing: it raised, died, or exceeded a limit of trials."""
        killed = self.status is Status.KILLED and self.ended_by is not EndedBy.BUDGET
        return self.status is Status.FAILED or killed

    @property
    def censored(self) -> bool:
        """Whether its cost is only what was spent until it was cut short: complete, it would cost more."""
        return self.status in (Status.KILLED, Status.INTERRUPTED)

    def _repr_html_(self) -> str:
        amounts = {"cost": self.cost, "predicted cost": self.predicted_cost}
        more = [(name, f"{amount:.4g}") for name, amount in amounts.items() if amount is not None]
        more += [(name, option(value)) for name, value in self.attributes.items()]
        steps = [(float(step), value) for step, value in enumerate(self.curve.values, 1)]
        return card(
            f"Trial {self.number}", self.status.value,
            beside(
                large("no value" if self.value is None else f"{self.value:.6g}", "value" * (self.value is not None)),
                sparkline(steps, f"value over {len(steps)} steps", stairs=False),
            ),
            facts((name, option(value)) for name, value in self.config.items()),
            line(headline(self.error or ""), RED if self.unsuccessful else "inherit"),
            facts(more),
            line(self.reason),
        )  # fmt: skip

    @property
    def row(self) -> dict[str, Any]:
        """As one row of a table; times are text in UTC.

        >>> row = Trial(0, {"x": 0.5}, Status.COMPLETE, attributes={"epochs": 3}, began=0.25).row
        >>> list(row)[5:]
        ['steps', 'config.x', 'attributes.epochs', 'reason', 'ended_by', 'began', 'ended', 'error']
        >>> row["began"], row["ended"]
        ('1970-01-01T00:00:00.250000+00:00', None)
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
            "reason": self.reason,
            "ended_by": self.ended_by and self.ended_by.value,
            "began": _time_text(self.began),
            "ended": _time_text(self.ended),
            "error": self.error,
        }


def _time_text(seconds: float | None) -> str | None:
    """A time in UTC as ISO 8601 has it; None for a time that no calendar knows: a file may hold any number."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return None
