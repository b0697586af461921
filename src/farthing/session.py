"""The course of a study: what comes next, and what becomes of a trial after each of its steps.

`ask`, `report` and `tell` of a study and its runners all go through here; what happens is recorded in the chronicle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.budget import Charges, Ledger, amount_text
from farthing.checks import plain
from farthing.errors import BudgetSpent, InvalidArgument, SpaceExhausted, StudyEnded, TargetReached
from farthing.history import History
from farthing.numerics.threads import one_blas_thread
from farthing.policies import Policy, decide
from farthing.record.events import Asked, Charged, Dropped, Reported, Told
from farthing.record.record import Chronicle
from farthing.space import Space
from farthing.trial import Config, Decision, Outcome, Proposal, Report, Status, Trial

ACCOUNT_OF = {  # where a trial's cost goes
    Status.COMPLETE: "evaluation",
    Status.PAUSED: "evaluation",
    Status.STOPPED: "evaluation",
    Status.FAILED: "failed",
    Status.KILLED: "killed",
    Status.INTERRUPTED: "interrupted",
}

STATUS_AFTER = {
    Decision.CONTINUE: Status.RUNNING,
    Decision.PAUSE: Status.PAUSED,
    Decision.STOP: Status.STOPPED,
}


@dataclass(frozen=True, eq=False)
class Course:
    """Space and policy, and the chronicle that grows; values are minimised here."""

    space: Space
    policy: Policy
    seed: int
    start: Sequence[Config]
    stop_at: float | None
    chronicle: Chronicle

    @property
    def history(self) -> History:
        return self.chronicle.history

    @property
    def ledger(self) -> Ledger:
        return self.chronicle.ledger

    def propose(self, n: int, overhead: Callable[[], Charges]) -> list[Proposal]:
        """Proposals, recorded with what the optimiser spent; `overhead()` is read when they are made."""
        self._decide_late()
        self._require_open()
        n = int(min(n, self.ledger.left("evaluations") - sum(not trial.counted for trial in self.history.running)))
        if n <= 0:
            raise BudgetSpent(f"{self.ledger.budget}: the evaluations left are all running")
        proposals: list[Proposal] = []
        while len(proposals) < n and (some := self._propose_some(n - len(proposals), overhead)):
            proposals += some
        if not proposals:
            raise SpaceExhausted(f"all {len(self.history.trials)} allowed configurations were proposed")
        return proposals

    def _propose_some(self, n: int, overhead: Callable[[], Charges]) -> list[Proposal]:
        """Up to n from one source: what was cut short, then what `start` gives, then the policy."""
        number, snapshot = self.history.asks, self.ledger.as_json()
        proposals = self._again(n)
        if proposals:
            number -= 1  # not a new ask: what comes after must be what would have come without the interruption
        else:
            proposals = self._from_start(n) or self._from_policy(n, number)
        if proposals:
            spent: list[Charges] = [overhead(), *[{}] * (len(proposals) - 1)]
            self.chronicle.record(*(Asked(number, p, snapshot, c) for p, c in zip(proposals, spent, strict=True)))
        return proposals

    def _require_open(self) -> None:
        if ended := self.ended:
            raise ended

    @property
    def ended(self) -> StudyEnded | None:
        """Why there will be no more proposals, or None."""
        ledger = self.ledger
        if unit := ledger.reached:
            limit = amount_text(unit, ledger.budget.limits[unit])
            return BudgetSpent(f"the budget of {limit} is spent; Study.resume(file, budget=...) can raise it")
        best = self.history.incumbent
        if self.stop_at is not None and best is not None and best.value is not None and best.value <= self.stop_at:
            return TargetReached(f"trial {best.number} reached the value asked for by stop_at")
        return None

    def _again(self, n: int) -> list[Proposal]:
        """Trials that were cut short go on under their number."""
        return [_once_more(trial) for trial in self.history.cut_short[:n]]

    def _decide_late(self) -> None:
        """Of trials that were cut short right after a step, before it was decided what becomes of them: decide now."""
        for trial in self.history.cut_short:
            if not trial.undecided:
                continue
            then = replace(trial, status=Status.RUNNING, error=None, kept_step=len(trial.curve))
            ledger = self.ledger.promised(trial.predicted_cost or 0.0, 1)
            outcome = self._after_step(self.history.with_trial(then), ledger, then)
            ended_still = trial.status is Status.PAUSED and outcome.error is not None
            if outcome.status is not Status.RUNNING and not ended_still:
                asked = Asked(self.history.asks - 1, _once_more(trial), self.ledger.as_json())
                self.chronicle.record(asked, self._told(trial.number, outcome, None, {}, {}))

    def _from_start(self, n: int) -> list[Proposal]:
        first = len(self.history.trials)
        return [
            Proposal(number, config, reason="given by start")
            for number, config in enumerate(self.start[first : first + n], start=first)
        ]

    def _from_policy(self, n: int, ask: int) -> list[Proposal]:
        rng = np.random.default_rng([self.seed, ask])
        with one_blas_thread():
            proposals = self.policy.propose(self.space, self.history, self.ledger, n, rng)
        return [self._checked(proposal) for proposal in proposals]

    def _checked(self, proposal: Proposal) -> Proposal:
        """A paused trial goes on as the configuration it is, from where it can."""
        if proposal.trial >= len(self.history.trials):
            return proposal
        trial = self.history.trials[proposal.trial]
        if trial.status is not Status.PAUSED:
            raise InvalidArgument(
                f"policy {self.policy.name!r} proposed trial {trial.number}, which is {trial.status.value}: "
                "only paused trials go on"
            )
        return replace(proposal, config=trial.config, start_step=trial.kept_step)

    def record(
        self, number: int, outcome: Outcome, cost: float | None, attributes: Mapping[str, Any],
        spent: Mapping[str, float], overhead: Charges | None = None,
    ) -> None:  # fmt: skip
        """Record an outcome that spent some units. A trial is one evaluation, an interrupted one none."""
        self.chronicle.record(self._told(number, outcome, cost, attributes, spent, overhead))

    def _told(
        self, number: int, outcome: Outcome, cost: float | None, attributes: Mapping[str, Any],
        spent: Mapping[str, float], overhead: Charges | None = None,
    ) -> Told:  # fmt: skip
        counts = not self.history.trials[number].counted and outcome.status is not Status.INTERRUPTED
        charges = {ACCOUNT_OF[outcome.status]: {**spent, "evaluations": float(counts)}, **(overhead or {})}
        told = Outcome(outcome.status, outcome.value, cost, outcome.error, plain(attributes))
        return Told(number, told, charges)

    def record_step(
        self, number: int, report: Report, spent: Mapping[str, float], overhead: Charges | None = None
    ) -> Decision:
        """Record a step that spent some units, and what to do after it."""
        before = self.history.trials[number]
        new = before.kept_step >= len(before.curve)
        account = "evaluation" if new else "retrained"
        report = replace(report, attributes=plain(report.attributes))
        self.chronicle.record(Reported(number, report, {account: spent, **(overhead or {})}))
        outcome = self._after_step(self.history, self.ledger, self.history.trials[number], new)
        if outcome.status is Status.RUNNING:
            return Decision.CONTINUE
        self.record(number, outcome, None, {}, {})
        return Decision.PAUSE if outcome.status is Status.PAUSED else Decision.STOP

    def _after_step(self, history: History, ledger: Ledger, trial: Trial, new: bool = True) -> Outcome:
        """What becomes of a trial after its last step: complete at the end, at rest where the study ends, and else what
        its policy says. That has no say on a step trained again, nor while nobody knows how long a training is.
        """
        if history.max_steps is not None and trial.kept_step >= history.max_steps:
            return Outcome(Status.COMPLETE)
        if (ended := self.ended) is not None:
            return Outcome(Status.PAUSED, error=str(ended))
        if history.max_steps is None:
            return Outcome(Status.RUNNING)
        if trial.kept_step == trial.until_step:
            return Outcome(Status.PAUSED)
        if not new:
            return Outcome(Status.RUNNING)
        rng = np.random.default_rng([self.seed, history.asks, trial.number, trial.kept_step])
        with one_blas_thread():
            return Outcome(STATUS_AFTER[decide(self.policy, self.space, history, ledger, trial, rng)])

    def drop(self, number: int, kept_step: int) -> None:
        """A run that rests is not alive any more, and would go on from that step."""
        self.chronicle.record(Dropped(number, kept_step))

    def charge(self, charges: Charges) -> None:
        """Amounts that belong to no trial."""
        self.chronicle.record(Charged(charges))

    def is_running(self, number: int) -> bool:
        """Whether that trial is being evaluated."""
        return self.history.trials[number].status is Status.RUNNING


def _once_more(trial: Trial) -> Proposal:
    """A trial as it was asked for, from where it can go on."""
    return Proposal(
        trial.number, trial.config, trial.predicted_cost, trial.reason,
        start_step=trial.kept_step, until_step=trial.until_step,
    )  # fmt: skip
