"""What a run and its actors say to each other.

A run tells an actor to start, continue and close evaluations, and to end them. What the actor has to say it says when
it is asked, by `hear`. Each evaluation that an actor is given is a turn, by whose number both sides know which one an
answer is about: an answer may cross an order to kill. Everything here is numbers and text, and is pickled by Ray.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from farthing.runner.messages import Answer
from farthing.runner.meters import Meter
from farthing.runner.surroundings import Surroundings


@dataclass(frozen=True)
class Job:
    """What every actor of a run is told when it is made."""

    surroundings: Surroundings  # of the run, but for its folder and environment
    path: tuple[str, ...]  # where the run looks for modules
    cpus: float  # that an actor holds
    forks: bool = True
    reuse: bool = True  # a process for several evaluations
    bytes: float = math.inf  # the most memory of one
    meter: Meter | str | None = None  # what measures them on their node
    probe: str = ""  # a file of the run, in its folder of checkpoints


# -- from the run to an actor -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Call the objective."""

    turn: int
    trial: int
    config: Mapping[str, float | int]  # options by their index
    step: int
    folder: str  # of its checkpoints
    left: float  # of the budget, in its unit
    speed: float  # how fast that shrinks, per second


@dataclass(frozen=True)
class GoOn:
    """Do the next training step."""

    turn: int
    left: float


@dataclass(frozen=True)
class Finish:
    """Close what waits after a step, which has some seconds to clean up, or give back the place of what has ended."""

    turn: int
    seconds: float


@dataclass(frozen=True)
class Tell:
    """Tell an evaluation to end."""

    turn: int


@dataclass(frozen=True)
class Kill:
    """Kill an evaluation with all it started."""

    turn: int


@dataclass(frozen=True)
class Quit:
    """End everything."""


Order: TypeAlias = Start | GoOn | Finish | Tell | Kill | Quit


# -- from an actor to the run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """Where an actor is."""

    node: str  # its id
    host: str
    labels: Mapping[str, str]
    resources: Mapping[str, float]
    version: str  # of this package there
    sees_checkpoints: bool

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"node {self.node[:8]} ({self.host})"


@dataclass(frozen=True)
class Ready:
    """A worker process has loaded the objective; how long that took once it was asked for."""

    start_seconds: float


@dataclass(frozen=True)
class Refused:
    """No worker process can load the objective, or be started."""

    reason: str


@dataclass(frozen=True)
class Answered:
    """What came of an action, and what meters show of it."""

    turn: int
    answer: Answer
    shown: Mapping[str, float]


@dataclass(frozen=True)
class Spent:
    """What meters show of an action that goes on."""

    turn: int
    shown: Mapping[str, float]


@dataclass(frozen=True)
class Free:
    """That turn is over, and there is room for another."""

    turn: int


@dataclass(frozen=True)
class Warned:
    """A warning for the user."""

    text: str


@dataclass(frozen=True)
class Gone:
    """Nothing is left of the worker, and no more will be said."""

    error: str = ""  # if it ended by itself, why


Said: TypeAlias = Facts | Ready | Refused | Answered | Spent | Free | Warned | Gone
