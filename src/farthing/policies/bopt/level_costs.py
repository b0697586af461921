"""What the two levels of training cost: of new configurations and of paused runs, from the runs so far.

Symbols: t_e the cost of the fast period, t_c that of the complete training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.history import Way, units
from farthing.policies.bopt.two_levels import TrainingRun
from farthing.space import Space
from farthing.surrogates.cost import choice, log_cost
from farthing.surrogates.cost.log_cost import CostModel


@dataclass(frozen=True, eq=False)
class LevelCosts:
    """What new and paused runs will cost, from the runs so far."""

    runs: Sequence[TrainingRun]
    max_steps: int | None
    start: float  # cost until a process is ready for a new run
    space: Space
    way: Way = Way.FULL

    def price_of_new(self) -> float:
        """What a new configuration costs to the end of its fast period, and until it can begin."""
        return self.of_new() + self.start

    def price_of_new_and_complete(self) -> float:
        """What a new configuration costs to the end of complete training, and until it can begin."""
        return self.of_new() * (1.0 + (self.rest_ratio or 0.0)) + self.start

    def price_of_rest(self, run: TrainingRun) -> float:
        """What a paused run costs to the end, and until it can go on."""
        return self.of_rest(run) + self.start * run.trial.needs_start

    def of_new(self) -> float:
        """What a new configuration costs to the end of its fast period: the median so far."""
        known = [run.fast_cost for run in self.runs if run.fast_cost is not None]
        return float(np.median(known)) if known else 0.0

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

    @cached_property
    def fast_cost_model(self) -> CostModel | None:
        """t_e(x): what the fast period costs."""
        known = [run for run in self.runs if run.fast_cost is not None]
        if not known:
            return None
        X = self.space.features(units([run.trial for run in known], len(self.space)))
        b = log_cost.logs(np.array([run.fast_cost for run in known], dtype=np.float64))
        return choice.choose(X, b, self.space.groups, self.space.ratios, refit=self.way.refits).model
