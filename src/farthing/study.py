"""Study: ask, tell, run. The only stateful object users hold.

What it knows is in its record, which is on disk before it is in memory. What comes next is decided by its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, overload

from farthing import checks
from farthing.budget import Budget, warn_if_endless
from farthing.checks import read_cost, read_value, trial_number
from farthing.errors import EveryTrialFailed, InvalidArgument, StorageError, StudyMismatch, UnknownTrial
from farthing.history.cost_knowledge import CostFeatures, CostKnowledge, CostPrior, Task
from farthing.policies import Policy, continued, policy_as_json, policy_of
from farthing.policies.cost_models import require_counts
from farthing.policies.worth import require_judge
from farthing.record.known_results import known_outcome
from farthing.record.record import Record, settings_in
from farthing.record.settings import (
    checked_config,
    checked_space,
    checked_worth,
    opened,
    require_more_than_spent,
    require_same,
    require_same_functions,
    require_warm_start,
)  # fmt: skip
from farthing.record.storage import closed_on_error, open_log
from farthing.runner.clock import take_beginning
from farthing.runner.failing import MAX_FAILURES
from farthing.runner.finishing import FinishingSession
from farthing.runner.kept_checkpoints import KeepCheckpoints
from farthing.runner.loop import run
from farthing.runner.notices import notice_edits, notice_idleness
from farthing.runner.options import PAUSED_LIMIT, Cluster, RunOptions, checked_callbacks
from farthing.session import Session
from farthing.space import Space
from farthing.study_view import OpenedStudy, StudyView
from farthing.trial import Config, Decision, Objective, Outcome, Proposal, Report, Status, Trial
from farthing.warm_starting import WarmStartFrom, listed, warmed

Callback = Callable[["Study", Trial], Any]


class Study(StudyView):
    """A search for the configuration of least value (or largest, with `maximize`) that the budget can buy.

    space      where to search: a Space, or a dict: {"rate": (1e-4, 0.1, "log"), "depth": (1, 9), "kind": ["a", "b"]}
    budget     a Budget, or text such as "10m", "$5" or "100 evaluations"
    policy     a name ("auto", "carbo", "ei", "random", ...) or an object with options (policies.CEI(tradeoff=0.8))
    maximize   True if the largest value is the best
    seed       a whole number that makes proposals repeatable; None draws one
    storage    a file to keep every event in; an existing one is continued if it holds the same study
    start      configurations to evaluate first
    stop_at    a value good enough to end the study
    stop_when_not_worth  what an improvement by 1 is worth in the budget's unit, or text ("1s per 0.001"): ends the
               study when no evaluation is expected to be worth its cost
    max_steps  the number of steps of a complete training; None takes it from the first one that ends
    known_cost     f(config), the cost of an evaluation in the budget's unit, if you know it: then no cost is modelled
    cost_features  f(config), numbers of at least 0 that count what the program does (flops, rows times trees): one more
                   cost model is a sum of these, each times a price
    cost_prior     a CostPrior: what evaluations cost in earlier studies of the same space
    warm_start     earlier studies, or their files, of this space or one that shares parameters: the study begins with
                   their best configurations and learns from their values and, without a cost_prior, from their costs
    task           a dict that describes the data (rows, columns, classes), for cost priors
    cheap          values at which evaluations are cheap, such as {"n_estimators": 10}: the first ones are near them

    >>> import farthing as ft
    >>> study = ft.Study(ft.Space(x=ft.Real(0, 1)), "8 evaluations", seed=0)
    >>> for _ in range(8):
    ...     proposal = study.ask()
    ...     _ = study.tell(proposal, value=(proposal.config["x"] - 0.3) ** 2)
    >>> study.best.value < 0.01
    True
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        budget: Budget | str,
        *,
        policy: str | Policy = "auto",
        maximize: bool = False,
        seed: int | None = None,
        storage: str | PathLike[str] | None = None,
        start: Iterable[Mapping[str, Any]] = (),
        stop_at: float | None = None,
        stop_when_not_worth: float | str | None = None,
        max_steps: int | None = None,
        known_cost: Callable[[Config], float] | None = None,
        cost_features: CostFeatures | None = None,
        cost_prior: CostPrior | None = None,
        warm_start: WarmStartFrom = (),
        task: Task | None = None,
        cheap: Mapping[str, Any] | None = None,
    ) -> None:
        limits, chosen, space = Budget.of(budget), policy_of(policy), checked_space(space)
        knowledge = CostKnowledge.of(space, known_cost, cost_features, cost_prior, task, cheap)
        require_counts(chosen, knowledge)
        worth = checked_worth(stop_when_not_worth, limits)
        require_judge(chosen, worth)
        first = opened(space, policy_as_json(chosen), seed, maximize, start, stop_at, max_steps, knowledge)
        earlier = listed(warm_start)
        with closed_on_error(open_log(storage)) as log:
            rows = list(log.read())
            if rows:
                found = settings_in(rows, log.name)
                chosen = continued(chosen, found.policy, log.name)
                require_same(space, first, found, seed is None, log.name)
                if earlier:
                    require_warm_start(found, log.name)
                record = Record.replayed(log, rows, found, space, knowledge.with_stored(found.cost))
            else:
                if earlier:
                    first, knowledge = warmed(first, knowledge, earlier, space, limits)
                record = Record.begun(log, first, space, knowledge)
            self._session = Session(record, chosen)
            record.limit(limits)
            record.value(worth)

    @classmethod
    def resume(
        cls,
        path: str | PathLike[str],
        *,
        budget: Budget | str | None = None,
        space: Space | Mapping[str, Any] | None = None,
        policy: str | Policy | None = None,
        stop_when_not_worth: float | str | None = None,
        known_cost: Callable[[Config], float] | None = None,
        cost_features: CostFeatures | None = None,
    ) -> Study:
        """The study in a file, as it was; `budget` is the new total, `stop_when_not_worth` a new price.

        Everything else comes from the file. Pass again what a file cannot hold: options that are not plain values, a
        `forbid` function, a policy of your own, `known_cost` and `cost_features`.
        """
        if not Path(path).is_file():
            raise StorageError(f"{path}: there is no such study file")
        limits = None if budget is None else Budget.of(budget)
        with closed_on_error(open_log(path)) as log:
            rows = list(log.read())
            settings = settings_in(rows, log.name)
            space = Space.from_json(settings.space) if space is None else checked_space(space)
            if difference := space.difference(settings.space):
                raise StudyMismatch(f"{path}: the file holds a study of another space: {difference}")
            chosen = continued(None if policy is None else policy_of(policy), settings.policy, log.name)
            knowledge = CostKnowledge.of(space, known_cost, cost_features, None, None)
            require_same_functions(knowledge.as_json(), settings.cost, log.name)
            record = Record.replayed(log, rows, settings, space, knowledge.with_stored(settings.cost))
            study = cls.__new__(cls)
            study._session = Session(record, chosen)
            if limits is not None:
                require_more_than_spent(record.state.budgeted, limits)
                record.limit(limits)
            worth = checked_worth(stop_when_not_worth, record.ledger.budget)
            require_judge(chosen, worth)
            record.value(worth)
        return study

    @staticmethod
    def open(path: str | PathLike[str]) -> OpenedStudy:
        """The study of a file to look at, also while another process runs it; `refresh` reads what is new.

        It needs neither the objective nor anything else that a file cannot hold, and never changes the file.

        >>> import tempfile, farthing as ft
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(ft.Space(x=ft.Real(0, 1)), "8 evaluations", storage=f"{folder}/s.db")
        ...     view = ft.Study.open(f"{folder}/s.db")
        ...     _ = study.tell(study.ask(), value=0.5)
        ...     len(view.trials), len(view.refresh().trials)
        (0, 1)
        """
        return OpenedStudy(path)

    # -- ask and tell ------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None) -> Proposal: ...
    @overload
    def ask(self, n: int) -> list[Proposal]: ...
    def ask(self, n: int | None = None) -> Proposal | list[Proposal]:
        """The next configuration to evaluate, or up to n of them to evaluate side by side.

        Each trial is pending from here on, also in the study's file, until `tell` says how it ended or `forget` gives
        it up. Raises a StudyEnded (BudgetSpent, TargetReached, NotWorthMore, SpaceExhausted) when there is no more.
        """
        count = checks.optional(checks.whole_number, "n", n, least=1)
        with self._session.own_loop():
            proposals = self._session.propose(count or 1, dict, pending=True)
        copies = [replace(proposal, config=dict(proposal.config)) for proposal in proposals]  # theirs to alter
        return copies[0] if n is None else copies

    def tell(
        self,
        proposal: Proposal | int,
        *,
        value: float | None = None,
        cost: float | None = None,
        seconds: float | None = None,
        failed: str | None = None,
        **attributes: Any,
    ) -> Trial:
        """Say how an evaluation ended: its value, or why it failed; and what it spent.

        `cost` is in the budget's unit; `seconds` are charged as such, and in dollars at the budget's hourly rate. Only
        what you give is charged. A value that is not a finite number makes a failed trial. After reports no value is
        needed: the best one reported is the value, and `cost` and `seconds` are what was not reported yet.
        """
        number = trial_number("tell", proposal)
        with self._session.own_loop():
            trial = self._history.running_trial(number)
            if (value is None) == (failed is None) and (value is not None or not len(trial.curve)):
                raise InvalidArgument("tell: give either value=... or failed='why', and not both")
            spent, cost = self._spent(cost, seconds)
            if failed is not None:
                outcome = Outcome(Status.FAILED, error=str(failed))
            else:
                outcome = Outcome(Status.COMPLETE) if value is None else read_value(value)
            self._session.end(number, replace(outcome, cost=cost, attributes=attributes), spent)
            told = self.trial(number)
        if told.status is Status.COMPLETE and self.count(Status.COMPLETE) == 1:
            warn_if_endless(self.ledger)
        return told

    def _spent(self, cost: float | None, seconds: float | None) -> tuple[dict[str, float], float | None]:
        """In your own loop only what you give is charged; and its cost in the budget's unit, if that is known."""
        budget, spent = self.ledger.budget, dict[str, float]()
        if seconds is not None:
            seconds = checks.number("seconds", seconds, least=0.0)
            spent = {**budget.priced(seconds), "compute_seconds": seconds}
        if cost is not None:
            spent[budget.unit] = read_cost(cost)
        return spent, spent.get(budget.unit)

    def report(
        self, proposal: Proposal | int, value: float, *, cost: float | None = None, seconds: float | None = None,
        train_value: float | None = None, saved: bool = False, **attributes: Any,
    ) -> Decision:  # fmt: skip
        """Report one step of training: its value, and its cost or its seconds since the last report, which are charged
        as in `tell`. Returns what to do next.

        CONTINUE: train the next step. PAUSE: keep the model until `ask` returns the trial again, with `start_step`
        where it was paused. STOP: the trial has ended, because it is complete or not worth more. After PAUSE and STOP
        do not call `tell`. `saved` says that a checkpoint of this step exists, which another process can read too.

        >>> import farthing as ft
        >>> study = ft.Study(ft.Space(rate=ft.Real(0, 1)), ft.Budget(cost=100), policy="ei", seed=0, max_steps=3)
        >>> proposal = study.ask()
        >>> [study.report(proposal, 1 / step, cost=1.0).value for step in (1, 2, 3)]
        ['continue', 'continue', 'stop']
        >>> study.best.value == 1 / 3, study.best.cost
        (True, 3.0)
        """
        number = trial_number("report", proposal)
        outcome, saved = read_value(value), checks.switch("saved", saved)
        spent, cost = self._spent(cost, seconds)
        with self._session.own_loop():
            self._history.running_trial(number)
            if outcome.value is None:
                self._session.end(number, replace(outcome, cost=cost, attributes=attributes), spent)
                return Decision.STOP
            trained = None if train_value is None else read_value(train_value).value
            return self._session.step(number, Report(outcome.value, cost, trained, saved, attributes), spent)

    def forget(self, proposal: Proposal | int) -> Trial:
        """Give up a pending trial whose result will never come. It is interrupted, charged nothing and not proposed
        again, and no more committed in the ledger."""
        number = trial_number("forget", proposal)
        with self._session.own_loop():
            if not self._history.running_trial(number).pending:
                raise UnknownTrial(f"trial {number} is being run: only a trial that `ask` gave can be forgotten")
            self._session.forget(number)
            return self.trial(number)

    def add(
        self, config: Mapping[str, Any], *, value: float | None = None, cost: float | None = None,
        failed: str | None = None, curve: Iterable[float] | None = None, **attributes: Any,
    ) -> Trial:  # fmt: skip
        """Add a result that is known already: of an evaluation by hand, by another program, of an earlier study.

        Every policy learns from it as from a trial of its own, but it is not charged and no evaluation. `failed` says
        why an evaluation failed. `curve` holds the value after each step of a training; its best is the value. `cost`
        is what the evaluation cost then, in the budget's unit, so that costs are learned too.

        >>> import farthing as ft
        >>> study = ft.Study(ft.Space(x=ft.Real(0, 1)), "8 evaluations", seed=0)
        >>> study.add({"x": 0.5}, value=0.04, note="the default").number
        0
        >>> study.best.value, study.ledger.total("evaluations")
        (0.04, 0.0)
        """
        known = checked_config("add", self.space, config)
        outcome, values = known_outcome(value, cost, failed, curve, self._history.max_steps)
        with self._session.own_loop():
            return self.trial(self._session.add(known, replace(outcome, attributes=attributes), values))

    # -- running -----------------------------------------------------------------------------------------------------

    def run(
        self, objective: Objective, *, workers: int | Cluster = 1, isolate: bool | str | None = None,
        trial_seconds: float | str | None = None, trial_memory: float | str | None = None,
        paused_limit: int = PAUSED_LIMIT, paused_memory: float | str | None = None,
        keep_checkpoints: KeepCheckpoints = "best", max_failures: int | None = MAX_FAILURES, meter: Any = None,
        progress: bool | None = None, callbacks: Iterable[Callback] = (),
    ) -> Study:  # fmt: skip
        """Evaluate proposals until the study ends; returns the study itself, and `why_ended` says why.

        After Ctrl-C all is recorded. Then a script goes on with KeyboardInterrupt, whose `study` is the study; at a
        prompt (Python, IPython, a notebook) the study is returned, and its `interrupted` is True.

        workers        number of evaluations that run in parallel, or a cluster: ft.Ray(address="auto", n=64)
        isolate        True runs each in a process that can be killed, False in this one; None isolates if time or
                       money is limited, and refuses an objective that cannot be sent to another process; "spawn" is
                       True without forks: each process is a new one and loads the objective itself
        trial_seconds  the longest a trial may take; then it is killed
        trial_memory   the most memory a trial may hold ("2GB"); then it is killed
        paused_limit   the number of paused learners that may stay alive; beyond that limit the worst one is closed, and
                       continues from its checkpoint or from the beginning
        paused_memory  the most memory their processes may hold together ("2GB"), with the same consequence; None: a
                       quarter of what is available when the run begins
        keep_checkpoints  of which trials that ended: of the "best", of "all", or the number of best ones; those of
                       paused trials always stay
        max_failures   end the run with EveryTrialFailed if this many first trials all fail with one type of error and
                       the study has no value yet; None never does
        meter          what measures cost, if not the clock: "cpu", "energy", a function of seconds, or your own meter
        progress       None shows a live line on a terminal and plain lines elsewhere; False is silent
        callbacks      each is called as callback(study, trial) after a trial ended or was paused; it may call
                       `study.stop()` to end the run
        """
        began = take_beginning()
        options = RunOptions(
            workers=workers, isolate=isolate, trial_seconds=trial_seconds, trial_memory=trial_memory,
            paused_limit=paused_limit, paused_memory=paused_memory, keep_checkpoints=keep_checkpoints,
            max_failures=max_failures, meter=meter, progress=progress,
        )  # fmt: skip
        before = self._history
        notice_edits(self._session, objective)
        self._run(self._session, objective, began, options, callbacks)
        notice_idleness(self._session, before)
        return self

    def finish(
        self, objective: Objective, trial: Trial | int | None = None, *, budget: Budget | str | None = None,
        isolate: bool | None = None, trial_seconds: float | str | None = None, trial_memory: float | str | None = None,
        keep_checkpoints: KeepCheckpoints = "all", meter: Any = None, progress: bool | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Trial:  # fmt: skip
        """Complete the best trial, or the one you name, if it is paused; returns it as it is then.

        It goes on from its checkpoint, or from the beginning if there is none. The study's budget does not end it: what
        it costs is charged to the ledger, which may then show more than the budget. `budget` limits finishing alone
        ("5m"); at its end the trial is paused again. The other options are those of `run`.

        >>> import farthing as ft
        >>> def learner(config):
        ...     for step in range(1, 11):
        ...         yield {"value": config["x"] + 1 / step, "cost": 1}
        >>> study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=10), policy="bapi", max_steps=10, seed=0)
        >>> best = study.run(learner, progress=False).best
        >>> best.status.value, study.finish(learner, progress=False).status.value
        ('paused', 'complete')
        """
        began = take_beginning()
        number = self.best.number if trial is None else trial.number if isinstance(trial, Trial) else trial
        found = self.trial(number)
        if found.status in (Status.COMPLETE, Status.STOPPED):
            return found
        session = FinishingSession(self._session, found.number, None if budget is None else Budget.of(budget))
        options = RunOptions(
            isolate=isolate, trial_seconds=trial_seconds, trial_memory=trial_memory, keep_checkpoints=keep_checkpoints,
            meter=meter, progress=progress,
        )  # fmt: skip
        self._run(session, objective, began, options, callbacks)
        return self.trial(found.number)

    def _run(
        self, session: Session, objective: Objective, began: float, options: RunOptions, callbacks: Iterable[Callback]
    ) -> None:
        called = [partial(callback, self) for callback in checked_callbacks(callbacks)]
        try:
            run(session, objective, began, options, called)
        except (KeyboardInterrupt, EveryTrialFailed) as error:
            error.study = self  # type: ignore[union-attr]  # for who called `tune`, and has no study yet
            raise

    def stop(self) -> None:
        """End the run after the evaluations that are running; no new one begins."""
        self._session.stop_requested = True

    def note(self, **notes: Any) -> None:
        """Keep something in the study's file for whoever continues it, as JSON; it replaces earlier notes.

        >>> import farthing as ft
        >>> study = ft.Study(ft.Space(x=ft.Real(0, 1)), "8 evaluations")
        >>> study.note(command="train {x}")
        >>> study.notes
        {'command': 'train {x}'}
        """
        self._session.record.note(notes)

    def __reduce__(self) -> Any:
        """A copy elsewhere would not be this study: what is told to it would be lost."""
        raise TypeError("a Study cannot be pickled: it lives in one process; open its file in another")
