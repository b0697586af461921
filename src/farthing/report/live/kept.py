"""What was computed of a study, kept until it is out of date."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock

from farthing.report.live.answers import Answer

MOST = 100  # answers: the figures, and some pages of the table of trials


@dataclass(frozen=True)
class _Kept:
    answer: Answer
    stage: object  # of the study, when it was computed
    rests_until: float  # it is shown until then even if the study has gone on


class KeptAnswers:
    """Answers of one study by name. `clock` counts seconds.

    A study that runs changes all the time, and a figure may take long: after it was computed it rests for at least
    `rest` seconds and for several times as long as it took. Meanwhile the old one is given, which says of itself how
    old it is.
    """

    REST = 3.0  # seconds of rest for each one that computing an answer took

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._kept: dict[Hashable, _Kept] = {}

    def answer(self, name: Hashable, stage: object, make: Callable[[], Answer], rest: float = 0.0) -> Answer:
        """The answer of that name at that stage of the study; a bit older if it rests."""
        with self._lock:
            kept, now = self._kept.get(name), self._clock()
            if kept is not None and (kept.stage == stage or now < kept.rests_until):
                return kept.answer
        made = make()
        with self._lock:
            ended = self._clock()
            rests = max(rest, (ended - now) * self.REST) if rest else 0.0
            self._kept.pop(name, None)
            self._kept[name] = _Kept(made, stage, ended + rests)
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return made
