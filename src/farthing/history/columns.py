"""Trials as columns: what a table sorts by and a figure draws, without a look at each trial for each of them.

n  trials; column entry i belongs to the trial of number i. NaN stands for what is not known, or not yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.checks import one_of
from farthing.errors import NoTrial
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.trial import EndedBy, Status, Trial

STATUSES = tuple(Status)
CODES = {status: code for code, status in enumerate(STATUSES)}  # of a status in `Columns.status`
SORTED_BY = ("number", "status", "value", "cost", "predicted_cost", "steps", "began", "ended")


class Bought(NamedTuple):
    """What a study had bought after each trial that ended, in that order (m,): from the first one with a value."""

    cost: Array  # all that trials had cost until then
    value: Array  # the best until then, minimised
    last: Ints  # the trial that ended


@dataclass(frozen=True, eq=False)
class Columns:
    """Some of what is known of each trial, each (n,)."""

    status: NDArray[np.int8]  # codes: places in STATUSES
    value: Array
    cost: Array
    predicted_cost: Array
    steps: Ints  # that were reported
    began: Array  # seconds since 1970
    ended: Array
    added: Mask  # known results, which this study did not pay for
    unsuccessful: Mask  # ended without a value by their own doing

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Columns:
        """
        >>> columns = Columns.of([Trial(0, {}, Status.COMPLETE, 0.5), Trial(1, {}, Status.FAILED, cost=2.0)])
        >>> columns.value.tolist(), columns.cost.tolist(), columns.where(Status.FAILED).tolist()
        ([0.5, nan], [nan, 2.0], [False, True])
        """
        held = list(trials)
        status = np.array([CODES[trial.status] for trial in held], dtype=np.int8)
        by_budget = np.array([trial.ended_by is EndedBy.BUDGET for trial in held], dtype=np.bool_)
        killed, failed = status == CODES[Status.KILLED], status == CODES[Status.FAILED]
        value, cost, predicted_cost, began, ended = (
            np.array([getattr(trial, name) for trial in held], dtype=np.float64)  # None becomes NaN
            for name in ("value", "cost", "predicted_cost", "began", "ended")
        )
        steps = np.array([len(trial.curve.values) for trial in held], dtype=np.intp)
        added = np.array([getattr(trial, "added", False) for trial in held], dtype=np.bool_)
        return cls(status, value, cost, predicted_cost, steps, began, ended, added, failed | (killed & ~by_budget))

    def __len__(self) -> int:
        return len(self.status)

    @cached_property
    def turned(self) -> Columns:
        """With values in the other sign."""
        return replace(self, value=-self.value)

    @property
    def number(self) -> Ints:
        """The numbers of the trials."""
        return np.arange(len(self))

    def where(self, *status: Status) -> Mask:
        """Which trials are of these kinds."""
        return np.isin(self.status, [CODES[kind] for kind in status])

    def order(self, by: str, *, descending: bool = False) -> Ints:
        """The numbers of all trials, sorted by a column of SORTED_BY; what is not known comes last, and equals stay in
        the order of their numbers.

        >>> columns = Columns.of([Trial(i, {}, Status.COMPLETE, value) for i, value in enumerate([3.0, None, 1.0])])
        >>> columns.order("value").tolist(), columns.order("value", descending=True).tolist()
        ([2, 0, 1], [0, 2, 1])
        """
        column = np.asarray(getattr(self, one_of("sort", by, SORTED_BY)), dtype=np.float64)
        return np.argsort(-column if descending else column, kind="stable")  # NaN is sorted last

    @cached_property
    def bought(self) -> Bought:
        """Total cost and best value in the order in which trials ended, or NoTrial if a cost is not known."""
        return bought(self.value, self.cost, self.ended, self.added, self.where(Status.RUNNING), self.unsuccessful)


def bought(value: Array, cost: Array, ended: Array, added: Mask, running: Mask, unsuccessful: Mask) -> Bought:
    """What was bought by trials of which these things are known, each (n,).

    Known results count as values that were there from the start, for nothing. Values are minimised.
    """
    order = np.lexsort((np.arange(len(value)), np.nan_to_num(ended), ~added))
    order = order[~running[order]]
    if (missing := order[(np.isnan(cost) & ~np.isnan(value) & ~added)[order]]).size:
        raise unknown_cost(int(missing[0]))
    paid = np.where(added, 0.0, np.nan_to_num(cost))[order]
    good = np.where(unsuccessful | np.isnan(value), np.inf, value)[order]
    spent, best = np.cumsum(paid), np.minimum.accumulate(good)
    begun = np.isfinite(best)
    return Bought(spent[begun], best[begun], order[begun])


def unknown_cost(trial: int) -> NoTrial:
    return NoTrial(
        f"value_cost_front: the cost of trial {trial} is not known, so no total is; tell(..., cost=...) gives it"
    )
