"""What a run and its worker processes say to each other, over a pipe of their own.

The run sends the objective once, then, for each evaluation, Begin and perhaps Step after Step; the worker answers each
with one Answer. Messages are pickled: both ends are the same program, and nothing of it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from farthing.runner.evaluate import Evaluation
from farthing.trial import Config


class Kind(StrEnum):
    """How a worker answers."""

    READY = "ready"  # has the objective
    REFUSED = "refused"  # cannot load it
    RETURNED = "returned"  # a value, or a failure
    YIELDED = "yielded"  # a step of an iterative learner, or a failure in it
    ENDED = "ended"  # an iterative learner has no more steps, or was closed
    INTERRUPTED = "interrupted"  # the objective raised KeyboardInterrupt
    DIED = "died"  # the process is gone


@dataclass(frozen=True)
class Answer:
    """What came of an action, and how many seconds it took by the worker's clock, None where it cannot tell."""

    kind: Kind
    evaluation: Evaluation | None = None
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Load:
    """The objective, and where its modules are found: here, and by what it starts (PYTHONPATH)."""

    objective: bytes
    path: list[str]
    python_path: str | None
    folder: str
    maximize: bool


@dataclass(frozen=True)
class Begin:
    """Call the objective, with so much left of the budget, which goes by at that speed per second."""

    trial: int
    config: Config
    step: int
    folder: Path
    left: float
    speed: float


@dataclass(frozen=True)
class Step:
    """Pull the next step, with so much left of the budget."""

    left: float


@dataclass(frozen=True)
class Close:
    """End an iterative learner."""
