"""What the trials of an Optuna study have spent of a budget.

A trial is charged when it has ended, however it ended. Its time is what Optuna measured from the moment it was created,
of which what the sampler took to propose it belongs to the optimiser. Its cost is its time too, unless it is said
where else it stands: in a user attribute, or in what a function makes of the trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.proposed import NOTHING, SPENT, Proposed
from farthing.budget import Budget, Ledger
from farthing.checks import read_cost, refuse
from farthing.errors import InvalidArgument, InvalidBudget

CostOf = (
    str | Callable[[FrozenTrial], Any] | None
)  # a user attribute, a function of a trial that has ended, or its time
TIMED = ("seconds", "compute_seconds")


@dataclass(frozen=True)
class Spent:
    """What a trial that has ended spent, by account and unit, and its cost in the budget's unit, None if unknown."""

    charges: Mapping[str, Mapping[str, float]]
    cost: float | None


@dataclass(frozen=True)
class Spending:
    """How trials are charged to a budget."""

    budget: Budget
    cost: CostOf = None

    def __post_init__(self) -> None:
        if not (self.cost is None or callable(self.cost) or (isinstance(self.cost, str) and self.cost)):
            refuse("cost", "the name of a user attribute, a function of a trial, or None for its time", self.cost)
        timed = {*self.budget.priced(1.0), *TIMED, "evaluations"}
        if self.cost is None and (others := [unit for unit in self.budget.limits if unit not in timed]):
            hint = ', or an hourly rate: "$5 at $2.5/h"' if others[0] == "usd" else ""
            raise InvalidBudget(
                f"budget: {self.budget} limits {others[0]}, which no clock measures; say where a trial has it by "
                f"cost='name of a user attribute' or cost=function of the trial{hint}"
            )

    def of(self, trial: FrozenTrial) -> Spent:
        """What a trial that has ended spent. One that was added took no time: a known result costs nothing. One that
        never began costs nothing either."""
        seconds = 0.0 if trial.duration is None else max(trial.duration.total_seconds(), 0.0)
        proposed = Proposed.of(trial)
        if proposed.reason == SPENT:
            return Spent({}, None)
        thinking = min(proposed.seconds, seconds)
        training = seconds - thinking
        spent = {**self.budget.priced(training), "compute_seconds": training}
        told = self.told(trial)
        if self.cost is not None:
            spent.pop(self.budget.unit, None)
        if told is not None:
            spent[self.budget.unit] = told
        spent["evaluations"] = 1.0
        account = "failed" if trial.state is TrialState.FAIL else "evaluation"
        known = told is not None or (self.cost is None and training > 0.0)
        cost = spent.get(self.budget.unit) if known else None
        if seconds == 0.0 and proposed is NOTHING:
            return Spent({}, cost)
        return Spent({account: spent, "optimiser": self.budget.priced(thinking)}, cost)

    def told(self, trial: FrozenTrial) -> float | None:
        """The cost that a trial says by itself, None if it says none."""
        if self.cost is None:
            return None
        try:
            given = trial.user_attrs.get(self.cost) if isinstance(self.cost, str) else self.cost(trial)
            return None if given is None else read_cost(given)
        except InvalidArgument as error:
            raise InvalidArgument(f"trial {trial.number}: {self._where}: {error}") from None
        except Exception as error:
            if trial.state is not TrialState.COMPLETE:  # it may have come to nothing before its cost was known
                return None
            raise InvalidArgument(f"cost raised {error!r} for trial {trial.number}") from error

    def require_cost(self, trial: FrozenTrial) -> None:
        """An error if a trial that was completed does not say what it cost: its budget would never end."""
        if trial.state is TrialState.COMPLETE and self.cost is not None and self.told(trial) is None:
            how = f"trial.set_user_attr({self.cost!r}, ...)" if isinstance(self.cost, str) else "a number"
            raise InvalidArgument(
                f"trial {trial.number} is complete and has no cost: {self._where} is missing; expected {how}"
            )

    @property
    def _where(self) -> str:
        return f"user attribute {self.cost!r}" if isinstance(self.cost, str) else "what cost(trial) returns"

    def ledger(self, ended: Iterable[Spent], running: Iterable[FrozenTrial]) -> Ledger:
        """What trials that have ended spent, and what is promised to those that run."""
        accounts: dict[str, dict[str, float]] = {}
        for spent in ended:
            for account, amounts in spent.charges.items():
                held = accounts.setdefault(account, {})
                for unit, amount in amounts.items():
                    held[unit] = held.get(unit, 0.0) + amount
        promised = [Proposed.of(trial).cost or 0.0 for trial in running]
        return Ledger(self.budget, accounts, math.fsum(promised), len(promised))
