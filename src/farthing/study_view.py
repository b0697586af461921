"""What can be seen of a study: its trials, the best one, the ledger. `Study` (study.py) adds all that changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from farthing import checks
from farthing.acquisitions.pareto import Front
from farthing.budget import Ledger
from farthing.errors import StudyEnded
from farthing.history import History
from farthing.history.cost_knowledge import Task
from farthing.numerics.threads import one_blas_thread
from farthing.plain import counted
from farthing.policies import Policy, recommend
from farthing.policies.pareto import front_of
from farthing.session import Session
from farthing.space import Space
from farthing.trial import Status, Trial

if TYPE_CHECKING:
    import pandas as pd


class StudyView:
    """A study to look at."""

    _session: Session

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
        return self._session.results.trials

    def trial(self, number: int) -> Trial:
        """One trial by its number."""
        return self._session.results.trial(checks.whole_number("number", number, least=None))

    def count(self, *status: Status) -> int:
        """How many trials there are of these kinds, without making a list of them; of all kinds if none is named."""
        return self._history.count(*status)

    @property
    def best(self) -> Trial:
        """The trial with the best value observed; of iterative learners also one that is paused or was stopped."""
        return self._session.results.best

    @property
    def recommended(self) -> Trial:
        """The complete trial that a model of all values thinks best: where values are noisy, not the luckiest."""
        with one_blas_thread():
            return self._session.results.found(recommend(self.space, self._history))

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

    @property
    def storage(self) -> str | None:
        """The study's file, None when it lives in memory."""
        return self._session.storage

    def to_frame(self) -> pd.DataFrame:
        """One row per trial: number, status, value, cost, steps, config.<name>, ... (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'farthing[frame]'") from error
        return pd.DataFrame([trial.row for trial in self.trials])

    def close(self) -> None:
        """Close the study's file."""
        self._session.record.log.close()

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
