"""A session of a study: what comes next, and what becomes of a trial after each of its steps.

`ask`, `report` and `tell` of a study and its runners all go through here: trials are proposed, charged and recorded.
Values come in the user's own sign and are sent through `Direction`.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn, TypeVar

import numpy as np

from farthing.budget import ACCOUNT_OF, Charges, Ledger
from farthing.errors import BudgetSpent, InvalidArgument, InvalidSpace, SpaceExhausted, StudyEnded, TargetReached
from farthing.given import Given
from farthing.history import History, Way
from farthing.history.history import TrackedTrial, once_more
from farthing.numerics.threads import one_blas_thread
from farthing.policies import Policy, decide, rows_of
from farthing.policies.finishing import decision_to_finish, finishes_best, proposal_to_finish, share_to_think
from farthing.policies.preparation import Preparation, Snapshot, finished
from farthing.policies.protocol import generator_of
from farthing.policies.thinking import Thinking
from farthing.policies.worth import not_worth
from farthing.record.added import Added
from farthing.record.events import Asked, Dropped, Ended, Moved, Reported
from farthing.record.lock import refusal
from farthing.record.record import Record, Results
from farthing.record.state import Event
from farthing.record.study_events import Charged, Judged
from farthing.record.writing import Overtaken
from farthing.space import Space
from farthing.text.plain import counted, cut_text, stored_attributes
from farthing.trial import (
    ENDS_OF_STUDY,
    Config,
    ContinueTo,
    Decision,
    EndedBy,
    Outcome,
    Proposal,
    Report,
    Status,
)  # fmt: skip

T = TypeVar("T")

TRIES = 3  # to propose, while somebody else writes to the same file
MOST_NAMED = 8  # trials in a message

STATUS_AFTER = {
    Decision.CONTINUE: Status.RUNNING,
    Decision.PAUSE: Status.PAUSED,
    Decision.STOP: Status.STOPPED,
}


@dataclass(eq=False)
class Session:
    """A record that grows by what its policy proposes and what is made of it.

    `stop_requested` asks a run to begin nothing more; `interrupted` says whether a signal ended the last run;
    `objective` is the code that the run evaluates, if that is known; `halted` says in words what else ended the last
    run; `shows_end` is False if whoever runs it shows the end of a run. One thread at a time decides and writes: the
    others wait, also while a policy thinks. Whoever only looks at the record does not wait.
    """

    record: Record
    policy: Policy
    stop_requested: bool = False
    interrupted: bool = False
    objective: str | None = None
    halted: str = ""
    shows_end: bool = True

    def __post_init__(self) -> None:
        self.seed, self.results = self.record.settings.seed, Results(self.record)
        self._given = Given(self.record)
        self._guard, self._is_run = threading.RLock(), False
        self._thinking = Thinking()

    @property
    def space(self) -> Space:
        return self.record.space

    @property
    def history(self) -> History:
        return self.record.history

    @property
    def ledger(self) -> Ledger:
        return self.record.ledger

    @property
    def is_paused(self) -> bool:
        """Whether somebody who looks at the study has asked its run to begin nothing new for now."""
        return self.results.is_paused

    @property
    def storage(self) -> str | None:
        """The study's file, None when it lives in memory."""
        return self.record.storage

    @contextmanager
    def own_loop(self) -> Iterator[None]:
        """For one thread at a time of a loop of the user's, which holds the file from its first call on."""
        with self._guard, self.record.writing.held(keep=True):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For one run at a time, which holds the file while it lasts."""
        with self._guard:
            if self._is_run:
                raise refusal(self.record.log.name, f"process {os.getpid()}, this one")
            self._is_run = True
        try:
            with self.record.writing.held():
                yield
        finally:
            self._is_run = False

    def propose(
        self, n: int, overhead: Callable[[], Charges], seconds: float = math.inf, *, pending: bool = False,
        prepared: Iterable[Preparation] = (),
    ) -> list[Proposal]:  # fmt: skip
        """Proposals, recorded with what the optimiser spent; `overhead()` is read when they are made. The policy may
        think for `seconds`, unless one of the asks that were `prepared` can be finished. They are `pending` if nobody
        here will evaluate them."""
        with self._guard:
            seconds = self._to_think(seconds)
            self._decide_late(seconds)
            self._require_open()
            n = int(min(n, self.ledger.left("evaluations") - self.history.trials.uncounted))
            if n <= 0:
                raise BudgetSpent(f"{self.ledger.budget}: the evaluations left are all running{self.said_of_pending}")
            proposals: list[Proposal] = []
            while len(proposals) < n:
                some = self._propose_again_if_overtaken(n - len(proposals), overhead, seconds, pending, prepared)
                if not some:
                    break
                proposals += some
            if not proposals:
                self._require_open()
                self._refuse_exhausted()
            self.halted = ""
            return proposals

    def _refuse_exhausted(self) -> NoReturn:
        """A space without a single configuration is a mistake, not an end."""
        proposed = len(self.history.trials)
        if not proposed:
            raise InvalidSpace("forbid: every configuration that was looked at is forbidden; nothing can be proposed")
        self.halted = f"all {counted(proposed, 'allowed configuration')} were proposed"
        raise SpaceExhausted(self.halted)

    @property
    def said_of_pending(self) -> str:
        """Which trials wait for a loop of the user's, and what can be done."""
        numbers = [str(trial.number) for trial in self.history.pending]
        if not numbers:
            return ""
        named = f"{', '.join(numbers[:MOST_NAMED])}{', ...' if len(numbers) > MOST_NAMED else ''}"
        return f"; given by ask, and not told yet: {named} (study.tell says how one ended, study.forget gives it up)"

    def _propose_again_if_overtaken(
        self, n: int, overhead: Callable[[], Charges], seconds: float, pending: bool, prepared: Iterable[Preparation]
    ) -> list[Proposal]:
        """Up to n. Somebody else may have taken a number meanwhile: then the next proposal knows of that."""
        for _ in range(TRIES):
            try:
                return self._propose_some(n, overhead, seconds, pending, prepared)
            except Overtaken:
                if not self.record.writing.has_written:
                    raise
                prepared = ()
        return self._propose_some(n, overhead, seconds, pending, ())

    def _propose_some(
        self, n: int, overhead: Callable[[], Charges], seconds: float, pending: bool, prepared: Iterable[Preparation]
    ) -> list[Proposal]:
        """Up to n from one source: what was cut short, then what somebody has given, then the best when it is time to
        finish it, then the policy."""
        number, snapshot, way, seen = self.history.asks, self.ledger.as_json(), Way.FULL, None
        proposals = self._again(n)
        if proposals:
            number -= 1  # not a new ask: what comes after must be what would have come without the interruption
        else:
            proposals = self._given.next(n) or self._to_finish()
        if not proposals:
            found = finished(self.policy, self.space, self.history, self.ledger, prepared) if n == 1 else None
            if found is not None:
                proposals, way, seen = [found.proposal], found.preparation.way, found.preparation.seen
            else:
                proposals, way = self._from_policy(n, seconds)
            if judged := not_worth(self.history, proposals):
                self.record.write(Judged(judged.gain, judged.cost, overhead()))
                return []
        if proposals:
            given = seconds if math.isfinite(seconds) else None
            spent: list[Charges] = [overhead(), *[{}] * (len(proposals) - 1)]
            codes = [None if pending else self._new_objective, *[None] * (len(proposals) - 1)]
            self.record.write(
                *(
                    Asked(number, proposal, snapshot, charges, given, way, pending, code, seen)
                    for proposal, charges, code in zip(proposals, spent, codes, strict=True)
                )
            )
        return proposals

    @property
    def _new_objective(self) -> str | None:
        """The code that this run evaluates, if the file does not know that yet."""
        ran = self.record.state.objective
        return self.objective if ran is None or ran.code != self.objective else None

    def _require_open(self) -> None:
        if ended := self.ended:
            raise ended

    @property
    def ended(self) -> StudyEnded | None:
        """Why there will be no more proposals, or None."""
        return self.results.ended

    @property
    def why_ended(self) -> str:
        """Why the study, or its last run, has ended; "" while it goes on."""
        trials = counted(len(self.history.trials), "trial")
        if why := self.results.why_ended:
            return why
        if self.interrupted:
            return f"interrupted after {trials}"
        return self.halted or (f"stopped by study.stop() after {trials}" if self.stop_requested else "")

    def _again(self, n: int) -> list[Proposal]:
        """Trials that were cut short go on under their number."""
        return [once_more(trial) for trial in self.history.cut_short[:n]]

    def _decide_late(self, seconds: float) -> None:
        """Decide what becomes of trials that were cut short right after a step, before that was decided; all of them
        in `seconds`."""
        undecided = [trial for trial in self.history.cut_short if trial.undecided]
        for trial in undecided:
            then = replace(trial, status=Status.RUNNING, error=None, ended_by=None, kept_step=len(trial.curve))
            ledger = self.ledger.promised(trial.predicted_cost or 0.0, 1)
            outcome = self._after_step(self.history.with_trial(then), ledger, then, seconds / len(undecided))
            if isinstance(outcome, ContinueTo):
                self.record.write(Moved(trial.number, outcome.step))
                continue
            still_over = trial.status is Status.PAUSED and outcome.ended_by in ENDS_OF_STUDY
            if outcome.status is not Status.RUNNING and not still_over:
                asked = Asked(self.history.asks - 1, once_more(trial), self.ledger.as_json())
                self.record.write(asked, self._ended_with(trial.number, outcome, {}))

    def _to_finish(self) -> list[Proposal]:
        """The best trial, if the policy leaves the end of the budget to the rule of finishing it."""
        found = proposal_to_finish(self.history, self.ledger) if finishes_best(self.policy) else None
        return [] if found is None else [self._checked(found)]

    def _to_think(self, seconds: float) -> float:
        """Of the seconds that there are, those that finishing the best does not need."""
        needs_some = finishes_best(self.policy) and math.isfinite(seconds)
        return seconds * share_to_think(self.history, self.ledger) if needs_some else seconds

    def _from_policy(self, n: int, seconds: float) -> tuple[list[Proposal], Way]:
        """What the policy proposes, and the way it took: each draws from the beginning of the ask's own generator."""

        def think(history: History) -> list[Proposal]:
            return self.policy.propose(self.space, history, self.ledger, n, generator_of(history))

        proposals, way = self._thought(self.history, seconds, think)
        return [self._checked(proposal) for proposal in proposals], way

    def snapshot(self) -> Snapshot | None:
        """What the next ask can be prepared from, while what runs goes on; None if something else comes
        before it."""
        if self.history.cut_short or self._given.next(1):
            return None
        return Snapshot(self.record.state, self.record.events)

    def _thought(self, history: History, seconds: float, think: Callable[[History], T]) -> tuple[T, Way]:
        """What the policy thinks of a history in at most `seconds`."""
        with one_blas_thread():
            return self._thinking.within(
                seconds, rows_of(self.policy, history), lambda way: think(replace(history, way=way))
            )

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

    def end(
        self, number: int, outcome: Outcome, spent: Mapping[str, float], overhead: Charges | None = None
    ) -> None:  # fmt: skip
        """A running trial has ended, or is paused, and spent some units. It is charged to the account of its status."""
        with self._guard:
            self.record.write(self._ended_with(number, outcome, spent, overhead))

    def _ended_with(
        self, number: int, outcome: Outcome, spent: Mapping[str, float], overhead: Charges | None = None
    ) -> Ended:
        """A trial is one evaluation, however often it was paused; an interrupted one is none."""
        counts = not self.history.trials[number].counted and outcome.status is not Status.INTERRUPTED
        charges = {ACCOUNT_OF[outcome.status]: {**spent, "evaluations": float(counts)}, **(overhead or {})}
        value, error = self.record.direction.turned(outcome.value), outcome.error and cut_text(outcome.error)
        attributes = stored_attributes(outcome.attributes)
        return Ended(number, replace(outcome, value=value, error=error, attributes=attributes), charges)

    def step(
        self, number: int, report: Report, spent: Mapping[str, float], overhead: Charges | None = None,
        seconds: float = math.inf, can_pause: bool = True,
    ) -> Decision:  # fmt: skip
        """A running trial has trained one more step, and spent some units: what to do next, decided in at most
        `seconds`. A trial that cannot be paused goes on where its policy would pause it."""
        turned = self.record.direction.turned
        report = replace(
            report, value=turned(report.value), train_value=turned(report.train_value),
            attributes=stored_attributes(report.attributes),
        )  # fmt: skip
        with self._guard:
            before = self.history.trials[number]
            new = before.kept_step >= len(before.curve)
            account = "evaluation" if new else "retrained"
            self.record.write(Reported(number, report, {account: spent, **(overhead or {})}))
            trial, seconds = self.history.trials[number], self._to_think(seconds)
            outcome = self._after_step(self.history, self.ledger, trial, seconds, new)
            if isinstance(outcome, ContinueTo):
                self.record.write(Moved(number, outcome.step))
                return Decision.CONTINUE
            would_pause = outcome.status is Status.PAUSED and outcome.ended_by is EndedBy.POLICY
            if outcome.status is Status.RUNNING or (would_pause and not can_pause):
                return Decision.CONTINUE
            self.end(number, outcome, {})
            return Decision.PAUSE if outcome.status is Status.PAUSED else Decision.STOP

    def _after_step(
        self, history: History, ledger: Ledger, trial: TrackedTrial, seconds: float, new: bool = True
    ) -> Outcome | ContinueTo:
        """What becomes of a trial after its last step: complete at the end, at rest where the study ends, and else what
        its policy says. That has no say on a step trained again, nor while nobody knows how long a training is. A trial
        rests where it was to be paused, unless its policy moves that step.
        """
        if history.max_steps is not None and trial.kept_step >= history.max_steps:
            return Outcome(Status.COMPLETE)
        if (ended := self.ended) is not None:
            by = EndedBy.TARGET if isinstance(ended, TargetReached) else EndedBy.BUDGET
            return Outcome(Status.PAUSED, error=str(ended), ended_by=by)
        if history.max_steps is None:
            return Outcome(Status.RUNNING)
        decision = self._decision(history, ledger, trial, seconds) if new else Decision.CONTINUE
        if isinstance(decision, ContinueTo):
            return decision
        return Outcome(Status.PAUSED if trial.kept_step == trial.until_step else STATUS_AFTER[decision])

    def _decision(
        self, history: History, ledger: Ledger, trial: TrackedTrial, seconds: float
    ) -> Decision | ContinueTo:  # fmt: skip
        finishing = decision_to_finish(history, ledger, trial) if finishes_best(self.policy) else None
        if finishing is not None:
            return finishing

        def think(history: History) -> Decision | ContinueTo:
            rng = np.random.default_rng([self.seed, history.asks, trial.number, trial.kept_step])
            return decide(self.policy, self.space, history, ledger, trial, rng)

        return self._thought(history, seconds, think)[0]

    def drop(self, number: int, kept_step: int) -> None:
        """A run that rests is not alive any more, and would go on from that step."""
        with self._guard:
            self.record.write(Dropped(number, kept_step))

    def answer(self, *happened: Event) -> None:
        """What somebody who looks at the study has asked for, and what follows from it."""
        with self._guard:
            self.record.write(*happened)

    def charge(self, charges: Charges) -> None:
        """Amounts that belong to no trial."""
        with self._guard:
            self.record.write(Charged(charges))

    def forget(self, number: int) -> None:
        """A pending trial will never be told."""
        outcome = Outcome(Status.INTERRUPTED, error="forgotten: nobody will say how it ended")
        self.record.write(Ended(number, outcome, forgotten=True))

    def add(self, config: Config, outcome: Outcome, curve: Sequence[float]) -> int:
        """A known result, as a trial of its own; returns its number."""
        number = len(self.history.trials)
        self.record.write(Added.of(number, config, outcome, curve, self.record.direction))
        return number

    def is_running(self, number: int) -> bool:
        """Whether that trial is being evaluated."""
        return self.history.trials[number].status is Status.RUNNING
