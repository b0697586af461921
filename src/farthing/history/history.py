"""History: an immutable view of all trials, and the arrays the models see.

Symbols: U (n, p) unit coordinates, y (n,) values to minimise, c (n,) costs. Growing returns a new History in O(log n);
trials of the past are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from farthing.errors import UnknownTrial
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.persistent import KeySet
from farthing.history.trials import Trials
from farthing.numerics.arrays import Array
from farthing.record.events import Asked, Dropped, Reported, Told
from farthing.space import Space
from farthing.trial import Status, Trial


@dataclass(frozen=True)
class History:
    """Trials by number, and the last hyperparameters found for each model.

    `max_steps` is the length of a complete training: as given, else that of the first one, None before.
    """

    seed: int
    trials: Sequence[Trial] = ()  # becomes a Trials, whatever it was given as
    asks: int = 0  # how many asks there were; one may hand out several trials
    fits: Mapping[str, Any] = field(default_factory=dict)
    cost_knowledge: CostKnowledge = field(default_factory=CostKnowledge)  # from before the first trial
    max_steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", Trials.of(self.trials))

    @property
    def _trials(self) -> Trials:
        return cast(Trials, self.trials)

    def asked(self, event: Asked, space: Space) -> History:
        """A new trial is running, or a paused or interrupted one again."""
        proposal = event.proposal
        if proposal.trial < len(self.trials):
            before = self.trials[proposal.trial]
        else:
            config = dict(proposal.config)
            before = Trial(proposal.trial, config, Status.RUNNING, key=space.key(config), unit=space.encode(config))
        trial = replace(
            before, status=Status.RUNNING, predicted_cost=proposal.predicted_cost, reason=proposal.reason, error=None,
            kept_step=proposal.start_step, from_step=proposal.start_step, until_step=proposal.until_step,
        )  # fmt: skip
        return replace(self.with_trial(trial), asks=event.ask + 1, fits={**self.fits, **proposal.fits})

    def reported(self, event: Reported) -> History:
        """A running trial is one step further. A step trained again adds nothing but its cost."""
        trial, report = self.running_trial(event.trial), event.report
        step = trial.kept_step + 1
        new = step > len(trial.curve)
        curve = trial.curve.with_report(report) if new else trial.curve
        cost = trial.cost if report.cost is None else (trial.cost or 0.0) + report.cost
        further = replace(
            trial, curve=curve, value=_least(trial.value, report.value if new else None), cost=cost, kept_step=step,
            undecided=new, saved_step=step if report.saved else trial.saved_step,
            attributes={**trial.attributes, **report.attributes},
        )  # fmt: skip
        return self.with_trial(further)

    def dropped(self, event: Dropped) -> History:
        """A run that rests has to start from its checkpoint, if there is one."""
        trial = self.trials[event.trial]
        return self.with_trial(replace(trial, kept_step=event.kept_step, saved_step=event.kept_step))

    def with_trial(self, trial: Trial) -> History:
        """With that one in the place of its number."""
        return replace(self, trials=self._trials.with_trial(trial))

    def told(self, event: Told) -> History:
        """A running trial has ended, or rests."""
        running, outcome = self.running_trial(event.trial), event.outcome
        iterative = len(running.curve) > 0
        cost = outcome.cost if not iterative or outcome.cost is None else (running.cost or 0.0) + outcome.cost
        alive = outcome.status is Status.PAUSED
        trial = replace(
            running,
            status=outcome.status,
            value=_least(running.value, outcome.value),
            cost=running.cost if iterative and cost is None else cost,
            error=outcome.error,
            attributes={**running.attributes, **outcome.attributes},
            kept_step=running.kept_step if alive else running.saved_step,
            counted=running.counted or outcome.status is not Status.INTERRUPTED,
            undecided=running.undecided and alive and outcome.error is not None,
        )
        learned = len(trial.curve) if iterative and trial.status is Status.COMPLETE else None
        return replace(self.with_trial(trial), max_steps=self.max_steps or learned)

    def running_trial(self, number: int) -> Trial:
        """The trial of that number, which must be running."""
        if not 0 <= number < len(self.trials):
            raise UnknownTrial(f"trial {number} was never asked for; trials are 0 to {len(self.trials) - 1}")
        trial = self.trials[number]
        if trial.status is not Status.RUNNING:
            raise UnknownTrial(f"trial {number} is {trial.status.value}: only a running trial can be told")
        return trial

    def interrupted(self) -> History:
        """As read from a file: whatever was running there is not running any more, and what was paused not alive."""
        gone = {Status.RUNNING: Status.INTERRUPTED, Status.PAUSED: Status.PAUSED}
        trials = (
            replace(t, status=gone[t.status], kept_step=t.saved_step) if t.status in gone else t for t in self.trials
        )
        return replace(self, trials=tuple(trials))

    def of(self, *status: Status) -> list[Trial]:
        return [trial for trial in self.trials if trial.status in status]

    def count(self, *status: Status) -> int:
        """How many trials there are of these kinds, of all kinds if none is named."""
        return sum(self._trials.counts.get(kind, 0) for kind in set(status)) if status else len(self.trials)

    @property
    def taken(self) -> KeySet:
        """What makes two configurations the same, of all that were asked for."""
        return self._trials.keys

    @property
    def cut_short(self) -> list[Trial]:
        """Trials that were interrupted, or paused by the end of the study and not by its policy."""
        return self._trials.cut_short

    @property
    def complete(self) -> list[Trial]:
        return self.of(Status.COMPLETE)

    @property
    def costed(self) -> list[Trial]:
        """Trials whose cost is known, however they ended."""
        return [trial for trial in self.trials if trial.cost is not None]

    @property
    def running(self) -> list[Trial]:
        return self._trials.running

    @property
    def incumbent(self) -> Trial | None:
        """The trial of least value, the earliest of equals; of an iterative learner any that reported one."""
        return self._trials.best


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def units(trials: list[Trial], p: int) -> Array:
    """U of some trials, (n, p)."""
    return np.concatenate([trial.unit for trial in trials]).reshape(-1, p) if trials else np.empty((0, p))


def values(trials: list[Trial]) -> Array:
    """y of complete trials, (n,)."""
    return np.array([trial.value for trial in trials], dtype=np.float64)
