"""Trials by number, and what is asked of them at every event, kept up to date instead of searched for.

A study of ten thousand trials looks at its running ones, its best one and its taken configurations twenty thousand
times. `Trials` is a value: `with_trial` returns a new one in O(log n), and the old one stays as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from farthing.history.persistent import KeySet, Vector
from farthing.trial import Status, Trial

Numbers = tuple[int, ...]  # of trials, ascending


@dataclass(frozen=True, eq=False)
class Trials(Sequence[Trial]):
    """An immutable sequence of trials, each in the place of its number; equal to any sequence of equal ones."""

    _all: Vector[Trial] = field(default_factory=Vector)
    _running: Numbers = ()
    _cut_short: Numbers = ()
    _best: Trial | None = None
    counts: Mapping[Status, int] = field(default_factory=dict)
    keys: KeySet = field(default_factory=KeySet)  # of all of them

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Trials:
        """These trials, as they are if they are such a sequence already."""
        if isinstance(trials, Trials):
            return trials
        held = tuple(trials)
        return cls(
            Vector.of(held),
            tuple(trial.number for trial in held if trial.status is Status.RUNNING),
            tuple(trial.number for trial in held if is_cut_short(trial)),
            _best_of(held),
            Counter(trial.status for trial in held),
            KeySet.of(trial.key for trial in held),
        )

    def with_trial(self, trial: Trial) -> Trials:
        """With that one in the place of its number, which may be the next."""
        number = trial.number
        before = self._all[number] if number < len(self._all) else None
        if before is not None and before.key != trial.key:  # a key is not given back by taking in another
            return Trials.of((*self._all[:number], trial, *self._all[number + 1 :]))
        grown = Trials(
            self._all.with_item(number, trial),
            _with(self._running, number, trial.status is Status.RUNNING),
            _with(self._cut_short, number, is_cut_short(trial)),
            self._best,
            _counted(self.counts, before, trial),
            self.keys.with_key(trial.key) if before is None else self.keys,
        )
        return replace(grown, _best=_best_after(grown, self._best, trial))

    @property
    def running(self) -> list[Trial]:
        return [self._all[number] for number in self._running]

    @property
    def cut_short(self) -> list[Trial]:
        """Trials that were interrupted, or paused by the end of the study and not by its policy."""
        return [self._all[number] for number in self._cut_short]

    @property
    def best(self) -> Trial | None:
        """The trial of least value, the earliest of equals, that did not fail."""
        return self._best

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, index: int | slice) -> Trial | tuple[Trial, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trials | tuple):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(map(_equal, self, other)))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def is_cut_short(trial: Trial) -> bool:
    """Whether it was interrupted, or paused by the end of the study and not by its policy."""
    return trial.status is Status.INTERRUPTED or (trial.status is Status.PAUSED and bool(trial.error))


def _equal(a: Trial, b: Trial) -> bool:
    return a is b or a == b


def _with(numbers: Numbers, number: int, belongs: bool) -> Numbers:
    """The numbers with that one among them, or without it."""
    place = bisect_left(numbers, number)
    there = place < len(numbers) and numbers[place] == number
    if there == belongs:
        return numbers
    return (*numbers[:place], number, *numbers[place:]) if belongs else (*numbers[:place], *numbers[place + 1 :])


def _counted(counts: Mapping[Status, int], before: Trial | None, trial: Trial) -> Mapping[Status, int]:
    if before is not None and before.status is trial.status:
        return counts
    changed = dict(counts)
    if before is not None:
        changed[before.status] -= 1
    changed[trial.status] = changed.get(trial.status, 0) + 1
    return changed


def _rank(trial: Trial) -> tuple[float, int] | None:
    """What makes one trial better than another, None for one that cannot be the best."""
    if trial.value is None or trial.status is Status.FAILED:
        return None
    return trial.value, trial.number


def _best_of(trials: Iterable[Trial]) -> Trial | None:
    ranked = [(rank, trial) for trial in trials if (rank := _rank(trial)) is not None]
    return min(ranked, key=lambda pair: pair[0], default=(None, None))[1]


def _best_after(trials: Iterable[Trial], best: Trial | None, changed: Trial) -> Trial | None:
    """The best once a trial has changed; all are looked at only when the best itself has become worse."""
    rank, held = _rank(changed), None if best is None else _rank(best)
    if rank is not None and (held is None or rank <= held):
        return changed
    return _best_of(trials) if best is not None and best.number == changed.number else best
