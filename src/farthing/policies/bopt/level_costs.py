"""What the two levels of training cost: to the end of the fast period, and from there to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.policies.bopt.training_run import TrainingRun


@dataclass(frozen=True, eq=False)
class LevelCosts:
    """What new and paused runs will cost, from the runs so far."""

    runs: Sequence[TrainingRun]
    max_steps: int | None

    def of_new(self) -> float:
        """What a new configuration costs to the end of its fast period: the median so far."""
        known = [run.fast_cost for run in self.runs if run.fast_cost is not None]
        return float(np.median(known)) if known else 0.0

    def of_new_and_complete(self) -> float:
        """What a new configuration costs to the end of complete training."""
        return self.of_new() * (1.0 + (self.rest_ratio or 0.0))

    def of_rest(self, run: TrainingRun) -> float:
        """What a paused run costs from where it can be resumed to the end: the steps that are trained again, and the
        rest by the ratio of the levels' costs, or by its own cost per step while there is no such ratio."""
        trial, max_steps = run.trial, self.max_steps
        costs = [cost or 0.0 for cost in trial.curve.costs]
        if run.fast_cost is None or max_steps is None:
            return 0.0
        again = sum(costs[trial.kept_step :])
        if self.rest_ratio is not None:
            spent = sum(costs) - run.fast_cost
            return again + max(self.rest_ratio * run.fast_cost - spent, 0.0)
        return again + sum(costs) / len(costs) * max(max_steps - len(costs), 0)

    @cached_property
    def rest_ratio(self) -> float | None:
        """Cost of training after the fast period, divided by the cost of the fast period."""
        both = [run for run in self.runs if run.complete_cost is not None and run.fast_cost]
        return float(np.median([(run.complete_cost or 0.0) / (run.fast_cost or 1.0) for run in both])) if both else None
