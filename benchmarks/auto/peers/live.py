"""Searches that train, where everything counts: what is spent is time since before the system was made.

Peers evaluate in their own process, without a limit on one evaluation; Farthing does as `farthing.tune` does by
default. The library and the data were loaded before the clock starts. What ends past the budget does not count.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.auto.peers.models import MODELS, Objective, data_of
from benchmarks.auto.peers.task import SearchOver, Task
from benchmarks.common.described_spaces import Config


class LiveRecord:
    """Evaluates and writes down, against the clock."""

    is_live = True

    def __init__(self, task: Task) -> None:
        name = task["problem"].partition("/")[2]
        data_of(MODELS[name].data)
        self.budget, self.space, self.objective = task["budget"], MODELS[name].space, Objective(name)
        self.columns: dict[str, list[Any]] = {name: [] for name in ("values", "spent", "own")}
        self._evaluating, self._began = 0.0, time.monotonic()

    def evaluate(self, config: Config) -> tuple[float, float]:
        """The value and the seconds of a configuration."""
        found = self.objective(config)
        if not self._add(found):
            raise SearchOver
        return found["value"], found["ended"] - found["began"]

    def take(self, study: Any) -> None:
        """The evaluations of a study of Farthing's that ended within the budget, in the order in which they did."""
        complete = [trial for trial in study.trials if trial.value is not None and "ended" in trial.attributes]
        for trial in sorted(complete, key=lambda trial: trial.attributes["ended"]):
            self._add({"value": trial.value, **trial.attributes})

    def _add(self, found: dict[str, float]) -> bool:
        """Whether it ended within the budget."""
        spent = found["ended"] - self._began
        self._evaluating += found["ended"] - found["began"]
        if spent <= self.budget:
            entries = (found["value"], round(spent, 4), round(spent - self._evaluating, 4))
            for column, entry in zip(self.columns.values(), entries, strict=True):
                column.append(entry)
        return bool(spent <= self.budget)
