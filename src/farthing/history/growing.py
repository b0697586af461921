"""A history that changes in place, for a moment: while a file of a hundred thousand events is read, nobody sees what
was in between, and keeping each version would take most of the time.

`GrowingHistory` knows what events ask of a history and no more. `History` is the value that comes out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from dataclasses import replace
from typing import Any

from farthing.history.history import History, TrackedTrial, Trials, best_after, running_trial


class GrowingHistory:
    """What becomes of a history, event by event.

    >>> from farthing.trial import Status
    >>> growing = GrowingHistory(History(seed=0))
    >>> growing.with_trial(TrackedTrial(0, {}, Status.COMPLETE, 0.5)).history().incumbent.value
    0.5
    """

    def __init__(self, begun: History) -> None:
        self._begun = begun
        self.trials, self.best = list(begun.trials), begun.trials.best
        self.asks, self.fits = begun.asks, dict(begun.fits)
        self.max_steps, self.worth = begun.max_steps, begun.worth
        self._taken: set[Hashable] | None = None

    def history(self) -> History:
        """As a value."""
        return replace(
            self._begun, trials=Trials.of(self.trials), asks=self.asks, fits=dict(self.fits), max_steps=self.max_steps,
            worth=self.worth,
        )  # fmt: skip

    def with_trial(self, trial: TrackedTrial) -> GrowingHistory:
        """Takes that one in at the place of its number."""
        if trial.number == len(self.trials):
            self.trials.append(trial)
        else:
            self.trials[trial.number] = trial
        self.best = best_after(self.trials, self.best, trial)
        if self._taken is not None:
            self._taken.add(trial.key)
        return self

    @property
    def taken(self) -> Set[Hashable]:
        """Keys of all configurations that were asked for; few events ask, so it is made when one does."""
        if self._taken is None:
            self._taken = {trial.key for trial in self.trials}
        return self._taken

    @property
    def best_value(self) -> float | None:
        """The least value of all that did not fail."""
        return None if self.best is None else self.best.value

    def with_asked(self, trial: TrackedTrial, asks: int, fits: Mapping[str, Any]) -> GrowingHistory:
        """Takes in what an ask has proposed and found."""
        self.asks = asks
        self.fits.update(fits)
        return self.with_trial(trial)

    def changed(self, **fields: Any) -> GrowingHistory:
        """Puts other values into some fields."""
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def running_trial(self, number: int) -> TrackedTrial:
        """The trial of that number, which must be running."""
        return running_trial(self.trials, number)
