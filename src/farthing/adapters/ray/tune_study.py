"""A study whose trials are evaluated by Ray Tune.

Tune knows a trial by an id, the study by a number. `TuneStudy` goes through the study's session, as runners do: what
`Study.ask`, `report` and `tell` have no words for here is that wall-clock time is shared by the trials that run side by
side, that a trial may be set back to an older checkpoint, and that some trials cannot be paused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from farthing.checks import read_cost, read_value
from farthing.errors import (
    BudgetSpent,
    EveryTrialFailed,
    InvalidArgument,
    NotWorthMore,
    SpaceExhausted,
    StudyEnded,
    TargetReached,
)  # fmt: skip
from farthing.history import History
from farthing.history.history import TrackedTrial
from farthing.runner.clock import Ages, Clock
from farthing.runner.failing import FirstFailures
from farthing.study import Study
from farthing.text.plain import shown
from farthing.trial import Decision, EndedBy, Outcome, Proposal, Report, Status

Result: TypeAlias = Mapping[str, Any]  # what Tune passes on, flat
Cost: TypeAlias = str | Callable[[Result], float]

MEASURED = "time_total_s"  # seconds of training, as Tune measures them
THIS_STEP = "time_this_iter_s"
STEP = "training_iteration"
AMONG_MANY = 12  # names of results in a message


class TuneStudy:
    """What a study is told about Tune's trials; `numbers` are those of its trials by Tune's ids."""

    def __init__(
        self, study: Study, metric: str, cost: Cost, max_failures: int | None, numbers: Mapping[str, int] | None = None
    ) -> None:  # fmt: skip
        self.study, self.numbers = study, dict(numbers or {})
        self._metric, self._cost, self._session = metric, cost, study._session
        metered = () if cost == MEASURED else (self._session.ledger.unit,)
        self._clock = Clock(self._session, time.perf_counter(), metered)
        self._clock.wait()
        self._since: dict[int, float] = {}  # when trials that are trained were charged last
        self._nothing_more = False  # to propose, before something else ends
        self._failures = FirstFailures(max_failures)
        self._alike: EveryTrialFailed | None = None

    @property
    def _history(self) -> History:
        return self._session.history

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The study thinks and writes; all other time is the trials'."""
        self._clock.work()
        try:
            with self._session.own_loop():
                yield
        finally:
            self._clock.wait()

    # -- what comes next ---------------------------------------------------------------------------------------------

    def ask(self) -> Proposal | None:
        """The next proposal, None if there is none now. `EveryTrialFailed` if the first trials all failed alike."""
        if self._alike is not None:
            raise self._alike
        try:
            with self._writing():
                thinking = self._clock.seconds_to_think(self._ages)
                return self._session.propose(1, self._clock.overhead, thinking, pending=True)[0]
        except StudyEnded as ended:
            self._nothing_more = isinstance(ended, SpaceExhausted | NotWorthMore)
            return None

    def begin(self, trial_id: str, proposal: Proposal) -> None:
        """A new trial of Tune evaluates it, from the beginning."""
        if proposal.start_step:
            with self._writing():
                self._session.drop(proposal.trial, 0)
        self.numbers = {known: number for known, number in self.numbers.items() if number != proposal.trial}
        self.numbers[trial_id] = proposal.trial

    @property
    def over(self) -> bool:
        """Whether all that is still running is to be stopped."""
        if isinstance(self._session.ended, BudgetSpent | TargetReached) or self._clock.seconds_left(self._ages) <= 0.0:
            return True
        return not self._history.running and (self._nothing_more or self._session.ended is not None)

    @property
    def running(self) -> int:
        """How many trials were asked for and have neither ended nor been paused."""
        return len(self._history.running)

    def trial(self, trial_id: str) -> TrackedTrial | None:
        """The study's trial, None for one that it does not know."""
        number = self.numbers.get(trial_id)
        return None if number is None else self._history.trials[number]

    # -- what happens to trials --------------------------------------------------------------------------------------

    def trains(self, trial_id: str) -> None:
        """A trial has a process from here on."""
        trial = self.trial(trial_id)
        if trial is not None and trial.status is Status.RUNNING:
            self._since.setdefault(trial.number, time.perf_counter())

    def report(self, trial_id: str, result: Result, can_pause: bool) -> Decision:
        """A trial has trained one more step. One that cannot be paused now is paused at the next step where it can."""
        trial = self.trial(trial_id)
        if trial is None or trial.status is not Status.RUNNING:
            return Decision.STOP
        if self._metric not in result:
            return Decision.CONTINUE
        self._nothing_more = False
        with self._writing():
            return self._stepped(trial.number, result, can_pause)

    def _stepped(self, number: int, result: Result, can_pause: bool) -> Decision:
        trial = self._history.trials[number]
        step, outcome = int(result.get(STEP, trial.kept_step + 1)), read_value(result[self._metric])
        if step != trial.kept_step + 1 and trial.curve:  # it went on from another checkpoint
            self._session.drop(number, min(step - 1, len(trial.curve)))
        spent, cost = self._spent(number, result, _seconds(result, THIS_STEP))
        self._since[number] = time.perf_counter()
        if outcome.value is None:
            self._end(number, replace(outcome, cost=cost), spent)
            return Decision.STOP
        missing = range(self._history.trials[number].kept_step + 1, step)  # reports that nobody has seen
        report = Report(outcome.value, _share(cost, len(missing) + 1), saved=can_pause)
        spent = {unit: amount / (len(missing) + 1) for unit, amount in spent.items()}
        decision = Decision.CONTINUE
        for at in (*missing, step):
            decision = self._session.step(
                number, report, spent, self._clock.overhead(), self._clock.seconds_to_think(self._ages),
                can_pause and at == step,
            )  # fmt: skip
            if decision is not Decision.CONTINUE:
                break
        if decision is Decision.CONTINUE and can_pause and self._overdue(number):
            self._session.end(number, Outcome(Status.PAUSED), {})
            decision = Decision.PAUSE
        if decision is not Decision.CONTINUE:
            self._since.pop(number, None)
        return Decision.STOP if decision is Decision.PAUSE and self._session.ended is not None else decision

    def _overdue(self, number: int) -> bool:
        """Whether a trial should have been paused before and could not be."""
        trial = self._history.trials[number]
        return self._history.max_steps is not None and trial.until_step is not None and (
            trial.kept_step > trial.until_step
        )  # fmt: skip

    def complete(self, trial_id: str, result: Result | None) -> None:
        """A trial has ended; its last result may be known already."""
        trial = self.trial(trial_id)
        if trial is None or trial.status is not Status.RUNNING:
            return
        self._nothing_more = False
        number, result = trial.number, result or {}
        with self._writing():
            if self._metric in result and int(result.get(STEP, 1)) > trial.kept_step:
                self._stepped(number, result, can_pause=False)
            if self._history.trials[number].status is not Status.RUNNING:
                return
            outcome = Outcome(Status.COMPLETE)
            if not trial.curve and self._metric not in result:
                outcome = Outcome(Status.FAILED, error=f"it ended without a result that has {self._metric!r}")
            self._end(number, outcome, {})

    def told(self, trial_id: str, result: Result | None) -> None:
        """A trial has ended that was not reported step by step: its last result is its value."""
        trial = self.trial(trial_id)
        if trial is None or trial.status is not Status.RUNNING:
            return
        self._nothing_more = False
        result = result or {}
        if self._metric in result:
            outcome = read_value(result[self._metric])
        else:
            outcome = Outcome(Status.FAILED, error=f"it ended without a result that has {self._metric!r}")
        with self._writing():
            spent, cost = self._spent(trial.number, result, _seconds(result, MEASURED))
            steps = {"steps": result[STEP]} if STEP in result else {}
            self._end(trial.number, replace(outcome, cost=cost, attributes=steps), spent)

    def fail(self, trial_id: str, error: str) -> None:
        """A trial has failed, and will not run again."""
        trial = self.trial(trial_id)
        if trial is None or trial.status is not Status.RUNNING:
            return
        self._nothing_more = False
        with self._writing():
            spent, cost = self._spent(trial.number, None, self._age(trial.number))
            self._end(trial.number, Outcome(Status.FAILED, error=error, cost=cost), spent)

    def retry(self, trial_id: str) -> None:
        """A trial has failed, and will run again from its checkpoint."""
        trial = self.trial(trial_id)
        if trial is not None and trial.number in self._since:
            with self._writing():
                self._session.charge({"failed": self._spent(trial.number, None, self._age(trial.number))[0]})
            del self._since[trial.number]

    def cut(self, trial_id: str) -> None:
        """A trial is stopped because the study has ended, and charged until now."""
        trial = self.trial(trial_id)
        if trial is None or trial.status is not Status.RUNNING:
            return
        ended_by = EndedBy.TARGET if isinstance(self._session.ended, TargetReached) else EndedBy.BUDGET
        status = Status.KILLED
        if ended_by is EndedBy.TARGET or (trial.number not in self._since and not trial.curve):
            status = Status.INTERRUPTED
        elif trial.curve:
            status = Status.PAUSED
        with self._writing():
            spent, cost = self._spent(trial.number, None, self._age(trial.number))
            self._end(trial.number, Outcome(status, error="the study has ended", cost=cost, ended_by=ended_by), spent)

    def close_account(self) -> None:
        """Charge the time that belongs to no trial; the study has ended."""
        with self._writing():
            self._session.charge({"start-up": {"seconds": self._clock.waited()}, **self._clock.overhead()})

    def keep(self, trial_ids: set[str]) -> None:
        """Only these trials of Tune are left: those of others will run again."""
        self.numbers = {known: number for known, number in self.numbers.items() if known in trial_ids}
        self.interrupt(set(self.numbers.values()))

    def interrupt(self, but: set[int]) -> None:
        """All trials but those were interrupted, and will run again."""
        with self._writing():
            for trial in self._history.running:
                if trial.number not in but:
                    self._session.end(trial.number, Outcome(Status.INTERRUPTED, error="Tune lost it"), {})

    def abandon(self, trial_id: str) -> None:
        """A trial that was asked for cannot go on where it was: it is asked for again, and begins anew."""
        trial = self.trial(trial_id)
        if trial is not None and trial.status is Status.RUNNING:
            with self._writing():
                self._session.end(trial.number, Outcome(Status.INTERRUPTED, error="Tune cannot resume it"), {})

    def _end(self, number: int, outcome: Outcome, spent: Mapping[str, float]) -> None:
        self._session.end(number, outcome, spent, self._clock.overhead())
        self._since.pop(number, None)
        try:
            self._failures.hear(self.study.trial(number), self._history.incumbent is not None)
        except EveryTrialFailed as error:  # Tune would wrap it here
            error.study, self._alike = self.study, error

    # -- what it cost ------------------------------------------------------------------------------------------------

    @property
    def _ages(self) -> Ages:
        return Ages(len(self._since), sum(self._age(number) for number in self._since))

    def _age(self, number: int) -> float:
        """Seconds of training that are not charged yet."""
        now = time.perf_counter()
        return now - self._since.get(number, now)

    def _spent(self, number: int, result: Result | None, seconds: float) -> tuple[dict[str, float], float | None]:
        """What `seconds` of training spent, and their cost in the budget's unit: as the result has it, or as measured.
        Wall-clock seconds are those that passed, however many trials they served. The next event must charge it."""
        ledger, waited = self._session.ledger, self._clock.waited()
        spent = {**ledger.budget.priced(seconds), "compute_seconds": seconds}
        if self._cost == MEASURED:
            cost = spent.setdefault(ledger.unit, seconds)
            return {**spent, "seconds": waited}, cost
        spent["seconds"] = waited
        if result is None:
            return {**spent, ledger.unit: 0.0} if ledger.unit == "seconds" else spent, None
        cost = max(self._total(result) - self._known(number, result), 0.0)
        return {**spent, ledger.unit: cost}, cost

    def _total(self, result: Result) -> float:
        """What a trial has cost until a result, in the budget's unit."""
        if callable(self._cost):
            return read_cost(self._cost(result))
        if self._cost not in result:
            raise InvalidArgument(
                f"FarthingSearch: cost: expected the name of a number that is reported, got {self._cost!r}; a result "
                f"has {shown(sorted(result)[:AMONG_MANY])}"
            )
        return read_cost(result[self._cost])

    def _known(self, number: int, result: Result) -> float:
        """What of that is known from the steps before."""
        costs = self._history.trials[number].curve.costs
        return sum(cost or 0.0 for cost in costs[: max(int(result.get(STEP, 1)) - 1, 0)])


def _share(cost: float | None, parts: int) -> float | None:
    return None if cost is None else cost / parts


def _seconds(result: Result, key: str) -> float:
    seconds = result.get(key)
    return max(float(seconds), 0.0) if isinstance(seconds, int | float) else 0.0
