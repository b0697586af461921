"""What an objective can know of the run it is called in: `ft.current_run()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from farthing.errors import InvalidArgument, StorageError

_current: ContextVar[Run] = ContextVar("farthing_current_run")


class Run:
    """The run that the objective is called in.

    trial           the number of its trial
    step            the step to start from: that of the last checkpoint, 0 without one
    checkpoint_dir  a folder of this configuration's own, kept across pauses, processes and crashes; write the state
                    after a step into it before you yield that step. A crash can come between the two: start from the
                    checkpoint of `step`, even if there is a later one
    remaining       what is left of the budget, in its unit
    """

    def __init__(self, trial: int, step: int, folder: Path, left: Callable[[], float]) -> None:
        self.trial, self.step = trial, step
        self._folder, self._left = folder, left

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
    run = _current.get(None)
    if run is None:
        raise InvalidArgument("current_run: there is none; call it inside an objective that a study runs")
    return run


@contextmanager
def inside(run: Run) -> Iterator[None]:
    """For runners: within, `current_run()` is this one."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
