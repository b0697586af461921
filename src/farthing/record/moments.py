"""What a study knew when some of its trials were asked for, kept as the events go by.

A figure shows a few dozen of these moments. Reading the log again for each of them would take longer than anything else
in it; states share what they have in common, so that keeping a few takes hardly any memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.record.events import Asked
from farthing.record.state import Event, GrowingState, State

MOST = 64  # that are kept
MOST_TRIALS = 10_000  # of a study whose file is read again for them


@dataclass(frozen=True)
class Moment:
    """When a trial was asked for first."""

    asked: Asked
    before: State
    earlier: tuple[Asked, ...]  # proposals of the same ask, which were running then

    @property
    def trial(self) -> int:
        return self.asked.proposal.trial

    @property
    def state(self) -> State:
        """What was known, as `Record.before` has it; not what it was prepared from."""
        return self.asked.seen(self.before, self.earlier)


class Moments:
    """The moments of every first, second, fourth, ... trial: of as many as there is room for."""

    def __init__(self, most: int = MOST, trials: int = 0) -> None:
        """`trials` that will come, so that nothing is kept in vain."""
        self._most, self._stride = most, 1
        while trials > most * self._stride:
            self._stride *= 2
        self._kept: list[Moment] = []
        self._of_ask: list[Asked] = []

    @property
    def kept(self) -> tuple[Moment, ...]:
        """By number of the trial, evenly spread."""
        return tuple(self._kept)

    @classmethod
    def of(cls, events: Sequence[Event], begun: State) -> Moments:
        """Those of a study that was read; none of a very large one, which would take seconds."""
        trials = 1 + max((event.proposal.trial for event in events if isinstance(event, Asked)), default=-1)
        moments = cls(trials=trials)
        if trials <= MOST_TRIALS:
            state = GrowingState(begun)
            for event in events:
                moments.pass_by(event, state)
                state = event.applied(state)
        return moments

    def pass_by(self, event: Event, state: State | GrowingState) -> None:
        """An event is about to be applied to a state."""
        if not isinstance(event, Asked):
            return
        if self._of_ask and self._of_ask[-1].ask != event.ask:
            self._of_ask = []
        trial = event.proposal.trial
        if trial == len(state.history.trials) and trial % self._stride == 0:
            before = state if isinstance(state, State) else state.state()
            self._keep(Moment(event, before, tuple(self._of_ask)))
        self._of_ask.append(event)

    def _keep(self, moment: Moment) -> None:
        self._kept.append(moment)
        while len(self._kept) > self._most:
            self._stride *= 2
            self._kept = [kept for kept in self._kept if kept.trial % self._stride == 0]


def every(moments: tuple[Moment, ...], most: int) -> tuple[Moment, ...]:
    """At most so many of them: every first, second, fourth, ..., so that a study that grows keeps those it shows."""
    stride = 1
    while len(found := [moment for moment in moments if moment.trial % stride == 0]) > most:
        stride *= 2
    return tuple(found)
