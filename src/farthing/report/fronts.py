"""The EI-cost fronts of a study at several of its asks, each computed once.

What an ask of the past saw does not change, so that a live page, which draws again and again, has all of them after a
while even if each drawing may take only a moment. They are computed from coarse to fine, so that those that there was
time for are evenly spread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from farthing.acquisitions.pareto import Front
from farthing.errors import NoTrial, SpaceExhausted
from farthing.history import Way
from farthing.numerics.arrays import Array
from farthing.numerics.threads import one_blas_thread
from farthing.policies.fits import FEWEST_VALUES, FittedModels
from farthing.policies.pareto import landscape_of, modelled_by
from farthing.policies.quick_fronts import quick_front, quick_models
from farthing.record.moments import Moment, every
from farthing.record.state import State
from farthing.session import Session
from farthing.trial import Status

T = TypeVar("T")

SHARE_OF_FRONTS = 0.8  # of the time; the rest is for where their points have moved to


@dataclass(frozen=True)
class FrontThen:
    """A front, when a trial was asked for or now, and where the points of the one before are by then."""

    trial: int | None  # None: now
    front: Front
    moved: tuple[Array, Array] | None = None  # log cost and log EI (m,) of the points of the front before it


class Fronts:
    """The fronts of one session."""

    def __init__(self) -> None:
        self._then: dict[int, Front | None] = {}  # by trial; None where there was none
        self._moved: dict[tuple[int, int], tuple[Array, Array]] = {}  # by the trials before and after
        self._now: tuple[int, Front] | None = None  # after so many events
        self._fits: Mapping[str, Any] = {}  # of now, for a policy that fits no models

    def at_most(self, session: Session, most: int, seconds: float) -> list[FrontThen]:
        """Some of the fronts that were seen when trials were asked for, by trial, and at last the one of now; without
        where their points have moved to. There are fewer if they took longer than that."""
        begun = time.perf_counter()
        now = self._front_now(session)
        longest = time.perf_counter() - begun
        moments = every(_modelled(session), most - 1)
        for moment in coarse_to_fine(moments):
            if moment.trial in self._then:
                continue
            start = time.perf_counter()
            if start - begun + longest > seconds:
                break
            self._then[moment.trial] = self._front_of(session, moment)
            longest = max(longest, time.perf_counter() - start)
        known = [(moment.trial, self._then.get(moment.trial)) for moment in moments]
        return [*(FrontThen(trial, front) for trial, front in known if front is not None), FrontThen(None, now)]

    def with_moves(self, session: Session, most: int, seconds: float) -> list[FrontThen]:
        """The same with where the points of each have moved to when the next was seen."""
        fronts = self.at_most(session, most, SHARE_OF_FRONTS * seconds)
        moments = {moment.trial: moment for moment in session.record.moments.kept}
        shown = fronts[:1]
        for before, after in pairwise(fronts):
            assert before.trial is not None  # only the last is of now
            moment = None if after.trial is None else moments[after.trial]
            shown.append(FrontThen(after.trial, after.front, self._moves(session, before.trial, before.front, moment)))
        return shown

    def _moves(self, session: Session, before: int, front: Front, moment: Moment | None) -> tuple[Array, Array]:
        """Where the points of an earlier front were at a moment, or are now."""
        if moment is None:
            return self._at(self._models(session, None), front.U)
        key = before, moment.trial
        if key not in self._moved:
            self._moved[key] = self._at(self._models(session, moment), front.U)
        return self._moved[key]

    def _at(self, models: FittedModels, U: Array) -> tuple[Array, Array]:
        with one_blas_thread():
            return landscape_of(models).at(U)

    def _front_now(self, session: Session) -> Front:
        events = session.record.events
        if self._now is None or self._now[0] != events:
            models = self._models(session, None)
            self._fits = {"value": models.fits["value"]}
            with one_blas_thread():
                self._now = events, quick_front(models, session.policy)
        return self._now[1]

    def _front_of(self, session: Session, moment: Moment) -> Front | None:
        try:
            with one_blas_thread():
                return quick_front(self._models(session, moment), session.policy)
        except (NoTrial, SpaceExhausted):
            return None

    def _models(self, session: Session, moment: Moment | None) -> FittedModels:
        state: State = session.record.state if moment is None else moment.state
        found = {} if moment is None else moment.asked.proposal.fits
        with one_blas_thread():
            return quick_models(state, session.policy, found, self._fits)


_of_session: WeakKeyDictionary[Session, Fronts] = WeakKeyDictionary()


def fronts_of(session: Session) -> Fronts:
    """Those of a session, which remembers them as long as it lives."""
    return _of_session.setdefault(session, Fronts())


def _modelled(session: Session) -> tuple[Moment, ...]:
    """The moments at which a model of values chose, and had values to know."""
    is_modelled = modelled_by(session.record, session.policy)
    return tuple(
        moment
        for moment in session.record.moments.kept
        if is_modelled(moment.trial, moment.asked.proposal.fits) and moment.asked.way is not Way.NONE
        and moment.before.history.count(Status.COMPLETE) >= FEWEST_VALUES
    )  # fmt: skip


def coarse_to_fine(items: Sequence[T]) -> list[T]:
    """The first, then those that halve the gaps, again and again.

    >>> coarse_to_fine("abcdefgh")
    ['a', 'e', 'c', 'g', 'b', 'd', 'f', 'h']
    """
    order: list[int] = [0] if items else []
    stride = 1
    while stride < len(items):
        stride *= 2
    while stride > 1:
        order += range(stride // 2, len(items), stride)
        stride //= 2
    return [items[i] for i in order]
