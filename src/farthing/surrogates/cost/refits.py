"""When the processes among the cost models are fitted again.

Their cost has to grow slowly with the data. From LONE_PROCESS_FROM observations on, the average holds one process, the
heaviest at the last contest: every prediction pays for each. Contests among all are held when the data have grown by
10 %; in between the scores of the others stay as they were, and so do the weights. Hyperparameters are searched for
again when the data have grown by 10 %, those of the heaviest process by 2 %, and from several starts when they have
doubled. In between a process takes in new observations with the hyperparameters it has. A process that is wanted alone
is the heaviest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import EXACT, MOST_FITTED, few_rows
from farthing.surrogates import gp
from farthing.surrogates.cost import log_cost
from farthing.surrogates.cost.counted import CountingCostModel, OnCounts
from farthing.surrogates.cost.lines import LinearCost
from farthing.surrogates.cost.log_cost import CostProcess
from farthing.surrogates.many import found_from_some

Process = CostProcess | OnCounts

PROCESSES = ("gp", "gp-lv", "gp-selected")
ON_COUNTS = "gp-flops"  # the process on the user's own model; it is there where that is
PROCESSES_FROM = 8  # observations: with fewer, a process is often far too sure of itself
SELECTED = 3  # parameters of gp-selected
LONE_PROCESS_FROM = 50  # observations: from here on a process is expensive enough to keep only one
GROWTH, LEADER_GROWTH, COLD_GROWTH = 1.1, 1.02, 2.0  # of the data, as described above
HURRIED_ROWS = 100  # that hyperparameters are found from where there is no time and none were stored: 20 milliseconds


def contest_is_due(stored: Mapping[str, Any], n: int) -> bool:
    """Whether all processes compete again at n observations, or have not yet done so for the place of a lone one."""
    held_at = stored.get("contest_at", 0)
    return bool(held_at < LONE_PROCESS_FROM or n >= GROWTH * held_at)


@dataclass(frozen=True, eq=False)
class Refits:
    """Which processes compete, and their fits: from stored hyperparameters, searched for again when that is due."""

    Z: Array
    b: Array
    groups: Ints
    features: log_cost.LogFeatures
    line: LinearCost
    stored: Mapping[str, Any]
    refit: bool = True  # whether any search for hyperparameters can be due
    counts: CountingCostModel | None = None
    seen: int = 0  # observations in all, where Z and b are some of them

    @property
    def n(self) -> int:
        """The number of observations, by which the data grow."""
        return max(self.seen, len(self.b))

    def competing(self) -> tuple[str, ...]:
        n, leader = self.n, self._leader
        if n < PROCESSES_FROM:
            return ()
        if not self.refit:
            return () if leader is None or self._last(leader) is None else (leader,)
        if n < LONE_PROCESS_FROM or leader is None or n >= GROWTH * self.stored["contest_at"]:
            few = len(self.line.selected) <= SELECTED  # then gp-selected would leave nothing out
            rivals = PROCESSES if self.counts is None else (*PROCESSES, ON_COUNTS)
            return tuple(name for name in rivals if not (few and name == "gp-selected"))
        return (leader,)

    def process(self, name: str) -> Process:
        last, due, selected = self._last(name), self._due(name), self._selected(name)
        warm = None
        if last is not None and last["selected"] == selected:
            warm = gp.Hyperparameters.from_json(last["hyperparameters"])
            if self.n < COLD_GROWTH * warm.cold_at:
                warm = replace(warm, cold_at=self.n)  # keeps gp.fit from its own cold start, which comes earlier
        elif not self.refit:
            warm = self._hurried(name, selected)
        if due and self.n > EXACT:
            some = few_rows(len(self.b), None, MOST_FITTED)
            warm, due = found_from_some(self.n, warm, lambda start: self._found(name, selected, start, some)), False
        return self._fitted(name, selected, warm, due, np.arange(len(self.b)))

    def _hurried(self, name: str, selected: list[int] | None) -> gp.Hyperparameters:
        """Hyperparameters found from a few observations: there is no time for all, and none are stored."""
        some = few_rows(len(self.b), None, HURRIED_ROWS)
        return self._found(name, selected, None, some)

    def _found(
        self, name: str, selected: list[int] | None, warm: gp.Hyperparameters | None, rows: Ints
    ) -> gp.Hyperparameters:
        return self._fitted(name, selected, warm, True, rows).process.hyperparameters

    def _fitted(
        self, name: str, selected: list[int] | None, warm: gp.Hyperparameters | None, refit: bool, rows: Ints
    ) -> Process:
        Z, b = self.Z[rows], self.b[rows]
        if name == ON_COUNTS:
            assert self.counts is not None  # `choose` refuses
            left = log_cost.process(Z, self.counts.fitted.residuals[rows], self.groups, warm=warm, refit=refit)
            return OnCounts(self.counts, left.process, self.features)
        trend = self.line if name == "gp-lv" else None
        return log_cost.process(Z, b, self.groups, selected=selected, trend=trend, warm=warm, refit=refit)

    def state(
        self, processes: Mapping[str, Process], scores: Mapping[str, float], leader: str | None
    ) -> dict[str, Any]:
        """JSON for the next call. Processes that did not compete keep what was stored."""
        contest = len(processes) > 1
        return {
            "n": self.n,
            "leader": leader,
            "contest_at": self.n if contest else self.stored.get("contest_at", 0),
            "scores": {**self.stored.get("scores", {}), **scores},
            "processes": {
                **self.stored.get("processes", {}),
                **{name: self._stored_fit(name, process) for name, process in processes.items()},
            },
        }

    def _stored_fit(self, name: str, process: Process) -> dict[str, Any]:
        last, n, found = self._last(name), self.n, process.process.hyperparameters
        warmed = last is not None and n < COLD_GROWTH * last["hyperparameters"]["cold_at"]
        cold_at = last["hyperparameters"]["cold_at"] if last is not None and warmed else found.cold_at
        at = n if last is None or self._due(name) else last["at"]
        hyperparameters = replace(found, cold_at=cold_at).as_json()
        return {"hyperparameters": hyperparameters, "at": at, "selected": self._selected(name)}

    @property
    def _leader(self) -> str | None:
        """The heaviest process at the last contest; of none that needs what is not given."""
        leader: str | None = self.stored.get("leader")
        return None if leader == ON_COUNTS and self.counts is None else leader

    def _last(self, name: str) -> dict[str, Any] | None:
        remembered: dict[str, Any] | None = self.stored.get("processes", {}).get(name)
        return remembered

    def _due(self, name: str) -> bool:
        last, growth = self._last(name), LEADER_GROWTH if name == self._leader else GROWTH
        if not self.refit:
            return False
        return last is None or self.n >= growth * last["at"]

    def _selected(self, name: str) -> list[int] | None:
        """Parameters of gp-selected: the stored ones until new hyperparameters are due."""
        if name != "gp-selected":
            return None
        last = self._last(name)
        return list(self.line.selected[:SELECTED]) if last is None or self._due(name) else last["selected"]
