"""Study: ask, tell, run. The only stateful object users hold.

What it knows is in its record, which is on disk before it is in memory. What comes next is decided by its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from farthing import checks
from farthing.budget import Budget
from farthing.checks import read_cost, read_value, trial_number
from farthing.errors import FarthingError, InvalidArgument, StorageError, StudyMismatch
from farthing.history.cost_knowledge import CostFeatures, CostKnowledge, CostPrior, Task
from farthing.policies import Policy, policy_as_json, policy_from_json, policy_of
from farthing.record.record import Record, settings_in
from farthing.record.settings import checked_space, opened, require_same, require_same_functions
from farthing.record.storage import EventLog, open_log
from farthing.runner.clock import take_beginning
from farthing.runner.loop import run
from farthing.runner.options import PAUSED_LIMIT, RunOptions
from farthing.session import Session
from farthing.space import Space
from farthing.study_view import StudyView
from farthing.trial import Config, Decision, Objective, Outcome, Proposal, Report, Status, Trial

if TYPE_CHECKING:
    pass

Callback = Callable[["Study", Trial], Any]


class Study(StudyView):
    """A search for the configuration of least value (or largest, with `maximize`) that the budget can buy.

    space      where to search
    budget     a Budget, or text such as "10m", "$5" or "100 evaluations"
    policy     a name ("auto", "carbo", "ei", "random", ...) or an object with options (policies.CEI(tradeoff=0.8))
    seed       a whole number that makes proposals repeatable; None draws one
    storage    a file to keep every event in; an existing one is continued if it holds the same study
    start      configurations to evaluate first
    stop_at    a value good enough to end the study
    max_steps  the number of steps of a complete training; None takes it from the first one that ends
    known_cost     f(config), the cost of an evaluation in the budget's unit, if you know it: then no cost is modelled
    cost_features  f(config), numbers of at least 0 that count what the program does (flops, rows times trees): one more
                   cost model is a sum of these, each times a price
    cost_prior     a CostPrior: what evaluations cost in earlier studies of the same space
    task           a dict that describes the data (rows, columns, classes), for cost priors

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
        space: Space,
        budget: Budget | str,
        *,
        policy: str | Policy = "auto",
        maximize: bool = False,
        seed: int | None = None,
        storage: str | PathLike[str] | None = None,
        start: Iterable[Mapping[str, Any]] = (),
        stop_at: float | None = None,
        max_steps: int | None = None,
        known_cost: Callable[[Config], float] | None = None,
        cost_features: CostFeatures | None = None,
        cost_prior: CostPrior | None = None,
        task: Task | None = None,
    ) -> None:
        limits, chosen = Budget.of(budget), policy_of(policy)
        knowledge = CostKnowledge.of(checked_space(space), known_cost, cost_features, cost_prior, task)
        first = opened(space, policy_as_json(chosen), seed, maximize, start, stop_at, max_steps, knowledge)
        with _closed_on_error(open_log(storage)) as log:
            rows = list(log.read())
            if rows:
                found = settings_in(rows, log.name)
                require_same(space, first, found, seed is None, log.name)
                record = Record.replayed(log, rows, found, space, knowledge.with_stored(found.cost))
            else:
                record = Record.begun(log, first, space, knowledge)
            self._session = Session(record, chosen)
            record.limit(limits)

    @classmethod
    def resume(
        cls,
        path: str | PathLike[str],
        *,
        budget: Budget | str | None = None,
        space: Space | None = None,
        policy: str | Policy | None = None,
        known_cost: Callable[[Config], float] | None = None,
        cost_features: CostFeatures | None = None,
    ) -> Study:
        """The study in a file, as it was; `budget` is the new total.

        Everything else comes from the file. Pass again what a file cannot hold: options that are not plain values, a
        `forbid` function, a policy of your own, `known_cost` and `cost_features`.
        """
        if not Path(path).is_file():
            raise StorageError(f"{path}: there is no such study file")
        limits = None if budget is None else Budget.of(budget)
        with _closed_on_error(open_log(path)) as log:
            rows = list(log.read())
            settings = settings_in(rows, log.name)
            if space is None:
                space = Space.from_json(settings.space)
            elif difference := checked_space(space).difference(settings.space):
                raise StudyMismatch(f"{path}: the file holds a study of another space: {difference}")
            chosen = policy_from_json(settings.policy) if policy is None else policy_of(policy)
            if policy_as_json(chosen) != settings.policy:
                raise StudyMismatch(
                    f"{path}: policy is {settings.policy} in the file and {policy_as_json(chosen)} here"
                )
            knowledge = CostKnowledge.of(space, known_cost, cost_features, None, None)
            require_same_functions(knowledge.as_json(), settings.cost, log.name)
            record = Record.replayed(log, rows, settings, space, knowledge.with_stored(settings.cost))
            study = cls.__new__(cls)
            study._session = Session(record, chosen)
            if limits is not None:
                record.limit(limits)
        return study

    # -- ask and tell ------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None) -> Proposal: ...
    @overload
    def ask(self, n: int) -> list[Proposal]: ...
    def ask(self, n: int | None = None) -> Proposal | list[Proposal]:
        """The next configuration to evaluate, or up to n of them to evaluate side by side.

        Raises a StudyEnded (BudgetSpent, TargetReached, SpaceExhausted) when there is nothing more to propose.
        """
        count = checks.optional(checks.whole_number, "n", n, least=1)
        proposals = self._session.propose(count or 1, dict)
        copies = [replace(proposal, config=dict(proposal.config)) for proposal in proposals]  # theirs to alter
        return copies[0] if n is None else copies

    def tell(
        self,
        proposal: Proposal | int,
        *,
        value: float | None = None,
        cost: float | None = None,
        failed: str | None = None,
        **attributes: Any,
    ) -> Trial:
        """Say how an evaluation ended: its value, or why it failed; and its cost in the budget's unit.

        A value that is not a finite number makes a failed trial. Only the cost you give is charged. After reports no
        value is needed: the best one reported is the value, and `cost` is what was not reported yet.
        """
        number = trial_number("tell", proposal)
        trial = self._history.running_trial(number)
        if (value is None) == (failed is None) and (value is not None or not len(trial.curve)):
            raise InvalidArgument("tell: give either value=... or failed='why', and not both")
        cost = None if cost is None else read_cost(cost)
        if failed is not None:
            outcome = Outcome(Status.FAILED, error=str(failed))
        else:
            outcome = Outcome(Status.COMPLETE) if value is None else read_value(value)
        self._session.end(number, replace(outcome, cost=cost, attributes=attributes), self._spent(cost))
        return self.trial(number)

    def _spent(self, cost: float | None) -> dict[str, float]:
        """In your own loop only the costs you give are charged."""
        return {} if cost is None else {self.ledger.unit: cost}

    def report(
        self, proposal: Proposal | int, value: float, *, cost: float | None = None, train_value: float | None = None,
        saved: bool = False, **attributes: Any,
    ) -> Decision:  # fmt: skip
        """Report one step of training: its value, and its cost since the last report. Returns what to do next.

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
        self._history.running_trial(number)
        outcome, saved = read_value(value), checks.switch("saved", saved)
        cost = None if cost is None else read_cost(cost)
        if outcome.value is None:
            self._session.end(number, replace(outcome, cost=cost, attributes=attributes), self._spent(cost))
            return Decision.STOP
        trained = None if train_value is None else read_value(train_value).value
        return self._session.step(number, Report(outcome.value, cost, trained, saved, attributes), self._spent(cost))

    # -- running -----------------------------------------------------------------------------------------------------

    def run(
        self, objective: Objective, *, workers: int = 1, isolate: bool | None = None,
        trial_seconds: float | str | None = None, trial_memory: float | str | None = None,
        paused_limit: int = PAUSED_LIMIT, paused_memory: float | str | None = None, meter: Any = None,
        progress: bool | None = None, callbacks: Iterable[Callback] = (),
    ) -> Study:  # fmt: skip
        """Evaluate proposals until the study ends; returns the study itself.

        workers        number of evaluations that run in parallel
        isolate        True runs each in a process that can be killed, False in this one; None isolates if time or
                       money is limited, and refuses an objective that cannot be sent to another process
        trial_seconds  the longest a trial may take; then it is killed
        trial_memory   the most memory a trial may hold ("2GB"); then it is killed
        paused_limit   the number of paused learners that may stay alive; beyond that limit the worst one is closed, and
                       continues from its checkpoint or from the beginning
        paused_memory  the most memory their processes may hold together ("2GB"), with the same consequence; None: a
                       quarter of what is available when the run begins
        meter          what measures cost, if not the clock: "cpu", "energy", a function of seconds, or your own meter
        progress       None shows a live line on a terminal and plain lines elsewhere; False is silent
        callbacks      each is called as callback(study, trial) after a trial ended or was paused; it may call
                       `study.stop()` to end the run
        """
        began = take_beginning()
        options = RunOptions(
            workers=workers, isolate=isolate, trial_seconds=trial_seconds, trial_memory=trial_memory,
            paused_limit=paused_limit, paused_memory=paused_memory, meter=meter, progress=progress,
        )  # fmt: skip
        run(self._session, objective, began, options, [partial(callback, self) for callback in _checked(callbacks)])
        return self

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


def _checked(callbacks: Any) -> list[Callable[..., Any]]:
    if not isinstance(callbacks, Iterable):
        checks.refuse("callbacks", "a list of functions of a study and a trial", callbacks)
    return [checks.function("callbacks", callback, of="functions of a study and a trial") for callback in callbacks]


@contextmanager
def _closed_on_error(log: EventLog) -> Iterator[EventLog]:
    """A file that turns out to be the wrong one is not held open."""
    try:
        yield log
    except BaseException as error:
        log.close()
        if isinstance(error, Exception) and not isinstance(error, FarthingError):
            raise StorageError(f"{log.name}: event 1 cannot be read ({error!r})") from error
        raise
