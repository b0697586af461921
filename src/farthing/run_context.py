"""What an objective can know of the run it is called in: `ft.current_run()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from farthing.errors import InvalidArgument, StorageError, TrainingStopped
from farthing.trial import Decision

_current: ContextVar[Run | None] = ContextVar("farthing_current_run", default=None)


class Run:
    """The run that the objective is called in.

    trial           the number of its trial
    step            the step to start from: that of the last checkpoint, 0 without one
    checkpoint_dir  a folder of this configuration's own, kept across pauses, processes and crashes; write the state
                    after a step into it before you yield that step. A crash can come between the two: start from the
                    checkpoint of `step`, even if there is a later one
    remaining       what is left of the budget, in its unit
    """

    def __init__(
        self, trial: int, step: int, folder: Path, left: Callable[[], float],
        reports: Callable[[Mapping[str, Any]], Decision],
    ) -> None:  # fmt: skip
        self.trial, self.step = trial, step
        self._folder, self._left, self._reports = folder, left, reports

    @property
    def checkpoint_dir(self) -> Path:
        """The folder, which exists once it was asked for; never where a link leads."""
        for folder in (self._folder.parent, self._folder):
            if folder.is_symlink():
                raise StorageError(f"{folder}: is a symbolic link, and checkpoints are not written where links lead")
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def remaining(self) -> float:
        """What is left of the budget now, in the middle of a step too where time is what is spent."""
        return self._left()

    def report(
        self, value: float, *, cost: float | None = None, train_value: float | None = None, raises: bool = False,
        **attributes: Any,
    ) -> Decision:  # fmt: skip
        """Report the value after one step, from inside a training loop that cannot yield, and learn what to do next.

        The arguments are those of a dict that a learner yields. CONTINUE: train the next step. STOP: end the training,
        clean up and return; with `raises=True`, TrainingStopped is raised instead, which the objective may let through.
        PAUSE never comes. In a worker process, a paused run waits inside this call until it is resumed; without worker
        processes nothing is paused.

        The value of the trial is the best that was reported. What the objective returns after a report is ignored.

        >>> import farthing as ft
        >>> def objective(config):
        ...     run = ft.current_run()
        ...     for step in range(1, 4):
        ...         if run.report(config["x"] + 1 / step) is ft.Decision.STOP:
        ...             break
        >>> study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "3 evaluations", seed=0, progress=False)
        >>> len(study.best.curve)
        3
        """
        decision = self._reports({**attributes, "value": value, "cost": cost, "train_value": train_value})
        if raises and decision is Decision.STOP:
            raise TrainingStopped(f"the training of trial {self.trial} should end now")
        return decision

    def __repr__(self) -> str:
        return f"Run(trial={self.trial}, step={self.step})"


def current_run() -> Run:
    """The run that the calling objective belongs to.

    >>> import farthing as ft
    >>> def objective(config):
    ...     return config["x"] + ft.current_run().trial
    >>> ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "3 evaluations", seed=0, progress=False).best.number
    0
    """
    run = _current.get()
    if run is None:
        raise InvalidArgument(
            "current_run: there is none; call it inside an objective that a study runs, in the thread that called it"
        )
    return run


@contextmanager
def inside(run: Run | None) -> Iterator[None]:
    """For runners: within, `current_run()` is this one; None: there is none."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
