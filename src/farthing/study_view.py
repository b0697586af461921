"""What can be seen of a study: its trials, the best one, the ledger. `Study` (study.py) adds all that changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

from farthing import checks
from farthing.acquisitions.ei_change import EIChange
from farthing.acquisitions.pareto import Front, ImpliedAlpha, Persistence
from farthing.budget import Budget, Ledger
from farthing.direction import Direction
from farthing.errors import InvalidArgument, StudyEnded
from farthing.history import History
from farthing.history.cost_knowledge import Task
from farthing.history.history import once_more
from farthing.numerics.threads import one_blas_thread
from farthing.policies import Policy, recommend
from farthing.policies.named import stored_policy
from farthing.policies.outlook import Outlook, outlook_of
from farthing.policies.pareto import ei_change_between, front_of, implied_alphas, persistence_between
from farthing.policies.value_cost import ValueAtCost, bought, not_dominated, shown
from farthing.record.reader import read_study
from farthing.record.settings import checked_config
from farthing.runner.checkpoint_folders import with_checkpoint_dir
from farthing.session import Session
from farthing.space import Space
from farthing.text.plain import counted
from farthing.trial import Config, Proposal, Status, Trial

if TYPE_CHECKING:  # what shows a study is imported when it is asked for, so that the first suggestion comes sooner
    import pandas as pd

    from farthing.report.plots import Plots

NO_TRIAL = Trial(0, {}, Status.RUNNING)  # whose row has the columns of an empty table


class StudyView:
    """A study to look at."""

    _session: Session
    _left_out: tuple[str, ...] = ()  # of its file

    @property
    def space(self) -> Space:
        """The search space."""
        return self._session.space

    @property
    def policy(self) -> Policy:
        """The policy that proposes."""
        return self._session.policy

    @property
    def seed(self) -> int:
        """The seed that makes its proposals repeatable."""
        return self._session.seed

    @property
    def maximize(self) -> bool:
        """Whether the largest value is the best."""
        return self._session.record.settings.maximize

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the last run."""
        return self._session.interrupted

    @property
    def _history(self) -> History:
        return self._session.history

    @property
    def ended(self) -> StudyEnded | None:
        """Why there will be no more proposals, or None."""
        return self._session.ended

    @property
    def why_ended(self) -> str:
        """Why the study, or its last run, has ended, in words; "" while it goes on.

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "4 evaluations", progress=False)
        >>> study.why_ended
        'the budget of 4 evaluations is spent'
        """
        return self._session.why_ended

    @property
    def ledger(self) -> Ledger:
        """What was spent, is committed and remains."""
        return self._session.ledger

    @property
    def notes(self) -> dict[str, Any]:
        """What was noted last; see `note`."""
        return self._session.results.notes

    @property
    def task(self) -> Task:
        """What the data is like, as the study was told."""
        return dict(self._history.cost_knowledge.task)

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, values in your own sign."""
        return with_checkpoint_dir(self._session, *self._session.results.trials)

    def trial(self, number: int) -> Trial:
        """One trial by its number."""
        return self._shown(self._session.results.trial(checks.whole_number("number", number, least=None)))

    def _shown(self, trial: Trial) -> Trial:
        return with_checkpoint_dir(self._session, trial)[0]

    def count(self, *status: Status) -> int:
        """How many trials there are of these kinds, without making a list of them; of all kinds if none is named."""
        return self._history.count(*status)

    @property
    def best(self) -> Trial:
        """The trial with the best value observed; of iterative learners also one that is paused or was stopped."""
        return self._shown(self._session.results.best)

    @property
    def recommended(self) -> Trial:
        """The complete trial that a model of all values thinks best: where values are noisy, not the luckiest."""
        with one_blas_thread():
            return self._shown(self._session.results.found(recommend(self.space, self._history)))

    def pareto(self, trial: int | None = None) -> Front:
        """What improvement can be expected for what cost now, or as it was when that trial was asked for; where EI,
        EIpu, EI-cool and CEI would pick; and the alphas whose EI / cost^alpha would lead to the pick of CEI.

        >>> import farthing as ft
        >>> study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=100), seed=0)
        >>> for _ in range(5):
        ...     proposal = study.ask()
        ...     x = proposal.config["x"]
        ...     _ = study.tell(proposal, value=(x - 0.6) ** 2, cost=1 + 9 * x)
        >>> picks = study.pareto().picks
        >>> picks["CEI"].log_cost <= picks["EI"].log_cost
        True
        """
        return front_of(self._session.record, trial, self.policy)

    def persistence(self, before: int, now: int | None = None) -> Persistence:
        """What has become of the front that was there when trial `before` was asked for: where its points are now, or
        were when trial `now` was asked for, and which are still not dominated (CEI, Figure 7).

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "6 evaluations", progress=False)
        >>> 0.0 <= study.persistence(before=4).share <= 1.0
        True
        """
        return persistence_between(self._session.record, before, now, self.policy)

    def implied_alphas(self, trials: Iterable[int] | None = None) -> list[ImpliedAlpha]:
        """For each trial, the alphas whose EI / cost^alpha leads to the pick of CEI when it was asked for; by default
        for all that a model of values chose, so for none of the initial design. Their mean over several studies is
        CEI's Figure 5.

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "6 evaluations", progress=False)
        >>> [implied.trial for implied in study.implied_alphas()]
        [4, 5]
        """
        return implied_alphas(self._session.record, trials, self.policy)

    def ei_change(
        self, before: int, now: int | None = None, configs: Sequence[Config] | None = None
    ) -> EIChange:  # fmt: skip
        """How expected improvement has changed since trial `before` was asked for, until now or until trial `now` was,
        and how much of that is due to the value to beat and to the model (CEI, appendix B).

        It is in the units of the objective, at these configurations or at the points of the earlier front, for which
        costs have to be known.

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "6 evaluations", progress=False)
        >>> change = study.ei_change(before=4, configs=[{"x": 0.9}])
        >>> bool(abs(change.total - change.by_target - change.by_model) < 1e-12)
        True
        """
        U = None if configs is None else self.space.encode_many(self._checked("configs", configs))
        return ei_change_between(self._session.record, before, now, U, self.policy)

    def _checked(self, name: str, configs: Sequence[Config]) -> list[Config]:
        if isinstance(configs, str | Mapping) or not isinstance(configs, Iterable):
            checks.refuse(name, "a list of configs", configs)
        return [checked_config(name, self.space, config) for config in configs]

    def outlook(self, budget: Budget | str | None = None) -> Outlook:
        """What more budget is expected to bring: by default a tenth of the study's, or what is left if that is less.

        It is an estimate by the models of the next ask, and takes about as long as asking for several configurations.
        Nothing of the study changes, and nothing is charged.

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"] ** 2, {"x": (-1, 2.0)}, "9 evaluations", progress=False, seed=1)
        >>> study.outlook("3 evaluations").gain < study.best.value + 0.1
        True
        """
        found = outlook_of(self._session.record, self.policy, None if budget is None else Budget.of(budget))
        assert found is not None  # time is not limited
        return found

    def value_cost_front(self) -> list[ValueAtCost]:
        """After which total cost of its trials there was which best value: one point for each improvement.

        >>> import farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "6 evaluations", progress=False)
        >>> study.value_cost_front()[-1].value == study.best.value
        True
        """
        record = self._session.record
        return shown(not_dominated(bought(record.history.trials)), record.direction)

    @property
    def plot(self) -> Plots:
        """The figures of the study, each a Plotly figure: study.plot.best_value().show()"""
        from farthing.report.plots import Plots

        return Plots(self._session)

    def save_report(self, path: str | PathLike[str]) -> None:
        """Write a report: one HTML file that needs no network, with figures, all trials, the best configuration ready
        to copy, and what is needed to run the study again (needs plotly).

        >>> import tempfile, farthing as ft
        >>> study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "6 evaluations", progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.save_report(f"{folder}/report.html")
        """
        from farthing.report.saving import Reported, save_report

        name = "Study" if self.storage is None else Path(self.storage).stem
        save_report([Reported(name, self._session, self._left_out)], path)

    @property
    def storage(self) -> str | None:
        """The study's file, None when it lives in memory."""
        return self._session.storage

    @property
    def pending(self) -> list[Proposal]:
        """What `ask` gave and nobody has told yet, also of an earlier process; `start_step` is the last reported."""
        return [once_more(trial) for trial in self._history.pending]

    def to_frame(self, *, curves: bool = False) -> pd.DataFrame:
        """One row per trial: number, status, value, cost, steps, config.<name>, reason, began, ... (needs pandas).

        `began` and `ended` are times in UTC. With `curves` there is a column `curve`, the list of values after each
        step.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'farthing[frame]'") from error
        trials = self.trials
        frame = pd.DataFrame([trial.row for trial in trials], columns=None if trials else list(NO_TRIAL.row))
        for column in ("began", "ended"):
            frame[column] = pd.to_datetime(frame[column], utc=True)
        if checks.switch("curves", curves):
            frame["curve"] = pd.Series([list(trial.curve.values) for trial in trials], dtype=object)
        return frame

    def close(self) -> None:
        """Close the study's file, and let others write to it."""
        self._session.record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> Literal[False]:
        self.close()
        return False

    def __repr__(self) -> str:
        best = self._session.results.best_value
        value = "none yet" if best is None else f"{best:.6g}"
        return (
            f"<{type(self).__name__} {self.policy.name}: {counted(len(self._history.trials), 'trial')}, best {value}, "
            f"{self.ledger.fraction:.0%} of {self.ledger.budget} used>"
        )

    def _repr_html_(self) -> str:
        from farthing.report.cards import study_card

        return study_card(self._session)


def value_cost_front(studies: Mapping[str, StudyView], *, whole: bool = False) -> list[ValueAtCost]:
    """Which of several studies, by name, nobody beats in both their best value and their total cost, by increasing cost
    (the bi-optimisation problem of CEI). With `whole`, all that each of them had bought on its way counts, not only
    what it has now.

    >>> import farthing as ft
    >>> def searched(*sizes):
    ...     study = ft.Study(ft.Space(size=ft.Integer(1, 50)), "9 evaluations", start=[{"size": n} for n in sizes])
    ...     for proposal in study.ask(len(sizes)):
    ...         _ = study.tell(proposal, value=abs(proposal.config["size"] - 30), cost=proposal.config["size"])
    ...     return study
    >>> studies = {"cheap": searched(10, 20), "good": searched(20, 30), "neither": searched(40, 50)}
    >>> [(point.study, point.cost, point.value) for point in value_cost_front(studies)]
    [('cheap', 30.0, 10.0), ('good', 50.0, 0.0)]
    """
    if not isinstance(studies, Mapping):
        checks.refuse("studies", "studies by name", studies)
    held = [checks.instance("studies", study, StudyView, of="studies by name") for study in studies.values()]
    if len({study.maximize for study in held}) > 1:
        raise InvalidArgument("studies: expected studies that all minimise or all maximise, got both")
    points = [
        replace(point, study=name)
        for name, study in zip(studies, held, strict=True)
        for point in bought(study._history.trials)[0 if checks.switch("whole", whole) else -1 :]
    ]
    return shown(not_dominated(points), Direction(any(study.maximize for study in held)))


class OpenedStudy(StudyView):
    """The study of a file, as it was when it was opened or refreshed last; it cannot be changed by this object.

    `Study.open(path)` makes one. Options that a file cannot hold are shown as they were described.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._file = read_study(path)
        self._session = Session(self._file.record, stored_policy(self._file.record.settings.policy))
        self._left_out = self._file.left_out

    def refresh(self) -> Self:
        """Read what was written since; returns the study itself."""
        self._file.refresh()
        return self

    @property
    def runner(self) -> str | None:
        """The process that runs it or writes to it now, as text; None if there is none."""
        return self._file.runner

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parts of the study that its file cannot hold."""
        return self._file.left_out

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        path = self._file.path
        raise InvalidArgument(f"{path}: was opened to look only; Study.resume({path!r}) continues the study")

    ask: ClassVar[Callable[..., NoReturn]]
    tell = report = add = forget = run = stop = note = finish = ask = _refuse
