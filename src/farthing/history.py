"""History: an immutable view of all trials, and the arrays the models see.

Symbols: U (n, p) unit coordinates, y (n,) values to minimise, c (n,) costs. Growing returns a new History; trials of
the past are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.cost_knowledge import CostKnowledge
from farthing.errors import UnknownTrial
from farthing.events import Asked, Told
from farthing.space import Space
from farthing.trial import Status, Trial

Array = NDArray[np.float64]


@dataclass(frozen=True)
class History:
    """Trials by number, and the last hyperparameters found for each model."""

    seed: int
    trials: tuple[Trial, ...] = ()
    asks: int = 0  # how many asks there were; one may hand out several trials
    fits: Mapping[str, Any] = field(default_factory=dict)
    cost_knowledge: CostKnowledge = field(default_factory=CostKnowledge)  # from before the first trial

    def asked(self, event: Asked, space: Space) -> History:
        """A new trial is running, or an interrupted one again."""
        proposal = event.proposal
        trial = Trial(
            proposal.trial, dict(proposal.config), Status.RUNNING, predicted_cost=proposal.predicted_cost,
            reason=proposal.reason, key=space.key(proposal.config), unit=space.encode(proposal.config),
        )  # fmt: skip
        trials = (*self.trials[: trial.number], trial, *self.trials[trial.number + 1 :])
        return replace(self, trials=trials, asks=event.ask + 1, fits={**self.fits, **proposal.fits})

    def told(self, event: Told) -> History:
        """A running trial has ended."""
        running, outcome = self.running_trial(event.trial), event.outcome
        trial = replace(
            running, status=outcome.status, value=outcome.value, cost=outcome.cost, error=outcome.error,
            attributes=outcome.attributes,
        )  # fmt: skip
        return replace(self, trials=(*self.trials[: trial.number], trial, *self.trials[trial.number + 1 :]))

    def running_trial(self, number: int) -> Trial:
        """The trial of that number, which must be running."""
        if not 0 <= number < len(self.trials):
            raise UnknownTrial(f"trial {number} was never asked for; trials are 0 to {len(self.trials) - 1}")
        trial = self.trials[number]
        if trial.status is not Status.RUNNING:
            raise UnknownTrial(f"trial {number} is {trial.status.value}: only a running trial can be told")
        return trial

    def interrupted(self) -> History:
        """As read from a file: whatever was running there is not running any more."""
        trials = tuple(replace(t, status=Status.INTERRUPTED) if t.status is Status.RUNNING else t for t in self.trials)
        return replace(self, trials=trials)

    def of(self, *status: Status) -> list[Trial]:
        return [trial for trial in self.trials if trial.status in status]

    @property
    def complete(self) -> list[Trial]:
        return self.of(Status.COMPLETE)

    @property
    def costed(self) -> list[Trial]:
        """Trials whose cost is known, however they ended."""
        return [trial for trial in self.trials if trial.cost is not None]

    @property
    def running(self) -> list[Trial]:
        return self.of(Status.RUNNING)

    @property
    def incumbent(self) -> Trial | None:
        """The complete trial of least value, the earliest of equals."""
        return min(self.complete, key=lambda trial: (trial.value, trial.number), default=None)


def units(trials: list[Trial], p: int) -> Array:
    """U of some trials, (n, p)."""
    return np.concatenate([trial.unit for trial in trials]).reshape(-1, p) if trials else np.empty((0, p))


def values(trials: list[Trial]) -> Array:
    """y of complete trials, (n,)."""
    return np.array([trial.value for trial in trials], dtype=np.float64)
