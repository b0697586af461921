"""What is known about cost before anything is evaluated: a formula, what the program counts, or earlier studies.

Nothing here is a model. `CostKnowledge` travels with the history to where models are made; functions of the user are
called through it, so that what they return is checked once and an error names the configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidArgument
from farthing.space import Space
from farthing.trial import Config, Trial

Array = NDArray[np.float64]
Json = dict[str, Any]
Task = Mapping[str, float | str]
CostFeatures = Callable[[Config], Mapping[str, float] | Sequence[float] | float]

MOST_EARLIER = 240  # earlier evaluations that a prior keeps, an equal part of each study
DIGITS = 9  # of a stored number


class Studied(Protocol):
    """What a prior reads of a study."""

    @property
    def space(self) -> Space: ...
    @property
    def trials(self) -> list[Trial]: ...
    @property
    def task(self) -> Task: ...


@dataclass(frozen=True, eq=False)
class Earlier:
    """The costs of one earlier study, and what its data was like."""

    U: Array  # (n, p)
    costs: Array  # (n,)
    task: Task


@dataclass(frozen=True, eq=False)
class CostPrior:
    """What evaluations cost in earlier studies of the same space, with other data; made by `from_studies`.

    A study that is given one expects the costs of those studies from its first proposal on, and corrects them by what
    it sees; with `fixed` it does not correct them.
    """

    space: Json
    studies: tuple[Earlier, ...]
    fixed: bool = False

    @classmethod
    def from_studies(cls, studies: Iterable[Studied], *, fixed: bool = False) -> CostPrior:
        """From studies of one space, each with its `task`: a dict that describes its data, by rows and columns say.

        >>> import farthing as ft
        >>> def earlier(rows):
        ...     study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", seed=0, task={"rows": rows})
        ...     for _ in range(4):
        ...         proposal = study.ask()
        ...         _ = study.tell(proposal, value=0.0, cost=rows * 10 ** proposal.config["x"])
        ...     return study
        >>> prior = ft.CostPrior.from_studies([earlier(100), earlier(200), earlier(400)])
        >>> new = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=1e6), cost_prior=prior, task={"rows": 800})
        >>> 800 < new.ask().predicted_cost < 8000
        True
        """
        found = list(studies) if isinstance(studies, Iterable) and not isinstance(studies, str) else [studies]
        for study in found:
            if not all(hasattr(study, name) for name in ("space", "trials", "task")):
                raise InvalidArgument(
                    f"CostPrior.from_studies: expected studies, got {study!r}; open a file by Study.resume(path)"
                )
        if not found:
            raise InvalidArgument("CostPrior.from_studies: expected at least one study, got none")
        described = found[0].space.describe()
        for study in found[1:]:
            if difference := study.space.difference(described):
                raise InvalidArgument(f"CostPrior.from_studies: the studies have different spaces: {difference}")
        share = max(MOST_EARLIER // len(found), 1)
        kept = [_earlier(study, share) for study in found]
        if not any(len(earlier.costs) for earlier in kept):
            raise InvalidArgument("CostPrior.from_studies: none of the studies has a trial whose cost is known")
        return cls(described, tuple(earlier for earlier in kept if len(earlier.costs)), fixed)

    def as_json(self) -> Json:
        """For the first event of a study."""
        studies = [
            {"units": earlier.U.tolist(), "costs": earlier.costs.tolist(), "task": dict(earlier.task)}
            for earlier in self.studies
        ]
        return {"space": self.space, "studies": studies, "fixed": self.fixed}

    @classmethod
    def from_json(cls, stored: Json) -> CostPrior:
        studies = (
            Earlier(np.array(study["units"]), np.array(study["costs"]), study["task"]) for study in stored["studies"]
        )
        return cls(stored["space"], tuple(studies), stored["fixed"])


def _earlier(study: Studied, most: int) -> Earlier:
    """Trials of known cost, evenly over the study if there are too many, as a file can hold them."""
    known = [trial for trial in study.trials if trial.cost is not None]
    if len(known) > most:
        known = [known[i] for i in np.linspace(0, len(known) - 1, most).round().astype(int)]
    U = study.space.encode_many(trial.config for trial in known).reshape(len(known), len(study.space))
    costs = np.array([float(f"{trial.cost:.{DIGITS}g}") for trial in known])
    return Earlier(U.round(DIGITS), costs, dict(study.task))


@dataclass(frozen=True, eq=False)
class CostKnowledge:
    """All that a study was told about cost. Functions are the user's; a file can only say that there are some."""

    known: Callable[[Config], float] | None = None
    features: CostFeatures | None = None
    prior: CostPrior | None = None
    task: Task = field(default_factory=dict)

    @classmethod
    def of(
        cls, space: Space, known_cost: Any, cost_features: Any, cost_prior: Any, task: Any
    ) -> CostKnowledge:  # fmt: skip
        """From a study's arguments, checked."""
        for name, given in (("known_cost", known_cost), ("cost_features", cost_features)):
            if given is not None and not callable(given):
                raise InvalidArgument(f"{name}: expected a function of a config, got {given!r}")
        if known_cost is not None and not (cost_features is None and cost_prior is None):
            raise InvalidArgument("known_cost: replaces every cost model; leave out cost_features and cost_prior")
        if cost_prior is not None:
            if not isinstance(cost_prior, CostPrior):
                raise InvalidArgument(f"cost_prior: expected a farthing.CostPrior, got {type(cost_prior).__name__}")
            if difference := space.difference(cost_prior.space):
                raise InvalidArgument(f"cost_prior: comes from studies of another space: {difference}")
        return cls(known_cost, cost_features, cost_prior, _checked_task(task))

    @property
    def speaks_at_once(self) -> bool:
        """Whether costs can be expected before one was seen."""
        return self.known is not None or self.prior is not None

    def describe(self) -> Json:
        """For the first event of a study."""
        return {
            "known": self.known is not None,
            "features": self.features is not None,
            "prior": None if self.prior is None else self.prior.as_json(),
            "task": dict(self.task),
        }

    def with_stored(self, stored: Json) -> CostKnowledge:
        """These functions, with the prior and the task of a file."""
        prior = None if stored.get("prior") is None else CostPrior.from_json(stored["prior"])
        return replace(self, prior=prior, task=stored.get("task", {}))

    def cost_of(self, config: Config) -> float:
        """What `known_cost` says."""
        assert self.known is not None
        cost = _called(self.known, "known_cost", config)
        if not _is_amount(cost):
            raise InvalidArgument(f"known_cost: expected a number of at least 0 for {config}, got {cost!r}")
        return float(cost)

    def features_of(self, configs: Sequence[Config]) -> Array:
        """What `cost_features` counts, (n, k)."""
        assert self.features is not None
        rows = [_row(_called(self.features, "cost_features", config), config) for config in configs]
        if len({len(row) for row in rows}) > 1:
            raise InvalidArgument(f"cost_features: expected as many for every config, got {sorted(map(len, rows))}")
        return np.array(rows, dtype=np.float64)


def _checked_task(task: Any) -> Task:
    if task is None:
        return {}
    if not isinstance(task, Mapping):
        raise InvalidArgument(f"task: expected a dict such as {{'rows': 1000}}, got {task!r}")
    checked: dict[str, float | str] = {}
    for name, given in task.items():
        if isinstance(given, str):
            checked[str(name)] = given
        elif _is_number(given):
            checked[str(name)] = float(given)
        else:
            raise InvalidArgument(f"task: {name} must be a finite number or a text, got {given!r}")
    return checked


def _called(function: Callable[[Config], Any], name: str, config: Config) -> Any:
    try:
        return function(dict(config))
    except Exception as error:
        raise InvalidArgument(f"{name} raised {error!r} for config {config}") from error


def _row(given: Any, config: Config) -> list[float]:
    values: list[Any] = list(given.values()) if isinstance(given, Mapping) else np.ravel(given).tolist()
    if not values or not all(map(_is_amount, values)):
        raise InvalidArgument(f"cost_features: expected numbers of at least 0 for {config}, got {given!r}")
    return [float(value) for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0
