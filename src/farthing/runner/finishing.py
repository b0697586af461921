"""Finishing one trial after a study has ended: a session whose only proposal is that trial.

It writes to the study's own record, and all it spends is in the study's ledger, where it may come on top of the budget:
the limits of the study do not end it, only those given for finishing alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace

from farthing.budget import Budget, Charges, Ledger
from farthing.checks import settle
from farthing.errors import BudgetSpent, InvalidArgument, InvalidBudget, StudyEnded
from farthing.history import History, TrackedTrial
from farthing.policies.preparation import Preparation
from farthing.record.events import Asked
from farthing.session import Session
from farthing.trial import Decision, Proposal, Status

ON_REQUEST = "finished on request"
WAITING = frozenset({Status.PAUSED, Status.INTERRUPTED})


class FinishingSession(Session):
    """Completes one trial of a study that is paused or was interrupted, with at most `budget` more."""

    def __init__(self, study: Session, number: int, budget: Budget | None) -> None:
        self._study, self._number = study, number
        super().__init__(study.record, study.policy)
        self._limits = _lifted(study.ledger, budget)
        trial = self._trial
        if trial.status not in WAITING:
            why = f" ({trial.error.strip().splitlines()[-1]})" if trial.error else ""
            raise InvalidArgument(
                f"finish: expected a trial that is paused or was interrupted, got trial {number}, "
                f"which is {trial.status.value}{why}"
            )

    @property
    def _trial(self) -> TrackedTrial:
        return self.history.trials[self._number]

    # `Study.stop` and `Study.interrupted` speak of the study's session.
    @property
    def stop_requested(self) -> bool:
        return self._study.stop_requested

    @stop_requested.setter
    def stop_requested(self, requested: bool) -> None:
        self._study.stop_requested = requested

    @property
    def interrupted(self) -> bool:
        return self._study.interrupted

    @interrupted.setter
    def interrupted(self, interrupted: bool) -> None:
        self._study.interrupted = interrupted

    @property
    def ledger(self) -> Ledger:
        """The study's, with the limits of finishing."""
        return replace(self.record.ledger, budget=self._limits)

    @property
    def ended(self) -> StudyEnded | None:
        if self._trial.status not in WAITING | {Status.RUNNING}:
            return StudyEnded(f"trial {self._number} is {self._trial.status.value}")
        if self.ledger.reached is not None:
            return BudgetSpent("the budget for finishing is spent")
        return None

    @property
    def why_ended(self) -> str:
        return "" if self.ended is None else str(self.ended)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._study.alone():
            yield

    def snapshot(self) -> None:
        """There is no ask to prepare."""

    def propose(
        self, n: int, overhead: Callable[[], Charges], seconds: float = math.inf, *, pending: bool = False,
        prepared: Iterable[Preparation] = (),
    ) -> list[Proposal]:  # fmt: skip
        """The trial, from where it can go on to its end."""
        self._require_open()
        trial = self._trial
        if trial.status is Status.RUNNING:
            raise StudyEnded(f"trial {self._number} is running")
        proposal = Proposal(trial.number, trial.config, reason=ON_REQUEST, start_step=trial.kept_step)
        ask = max(self.history.asks - 1, 0)  # not a new one: what the policy proposes later stays the same
        self.record.write(Asked(ask, proposal, self.record.ledger.as_json(), overhead()))
        return [proposal]

    def _decision(self, history: History, ledger: Ledger, trial: TrackedTrial, seconds: float) -> Decision:
        return Decision.CONTINUE


def _lifted(ledger: Ledger, budget: Budget | None) -> Budget:
    """The budget of a study without its limits, but with those of finishing on top of what was spent."""
    more = {} if budget is None else budget.limits
    limits = dict.fromkeys(ledger.budget.limits, math.inf)
    limits |= {unit: ledger.total(unit) + amount for unit, amount in more.items()}
    lifted = copy(ledger.budget)
    settle(lifted, **limits)  # a user's own budget may not be infinite
    if lifted.unit != ledger.unit:
        raise InvalidBudget(
            f"finish: budget: expected a limit in {ledger.unit} or in time, as the study counts, got {budget}"
        )
    return lifted
