"""History: an immutable view of all trials, and the arrays the models see.

Symbols: U (n, p) unit coordinates, y (n,) values to minimise, c (n,) costs. Growing returns a new History in O(log n);
trials of the past are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from farthing.errors import UnknownTrial
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.persistent import KeySet
from farthing.history.trials import TrackedTrial, Trials
from farthing.numerics.arrays import Array
from farthing.trial import Status


@dataclass(frozen=True)
class History:
    """Trials by number, and the last hyperparameters found for each model.

    `max_steps` is the length of a complete training: as given, else that of the first one, None before.
    """

    seed: int
    trials: Trials = field(default_factory=Trials)
    asks: int = 0  # how many asks there were; one may hand out several trials
    fits: Mapping[str, Any] = field(default_factory=dict)
    cost_knowledge: CostKnowledge = field(default_factory=CostKnowledge)  # from before the first trial
    max_steps: int | None = None

    def with_trial(self, trial: TrackedTrial) -> History:
        """With that one in the place of its number."""
        return replace(self, trials=self.trials.with_trial(trial))

    def running_trial(self, number: int) -> TrackedTrial:
        """The trial of that number, which must be running."""
        if not 0 <= number < len(self.trials):
            raise UnknownTrial(f"trial {number} was never asked for; trials are 0 to {len(self.trials) - 1}")
        trial = self.trials[number]
        if trial.status is not Status.RUNNING:
            raise UnknownTrial(f"trial {number} is {trial.status.value}: only a running trial can be told")
        return trial

    def of(self, *status: Status) -> list[TrackedTrial]:
        return [trial for trial in self.trials if trial.status in status]

    def count(self, *status: Status) -> int:
        """How many trials there are of these kinds, of all kinds if none is named."""
        return sum(self.trials.counts.get(kind, 0) for kind in set(status)) if status else len(self.trials)

    @property
    def taken(self) -> KeySet:
        """What makes two configurations the same, of all that were asked for."""
        return self.trials.keys

    @property
    def cut_short(self) -> list[TrackedTrial]:
        """Trials that were interrupted, or paused by the end of the study and not by its policy."""
        return self.trials.cut_short

    @property
    def complete(self) -> list[TrackedTrial]:
        return self.of(Status.COMPLETE)

    @property
    def costed(self) -> list[TrackedTrial]:
        """Trials whose cost is known, however they ended."""
        return [trial for trial in self.trials if trial.cost is not None]

    @property
    def running(self) -> list[TrackedTrial]:
        return self.trials.running

    @property
    def incumbent(self) -> TrackedTrial | None:
        """The trial of least value, the earliest of equals; of an iterative learner any that reported one."""
        return self.trials.best


def units(trials: Sequence[TrackedTrial], p: int) -> Array:
    """U of some trials, (n, p)."""
    return np.concatenate([trial.unit for trial in trials]).reshape(-1, p) if trials else np.empty((0, p))


def values(trials: Sequence[TrackedTrial]) -> Array:
    """y of complete trials, (n,)."""
    return np.array([trial.value for trial in trials], dtype=np.float64)
