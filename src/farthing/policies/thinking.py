"""How long thinking takes, and which way of thinking there is time for.

The time of an ask is mostly that of its models: a number of factorisations (`FACTORISATIONS`) of a matrix with a row
for each observation. What one of them takes is measured here once; what asks really take corrects that as they are
made. The way is chosen before thinking begins. If the choice was wrong the attempt is given up at its deadline and a
cheaper way is taken, for which there is time left (`RESERVE`).

Nothing of this changes what a way proposes: `Way` says why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np

from farthing.history.ways import MOST_FEW, Way
from farthing.numerics.deadline import OutOfTime, within
from farthing.surrogates import gp

T = TypeVar("T")

REFERENCE_ROWS = 256  # of the factorisation that is timed: a few milliseconds
TIMED = 3  # times: the quickest counts, since other programs can only make it slower
CUBIC_FROM = 4_000  # rows: from there on factorising (n^3) takes longer than filling the matrix (n^2)
LEAST_ROWS = 100  # with fewer, calling functions takes the time
SEARCH = 24.0  # reference factorisations: what two searches take besides; near the end of a budget there are two
# Per ask, measured with 500 to 2,000 trials. `ei` takes 10 in full, 35 when it starts from several places; models of
# cost take up to twice that besides. With kept hyperparameters there is one for each model, and predictions.
FACTORISATIONS = {Way.FULL: 60.0, Way.KEPT: 5.0, Way.FEW: 5.0}
MEMORY = 0.9  # of the log of a pace, each time its way is passed over: 10 times too slow is 2 times after 12 asks
RESERVE = {Way.FULL: 2.0, Way.KEPT: 2.0}  # times what a way takes must be left: if it is given up, another one follows


def seconds_of(way: Way, rows: int, reference: float) -> float:
    """Seconds that an ask takes with `rows` observations, where the reference factorisation takes `reference`."""
    if way is Way.NONE:
        return 0.0
    rows = min(rows, MOST_FEW) if way is Way.FEW else rows
    return reference * (SEARCH + FACTORISATIONS[way] * factorisation(rows))


def factorisation(rows: int) -> float:
    """What a factorisation takes, in multiples of the reference."""
    return _work(max(rows, LEAST_ROWS)) / _work(REFERENCE_ROWS)


def _work(rows: int) -> float:
    return rows**2 * (1.0 + rows / CUBIC_FROM)


def way_within(seconds: float, predicted: Mapping[Way, float]) -> Way:
    """The most careful way that fits into `seconds`, given what each takes.

    >>> way_within(1.0, {Way.FULL: 9.0, Way.KEPT: 0.6, Way.FEW: 0.1, Way.NONE: 0.0}).value
    'few'
    """
    in_time = (way for way in Way if way in predicted and predicted[way] * RESERVE.get(way, 1.0) <= seconds)
    return next(in_time, Way.NONE)


@cache
def reference_seconds() -> float:
    """What the reference factorisation takes here."""
    X = np.random.default_rng(0).random((REFERENCE_ROWS, 4))
    hyperparameters = gp.Hyperparameters((0.0,) * 4, math.log(1e-2))
    taken = []
    for _ in range(TIMED):
        began = time.perf_counter()
        gp.from_hyperparameters(X, X[:, 0], hyperparameters)
        taken.append(time.perf_counter() - began)
    return min(taken)


@dataclass(eq=False)
class Thinking:
    """Chooses ways, and learns what they take: `paces` are the seconds taken, divided by those predicted."""

    paces: dict[Way, float] = field(default_factory=dict)

    def within(self, seconds: float, rows: int | None, think: Callable[[Way], T]) -> tuple[T, Way]:
        """What `think` finds in at most `seconds`, and the way it took. `rows` are the observations of the
        largest model, None for a policy that knows no ways."""
        if math.isinf(seconds) or rows is None:
            return think(Way.FULL), Way.FULL
        end, ways = time.perf_counter() + seconds, list(Way)
        while True:
            began = time.perf_counter()
            way = way_within(end - began, {way: self.predicted(way, rows) for way in ways})
            self._forget(ways[: ways.index(way)])
            if way is Way.NONE:
                return think(way), way
            try:
                with within((end - began) / RESERVE.get(way, 1.0)):
                    found = think(way)
            except OutOfTime:
                self._learn(way, rows, 2.0 * (time.perf_counter() - began))  # it would have taken longer
                ways = ways[ways.index(way) + 1 :]
            else:
                self._learn(way, rows, time.perf_counter() - began)
                return found, way

    def ahead(self, seconds: float, rows: int, think: Callable[[Way], T]) -> tuple[T, Way]:
        """As `within`, for what is prepared in the background: nobody waits for it, so the way FEW may take longer than
        `seconds`, and an attempt that does is not given up."""
        predicted = {way: self.predicted(way, rows) for way in (Way.FULL, Way.KEPT)}
        way = way_within(seconds, predicted)
        way = Way.FEW if way is Way.NONE else way
        self._forget(list(Way)[: list(Way).index(way)])
        began = time.perf_counter()
        found = think(way)
        self._learn(way, rows, time.perf_counter() - began)
        return found, way

    def predicted(self, way: Way, rows: int) -> float:
        """Seconds that a way will take."""
        return self.paces.get(way, 1.0) * seconds_of(way, rows, reference_seconds())

    def _forget(self, passed_over: Sequence[Way]) -> None:
        """A way that is not tried cannot show that it has become faster: what was slow once is tried again later."""
        for way in passed_over:
            self.paces[way] = self.paces.get(way, 1.0) ** MEMORY

    def _learn(self, way: Way, rows: int, seconds: float) -> None:
        """Take the mean of what was known and what was seen: fits take turns being short and long. What took less than
        a factorisation needed no model, and says nothing."""
        reference = reference_seconds()
        if seconds < reference * factorisation(min(rows, MOST_FEW)):
            return
        self.paces[way] = 0.5 * (self.paces.get(way, 1.0) + seconds / seconds_of(way, rows, reference))
