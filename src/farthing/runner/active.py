"""Evaluations that are advancing, and when something is due: however many there are, one event takes the same time.

What is asked after every event is kept, and not added up: how many there are, how old they are together, and which of
them reaches a limit first. With thousands of evaluations side by side a look at each of them would take longer than all
the rest of an event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from farthing.runner.checkpoints import Checkpoints
from farthing.runner.clock import Ages
from farthing.runner.limits import TrialLimits
from farthing.runner.meters import Gauges
from farthing.trial import EndedBy, Status

TICKS = 10**9  # per second: sums of whole ticks are exact, however often something is added and taken away
SPARE = 64  # entries that may be outdated before the queue is made anew, and as many as there are evaluations


@dataclass(frozen=True)
class Verdict:
    """Why an evaluation has to end, and how long it has to do so by itself."""

    grace: float  # seconds
    status: Status
    ended_by: EndedBy
    error: str


@dataclass(frozen=True)
class Doom:
    """That an evaluation will be killed: when, and how that is recorded."""

    kill_at: float
    verdict: Verdict

    @property
    def since(self) -> float:
        return self.kill_at - self.verdict.grace


@dataclass
class Active:
    """An evaluation that is advancing. When it began an action and how it is doomed, only `Advancing` may change."""

    checkpoints: Checkpoints
    began: float  # of the action that is being waited for
    before: float = 0.0  # seconds of the actions before it, since the run began
    gauges: Gauges = field(default_factory=Gauges)
    limits: TrialLimits = field(default_factory=TrialLimits)  # of its seconds, those before included
    doom: Doom | None = None

    def age(self, now: float) -> float:
        """Seconds that were not charged yet."""
        return max(now - self.began, 0.0)

    @property
    def due(self) -> float:
        """When something has to be done about it: it is killed, or reaches its limit; never earlier than it was, but
        for a doom."""
        return self.began + self.limits.seconds - self.before if self.doom is None else self.doom.kill_at


class Advancing(Mapping[int, Active]):
    """Evaluations by the number of their trial, in the order in which they began."""

    def __init__(self) -> None:
        self._all: dict[int, Active] = {}
        self._doomed = 0
        self._began = 0  # the sum of when they began, in ticks
        self._queue: list[tuple[float, int]] = []  # when something may be due, and about whom

    def __getitem__(self, number: int) -> Active:
        return self._all[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, number: int, active: Active) -> None:
        self._all[number] = active
        self._began += _ticks(active.began)
        self._expect(number, active)

    def begin(self, number: int, now: float) -> None:
        """One begins another action."""
        active = self._all[number]
        self._began += _ticks(now) - _ticks(active.began)
        active.began = now

    def doom(self, number: int, doom: Doom) -> None:
        """One will be killed."""
        active = self._all[number]
        self._doomed += active.doom is None
        active.doom = doom
        self._expect(number, active)

    def pop(self, number: int) -> Active:
        """One that does not advance any more."""
        active = self._all.pop(number)
        self._doomed -= active.doom is not None
        self._began -= _ticks(active.began)
        return active

    @property
    def are_doomed(self) -> bool:
        """Whether all of them will be killed."""
        return self._doomed == len(self._all)

    def ages(self, now: float) -> Ages:
        """Of all of them together."""
        count = len(self._all)
        return Ages(count, max(count * _ticks(now) - self._began, 0) / TICKS)

    def next_due(self) -> float:
        """When something has to be done about one of them; infinite if never."""
        while self._queue:
            when, number = self._queue[0]
            active = self._all.get(number)
            if active is None or active.due < when:  # it is gone, or there is an earlier entry
                heappop(self._queue)
            elif active.due > when:  # it has done a step since
                heapreplace(self._queue, (active.due, number))
            else:
                return when
        return math.inf

    def due(self, now: float) -> Iterator[int]:
        """Those about whom something has to be done by now. The caller does it before it asks for the next one."""
        while self.next_due() <= now:
            yield self._queue[0][1]

    def _expect(self, number: int, active: Active) -> None:
        if math.isinf(active.due):
            return
        heappush(self._queue, (active.due, number))
        if len(self._queue) > 2 * len(self._all) + SPARE:
            self._queue = [(one.due, number) for number, one in self._all.items() if one.due < math.inf]
            heapify(self._queue)


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS)
