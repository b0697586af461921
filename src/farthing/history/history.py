"""History: an immutable view of all trials as policies and runners see them, and the arrays the models see.

Symbols: U (n, p) unit coordinates, y (n,) values to minimise, c (n,) costs. Growing returns a new History in O(log n);
trials of the past are shared, not copied.

A study of ten thousand trials looks at its running ones, its best one and its taken configurations twenty thousand
times. `Trials` is a value: `with_trial` returns a new one in O(log n), and the old one stays as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Self, overload

import numpy as np

from farthing.budget import Ledger
from farthing.errors import UnknownTrial
from farthing.history.columns import Columns
from farthing.history.cost_knowledge import CostKnowledge
from farthing.history.persistent import KeySet, Vector
from farthing.history.warm_start import WarmStart
from farthing.history.ways import Way
from farthing.numerics.arrays import Array
from farthing.space import Space
from farthing.trial import ENDS_OF_STUDY, Proposal, Status, Trial

Numbers = tuple[int, ...]  # of trials, ascending
MANY = 32  # changed trials, so that it pays to go through all once more


class Place:
    """Where a configuration is: its `key`, which makes two configurations the same, and its unit coordinates, which are
    computed when somebody first needs them. Versions of one trial share it."""

    __slots__ = ("_space", "_unit", "key")

    def __init__(self, key: tuple[Any, ...] = (), unit: Array | None = None, space: Space | None = None) -> None:
        self.key, self._unit, self._space = key, unit, space

    @classmethod
    def of(cls, space: Space, config: Mapping[str, Any]) -> Place:
        return cls(space.key(config), None, space)

    @property
    def unit(self) -> Array:
        """(p,), in the unit cube."""
        if self._unit is None:
            self._unit = np.empty(0) if self._space is None else self._space.unit_of(self.key)
        return self._unit


NOWHERE = Place()


@dataclass(frozen=True)
class TrackedTrial(Trial):
    """A trial with what policies and runners need to know beyond what users see.

    Training goes on from step `kept_step`: where it was paused while the learner is alive, else where its last
    checkpoint was written, else 0.
    """

    kept_step: int = 0  # of a running trial, where it is
    saved_step: int = 0  # of the last checkpoint
    from_step: int = field(default=0, repr=False, compare=False)  # where it went on when it was planned last
    until_step: int | None = field(default=None, repr=False)  # where it is to be paused, as planned last
    counted: bool = field(default=False, repr=False)  # as an evaluation
    undecided: bool = field(default=False, repr=False)  # nothing was decided or done since its last step
    pending: bool = field(default=False, repr=False)  # given by `ask` to a loop of the user's, and not by a run
    forgotten: bool = field(default=False, repr=False)  # its loop gave it up: it does not run again
    added: bool = field(default=False, repr=False)  # a known result, which this study did not pay for
    cold: bool = field(default=False, repr=False, compare=False)  # it began before any had ended, and was measured
    start_up: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)  # by unit, before it began
    place: Place = field(default=NOWHERE, repr=False, compare=False)

    def changed(self, **fields: Any) -> Self:
        """With other values in some fields; `replace` would take four times as long."""
        new = object.__new__(type(self))
        held = new.__dict__
        held.update(self.__dict__)
        held.update(fields)
        if len(held) != len(self.__dict__):
            raise TypeError(f"a trial has no field of a name in {list(fields)}")
        return new

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two configurations the same."""
        return self.place.key

    @property
    def unit(self) -> Array:
        """(p,), in the unit cube."""
        return self.place.unit

    @property
    def needs_start(self) -> bool:
        """Whether a process has to be found for it before it goes on: a learner that is alive holds one, and is further
        than its checkpoint."""
        return self.kept_step == self.saved_step

    @property
    def cut_short(self) -> bool:
        """Whether it was interrupted, or paused by the end of the study and not by its policy, and is to go on."""
        if self.status is Status.INTERRUPTED:
            return not self.forgotten
        return self.status is Status.PAUSED and self.ended_by in ENDS_OF_STUDY


@dataclass(frozen=True, eq=False)
class Trials(Sequence[TrackedTrial]):
    """An immutable sequence of trials, each in the place of its number; equal to any sequence of equal ones."""

    _all: Vector[TrackedTrial] = field(default_factory=Vector)
    _running: Numbers = ()
    _cut_short: Numbers = ()
    _best: TrackedTrial | None = None
    uncounted: int = 0  # running trials that are no evaluation yet
    counts: Mapping[Status, int] = field(default_factory=dict)
    keys: KeySet = field(default_factory=KeySet)  # of all of them

    @classmethod
    def of(cls, trials: Iterable[TrackedTrial]) -> Trials:
        """These trials, as they are if they are such a sequence already."""
        if isinstance(trials, Trials):
            return trials
        held = tuple(trials)
        return cls(
            Vector.of(held),
            tuple(trial.number for trial in held if trial.status is Status.RUNNING),
            tuple(trial.number for trial in held if trial.cut_short),
            _best_of(held),
            sum(map(_is_uncounted, held)),
            Counter(trial.status for trial in held),
            KeySet.of(trial.key for trial in held),
        )

    def with_trial(self, trial: TrackedTrial) -> Trials:
        """With that one in the place of its number, which may be the next."""
        number = trial.number
        before = self._all[number] if number < len(self._all) else None
        if before is not None and before.key != trial.key:  # a key is not given back by taking in another
            return Trials.of((*self._all[:number], trial, *self._all[number + 1 :]))
        grown = self._all.with_item(number, trial)
        return Trials(
            grown,
            _with(self._running, number, trial.status is Status.RUNNING),
            _with(self._cut_short, number, trial.cut_short),
            best_after(grown, self._best, trial),
            self.uncounted + _is_uncounted(trial) - (before is not None and _is_uncounted(before)),
            _counted(self.counts, before, trial),
            self.keys.with_key(trial.key) if before is None else self.keys,
        )

    def with_trials(self, trials: Iterable[TrackedTrial]) -> Trials:
        """With each of them in the place of its number."""
        changed = list(trials)
        if len(changed) <= MANY:
            return reduce(Trials.with_trial, changed, self)
        held = list(self)
        for trial in changed:
            held[trial.number : trial.number + 1] = [trial]
        return Trials.of(held)

    @property
    def running(self) -> list[TrackedTrial]:
        return [self._all[number] for number in self._running]

    @property
    def resumable(self) -> list[TrackedTrial]:
        """Trials that run or are paused."""
        if not self.counts.get(Status.PAUSED):
            return self.running
        return [trial for trial in self if trial.status in (Status.RUNNING, Status.PAUSED)]

    @property
    def cut_short(self) -> list[TrackedTrial]:
        """Trials that were interrupted, or paused by the end of the study and not by its policy."""
        return [self._all[number] for number in self._cut_short]

    @property
    def best(self) -> TrackedTrial | None:
        """The trial of least value, the earliest of equals, that did not fail."""
        return self._best

    @cached_property
    def columns(self) -> Columns:
        """What tables and figures show of all trials, as arrays."""
        return Columns.of(self)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> TrackedTrial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TrackedTrial, ...]: ...
    def __getitem__(self, index: int | slice) -> TrackedTrial | tuple[TrackedTrial, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[TrackedTrial]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trials | tuple):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(map(_equal, self, other)))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _is_uncounted(trial: TrackedTrial) -> bool:
    return trial.status is Status.RUNNING and not trial.counted


def _equal(a: TrackedTrial, b: TrackedTrial) -> bool:
    return a is b or a == b


def _with(numbers: Numbers, number: int, belongs: bool) -> Numbers:
    """The numbers with that one among them, or without it."""
    place = bisect_left(numbers, number)
    there = place < len(numbers) and numbers[place] == number
    if there == belongs:
        return numbers
    return (*numbers[:place], number, *numbers[place:]) if belongs else (*numbers[:place], *numbers[place + 1 :])


def _counted(counts: Mapping[Status, int], before: TrackedTrial | None, trial: TrackedTrial) -> Mapping[Status, int]:
    if before is not None and before.status is trial.status:
        return counts
    changed = dict(counts)
    if before is not None:
        changed[before.status] -= 1
    changed[trial.status] = changed.get(trial.status, 0) + 1
    return changed


def _rank(trial: TrackedTrial) -> tuple[float, int] | None:
    """What makes one trial better than another, None for one that cannot be the best."""
    if trial.value is None or trial.status is Status.FAILED:
        return None
    return trial.value, trial.number


def _best_of(trials: Iterable[TrackedTrial]) -> TrackedTrial | None:
    ranked = [(rank, trial) for trial in trials if (rank := _rank(trial)) is not None]
    return min(ranked, key=lambda pair: pair[0], default=(None, None))[1]


def best_after(trials: Iterable[TrackedTrial], best: TrackedTrial | None, changed: TrackedTrial) -> TrackedTrial | None:
    """The best once a trial has changed; all are looked at only when the best itself has become worse."""
    rank, held = _rank(changed), None if best is None else _rank(best)
    if rank is not None and (held is None or rank <= held):
        return changed
    return _best_of(trials) if best is not None and best.number == changed.number else best


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
    warm_start: WarmStart | None = None  # what earlier studies found
    max_steps: int | None = None
    way: Way = Way.FULL  # in which a policy is to think about it
    worth: float | None = None  # of an improvement by 1, in the budget's unit; None where nobody has said it
    prepared: Seen | None = None  # what was known when the next ask was prepared, None for one that is made in turn

    def with_trial(self, trial: TrackedTrial) -> History:
        """With that one in the place of its number."""
        return replace(self, trials=self.trials.with_trial(trial))

    def with_asked(self, trial: TrackedTrial, asks: int, fits: Mapping[str, Any]) -> History:
        """With that one in the place of its number after so many asks, the last of which found these fits."""
        return replace(self, trials=self.trials.with_trial(trial), asks=asks, fits={**self.fits, **fits})

    def changed(self, **fields: Any) -> History:
        """With other values in some fields."""
        return replace(self, **fields)

    def running_trial(self, number: int) -> TrackedTrial:
        """The trial of that number, which must be running."""
        return running_trial(self.trials, number)

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

    def start_price(self, unit: str) -> float:
        """What it takes, in a unit, until a new run can begin: the median of those so far. The first of a process waits
        for more than its worker, and says little about the next."""
        amounts = sorted(trial.start_up.get(unit, 0.0) for trial in self.trials)
        return amounts[(len(amounts) - 1) // 2] if amounts else 0.0

    @property
    def pending(self) -> list[TrackedTrial]:
        """Running trials that a loop of the user's was given, which nobody here can end."""
        return [trial for trial in self.running if trial.pending]

    @property
    def incumbent(self) -> TrackedTrial | None:
        """The trial of least value, the earliest of equals; of an iterative learner any that reported one."""
        return self.trials.best


def running_trial(trials: Sequence[TrackedTrial], number: int) -> TrackedTrial:
    """The one of that number, which must be running."""
    if not 0 <= number < len(trials):
        asked = f"trials are 0 to {len(trials) - 1}" if len(trials) else "none was"
        raise UnknownTrial(f"trial {number} was never asked for; {asked}")
    trial = trials[number]
    if trial.status is not Status.RUNNING:
        raise UnknownTrial(f"trial {number} is {trial.status.value}: only a running trial can be told")
    return trial


def once_more(trial: TrackedTrial) -> Proposal:
    """A trial as it was asked for, from where it can go on."""
    return Proposal(
        trial.number, trial.config, trial.predicted_cost, trial.reason,
        start_step=trial.kept_step, until_step=trial.until_step,
    )  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What an ask that was prepared in the background had seen."""

    history: History
    ledger: Ledger


def units(trials: Sequence[TrackedTrial], p: int) -> Array:
    """U of some trials, (n, p)."""
    return np.concatenate([trial.unit for trial in trials]).reshape(-1, p) if trials else np.empty((0, p))


def values(trials: Sequence[TrackedTrial]) -> Array:
    """y of complete trials, (n,)."""
    return np.array([trial.value for trial in trials], dtype=np.float64)
