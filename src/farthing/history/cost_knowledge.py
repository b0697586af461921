"""What is known about cost before anything is evaluated: a formula, what the program counts, or earlier studies.

Nothing here is a model. `CostKnowledge` travels with the history to where models are made; functions of the user are
called through it, so that what they return is checked once and an error names the configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Mask
from farthing.space import Space
from farthing.trial import Config, Status, Trial

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
    bounds: Mask  # (n,) true where the evaluation was killed: complete, it would have cost more


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
        >>> 600 < new.ask().predicted_cost < 10000
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
        described = found[0].space.as_json()
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
        return {"space": self.space, "studies": [_stored(earlier) for earlier in self.studies], "fixed": self.fixed}

    @classmethod
    def from_json(cls, stored: Json) -> CostPrior:
        return cls(stored["space"], tuple(_read(study) for study in stored["studies"]), stored["fixed"])


def _earlier(study: Studied, most: int) -> Earlier:
    """Trials of known cost, evenly over the study if there are too many, as a file can hold them.

    What a killed one spent is a bound; what an interrupted one spent says nothing, it may have just begun.
    """
    known = [trial for trial in study.trials if trial.cost is not None and trial.status is not Status.INTERRUPTED]
    if len(known) > most:
        known = [known[i] for i in np.linspace(0, len(known) - 1, most).round().astype(int)]
    U = study.space.encode_many(trial.config for trial in known).reshape(len(known), len(study.space))
    costs = np.array([float(f"{trial.cost:.{DIGITS}g}") for trial in known])
    bounds = np.array([trial.censored for trial in known], dtype=np.bool_)
    return Earlier(U.round(DIGITS), costs, dict(study.task), bounds)


def _stored(earlier: Earlier) -> Json:
    stored = {"units": earlier.U.tolist(), "costs": earlier.costs.tolist(), "task": dict(earlier.task)}
    killed = np.flatnonzero(earlier.bounds).tolist()
    return {**stored, "killed": killed} if killed else stored  # without any, as in files from before there were bounds


def _read(stored: Json) -> Earlier:
    costs, bounds = np.array(stored["costs"]), np.zeros(len(stored["costs"]), dtype=np.bool_)
    bounds[stored.get("killed", [])] = True
    return Earlier(np.array(stored["units"]), costs, stored["task"], bounds)


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
            if cost_prior.fixed and cost_features is not None:
                raise InvalidArgument("cost_features: a fixed cost_prior learns nothing; leave one of the two out")
            if difference := space.difference(cost_prior.space):
                raise InvalidArgument(f"cost_prior: comes from studies of another space: {difference}")
        knowledge, centre = cls(known_cost, cost_features, cost_prior, _checked_task(task)), np.full(len(space), 0.5)
        if space.allows(config := space.decode(centre)):
            knowledge.try_at(config)
        return knowledge

    @property
    def speaks_at_once(self) -> bool:
        """Whether costs can be expected before one was seen."""
        return self.known is not None or self.prior is not None

    def as_json(self) -> Json:
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
        given = _called(self.known, "known_cost", config)
        cost = _amount(given)
        if cost is None:
            raise InvalidArgument(
                f"known_cost: expected a finite number of at least 0 for {config}, got {given!r:.200}"
            )
        return cost

    def counts_of(self, config: Config) -> dict[Any, float]:
        """What `cost_features` counts, by name, or by place where it gives no names."""
        assert self.features is not None
        given = _called(self.features, "cost_features", config)
        counts = {name: _amount(count) for name, count in _named(given).items()}
        if not counts or None in counts.values():
            raise InvalidArgument(f"cost_features: expected finite numbers of at least 0 for {config}, got {given!r}")
        return cast("dict[Any, float]", counts)

    def features_of(self, configs: Sequence[Config], names: Sequence[Any]) -> Array:
        """The counts of these names, (n, k); the same names for every config, in any order."""
        rows = []
        for config in configs:
            counts = self.counts_of(config)
            if counts.keys() != set(names):
                raise InvalidArgument(
                    f"cost_features: expected {_listed(names)} as elsewhere, got {_listed(counts)} for {config}; "
                    "what a config does not do counts 0"
                )
            rows.append([counts[name] for name in names])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))

    def try_at(self, config: Config) -> None:
        """Call the functions once, so that what they do wrong is known before anything is spent."""
        if self.known is not None:
            self.cost_of(config)
        if self.features is not None:
            self.counts_of(config)


def _checked_task(task: Any) -> Task:
    if task is None:
        return {}
    if not isinstance(task, Mapping):
        raise InvalidArgument(f"task: expected a dict such as {{'rows': 1000}}, got {task!r}")
    checked: dict[str, float | str] = {}
    for name, given in task.items():
        if isinstance(given, str):
            checked[str(name)] = given
        elif (number := _number(given)) is not None:
            checked[str(name)] = number
        else:
            raise InvalidArgument(f"task: {name} must be a finite number or a text, got {given!r}")
    return checked


def _called(function: Callable[[Config], Any], name: str, config: Config) -> Any:
    try:
        return function(dict(config))
    except Exception as error:
        raise InvalidArgument(f"{name} raised {error!r} for config {config}") from error


def _named(given: Any) -> Mapping[Any, Any]:
    """Counts by name; a list or an array by place, a number alone too."""
    if isinstance(given, Mapping):
        return given
    return dict(enumerate(np.ravel(np.asarray(given, dtype=object)).tolist()))


def _listed(names: Iterable[Any]) -> str:
    """Names in words, or how many where there are only places."""
    found = list(names)
    return f"{len(found)} numbers" if found == list(range(len(found))) else ", ".join(sorted(map(str, found)))


def _number(value: Any) -> float | None:
    """A finite number, None for all else: text, None, and what no float can hold."""
    try:
        number = math.nan if isinstance(value, str | bytes | np.complexfloating) else float(value)
    except Exception:  # an integer of a thousand digits and a tensor of two elements raise what they like
        return None
    return number if math.isfinite(number) else None


def _amount(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0.0 else None
