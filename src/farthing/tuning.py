"""`ft.tune`: a study and its run in one call."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any

from farthing.budget import Budget
from farthing.history.cost_knowledge import CostFeatures, CostPrior, Task
from farthing.policies import Policy
from farthing.runner.clock import counted_from
from farthing.runner.failing import MAX_FAILURES
from farthing.runner.kept_checkpoints import KeepCheckpoints
from farthing.runner.options import PAUSED_LIMIT, Cluster
from farthing.space import Space
from farthing.study import Callback, Study
from farthing.trial import Config, Objective
from farthing.warm_starting import WarmStartFrom


def tune(
    objective: Objective,
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
    workers: int | Cluster = 1,
    isolate: bool | str | None = None,
    trial_seconds: float | str | None = None,
    trial_memory: float | str | None = None,
    paused_limit: int = PAUSED_LIMIT,
    paused_memory: float | str | None = None,
    keep_checkpoints: KeepCheckpoints = "best",
    max_failures: int | None = MAX_FAILURES,
    meter: Any = None,
    progress: bool | None = None,
    callbacks: Iterable[Callback] = (),
) -> Study:
    """Find the best configuration the budget can buy: Study(...).run(objective), in one call. Returns the study.

    objective  f(config), which returns the value to minimise, or a dict with "value", perhaps "cost", and notes; or a
               generator that yields one of these after every step of a training

    {arguments}

    >>> import farthing as ft
    >>> space = ft.Space(x=ft.Real(-5, 5), kind=ft.Choice(["square", "abs"]))
    >>> def objective(config):
    ...     return config["x"] ** 2 if config["kind"] == "square" else abs(config["x"]) + 1
    >>> study = ft.tune(objective, space, "20 evaluations", seed=0, progress=False)
    >>> study.best.config["kind"]
    'square'
    """
    with counted_from(time.perf_counter()):  # opening the file is a part of it
        study = Study(
            space,
            budget,
            policy=policy,
            maximize=maximize,
            seed=seed,
            storage=storage,
            start=start,
            stop_at=stop_at,
            stop_when_not_worth=stop_when_not_worth,
            max_steps=max_steps,
            known_cost=known_cost,
            cost_features=cost_features,
            cost_prior=cost_prior,
            warm_start=warm_start,
            task=task,
            cheap=cheap,
        )
        return study.run(
            objective,
            workers=workers,
            isolate=isolate,
            trial_seconds=trial_seconds,
            trial_memory=trial_memory,
            paused_limit=paused_limit,
            paused_memory=paused_memory,
            keep_checkpoints=keep_checkpoints,
            max_failures=max_failures,
            meter=meter,
            progress=progress,
            callbacks=callbacks,
        )


def _arguments(documented: object) -> str:
    """The paragraph of a docstring that explains arguments, one per line: the one whose lines are in columns."""
    paragraphs = (inspect.getdoc(documented) or "").split("\n\n")
    return next((text for text in paragraphs if re.match(r"\w+ {2,}\w", text)), "")


def _explained(text: str | None) -> str | None:
    """With what `Study` and `Study.run` say of their arguments: said once, it stays true here too."""
    if text is None:  # python -OO
        return None
    arguments = f"{_arguments(Study)}\n\n{_arguments(Study.run)}".replace("\n", "\n    ")
    return text.replace("{arguments}", arguments)


tune.__doc__ = _explained(tune.__doc__)
