"""What is known about cost before anything is evaluated: a formula, counts of the work, or earlier studies.

Nothing here is a model. `CostKnowledge` travels with the history to where models are made. The user's functions are
called through it, so that what they return is checked in one place and an error names the configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from farthing.checks import function, instance, optional, refuse, switch
from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Mask
from farthing.space import Space
from farthing.space.shared import same_config
from farthing.trial import Config, Status, Trial

Json = dict[str, Any]
Task = Mapping[str, float | str]
CostFeatures = Callable[[Config], Mapping[str, float] | Sequence[float] | float]

# A prior keeps at most this many earlier evaluations, equally many of each study: enough for a model of cost, which is
# fitted to all of them at every suggestion in time that grows with their cube.
MOST_EARLIER = 240
DIGITS = 9  # of a stored number: far more than costs are repeatable to, and half the length of all digits in a file


class Studied(Protocol):
    """The part of a study that a prior reads."""

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
    bounds: Mask  # (n,) true if the evaluation was killed: complete, it would have cost more


@dataclass(frozen=True, eq=False)
class CostPrior:
    """What evaluations cost in earlier studies of the same space, with other data; made by `from_studies`.

    A study with a prior predicts costs like those from its first proposal on, and corrects them by the costs it
    observes; with `fixed` it does not correct them.
    """

    space: Json
    studies: tuple[Earlier, ...]
    fixed: bool = False

    @classmethod
    def from_studies(cls, studies: Iterable[Studied], *, fixed: bool = False) -> CostPrior:
        """From studies of one space, each with its `task`: a dict that describes its data, such as rows and columns.

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
                refuse("studies", "studies (open a file with Study.resume(path))", study)
        if not found:
            refuse("studies", "at least one study", found)
        fixed = switch("fixed", fixed)
        space = found[0].space.as_json()
        for study in found[1:]:
            if difference := study.space.difference(space):
                raise InvalidArgument(f"studies: expected studies of one space, but {difference}")
        prior = cls.from_others(found[0].space, found, fixed=fixed)
        if prior is None:
            raise InvalidArgument("studies: expected a trial with a known cost in at least one of them, got none")
        return prior

    @classmethod
    def from_others(cls, space: Space, studies: Sequence[Studied], *, fixed: bool = False) -> CostPrior | None:
        """From studies of any spaces, as far as their configurations are some of this one; None without any cost."""
        share = max(MOST_EARLIER // max(len(studies), 1), 1)
        kept = [_earlier(space, study, share) for study in studies]
        some = tuple(earlier for earlier in kept if len(earlier.costs))
        return cls(space.as_json(), some, fixed) if some else None

    def as_json(self) -> Json:
        """For the first event of a study."""
        return {"space": self.space, "studies": [_stored(earlier) for earlier in self.studies], "fixed": self.fixed}

    @classmethod
    def from_json(cls, stored: Json) -> CostPrior:
        return cls(stored["space"], tuple(_read(study) for study in stored["studies"]), stored["fixed"])


def _earlier(space: Space, study: Studied, most: int) -> Earlier:
    """Trials with a known cost, rounded as a file stores them; if there are too many, evenly spread over the study.

    The cost of a killed trial is a lower bound. That of an interrupted one says nothing: it may have just begun.
    """
    known = [
        (config, trial)
        for trial in study.trials
        if trial.cost is not None and trial.status is not Status.INTERRUPTED
        and (config := same_config(space, trial.config)) is not None
    ]  # fmt: skip
    if len(known) > most:
        known = [known[i] for i in np.linspace(0, len(known) - 1, most).round().astype(int)]
    U = space.encode_many(config for config, _ in known).reshape(len(known), len(space))
    costs = np.array([float(f"{trial.cost:.{DIGITS}g}") for _, trial in known])
    bounds = np.array([trial.censored for _, trial in known], dtype=np.bool_)
    return Earlier(U.round(DIGITS), costs, dict(study.task), bounds)


def _stored(earlier: Earlier) -> Json:
    stored = {"units": earlier.U.tolist(), "costs": earlier.costs.tolist(), "task": dict(earlier.task)}
    killed = np.flatnonzero(earlier.bounds).tolist()
    return {**stored, "killed": killed} if killed else stored  # older files do not have the key


def _read(stored: Json) -> Earlier:
    costs, bounds = np.array(stored["costs"]), np.zeros(len(stored["costs"]), dtype=np.bool_)
    bounds[stored.get("killed", [])] = True
    return Earlier(np.array(stored["units"]), costs, stored["task"], bounds)


@dataclass(frozen=True, eq=False)
class CostKnowledge:
    """All that a study was told about cost. A file cannot hold the user's functions, only that there are some."""

    known: Callable[[Config], float] | None = None
    features: CostFeatures | None = None
    prior: CostPrior | None = None
    task: Task = field(default_factory=dict)
    cheap: Mapping[str, float] = field(default_factory=dict)  # unit coordinates by name

    @classmethod
    def of(
        cls, space: Space, known_cost: Any, cost_features: Any, cost_prior: Any, task: Any, cheap: Any = None
    ) -> CostKnowledge:  # fmt: skip
        """From a study's arguments, checked."""
        optional(function, "known_cost", known_cost)
        optional(function, "cost_features", cost_features)
        optional(instance, "cost_prior", cost_prior, kind=CostPrior, of="a farthing.CostPrior")
        if known_cost is not None and not (cost_features is None and cost_prior is None):
            raise InvalidArgument("known_cost: replaces every cost model; pass it without cost_features and cost_prior")
        if cost_prior is not None:
            if cost_prior.fixed and cost_features is not None:
                raise InvalidArgument(
                    "cost_features: a fixed cost_prior learns nothing from them; pass only one of the two"
                )
            if difference := space.difference(cost_prior.space):
                raise InvalidArgument(f"cost_prior: expected studies of the same space, but {difference}")
        hints = _checked_cheap(space, cheap)
        knowledge = cls(known_cost, cost_features, cost_prior, _checked_task(task), hints)
        centre = np.full(len(space), 0.5)
        if space.allows(config := space.decode(centre)):
            knowledge.try_at(config)
        return knowledge

    @property
    def speaks_at_once(self) -> bool:
        """Whether costs can be predicted before one was observed."""
        return self.known is not None or self.prior is not None

    def as_json(self) -> Json:
        """For the first event of a study."""
        return {
            "known": self.known is not None,
            "features": self.features is not None,
            "prior": None if self.prior is None else self.prior.as_json(),
            "task": dict(self.task),
            **({"cheap": dict(self.cheap)} if self.cheap else {}),  # older files do not have the key
        }

    def with_stored(self, stored: Json) -> CostKnowledge:
        """These functions, with the prior, the task and the hints of a file."""
        prior = None if stored.get("prior") is None else CostPrior.from_json(stored["prior"])
        return replace(self, prior=prior, task=stored.get("task", {}), cheap=stored.get("cheap", {}))

    def cost_of(self, config: Config) -> float:
        """The cost by `known_cost`."""
        assert self.known is not None
        given = _called(self.known, "known_cost", config)
        cost = _amount(given)
        if cost is None:
            refuse("known_cost", f"a finite number of at least 0 for {config}", given)
        return cost

    def counts_of(self, config: Config) -> dict[Any, float]:
        """The counts by `cost_features`, by name, or by position if it returns no names."""
        assert self.features is not None
        given = _called(self.features, "cost_features", config)
        counts = {name: _amount(count) for name, count in _named(given).items()}
        if not counts or None in counts.values():
            refuse("cost_features", f"finite numbers of at least 0 for {config}", given)
        return cast("dict[Any, float]", counts)

    def features_of(self, configs: Sequence[Config], names: Sequence[Any]) -> Array:
        """The counts with these names, (n, k). Every config must have the same names, in any order."""
        rows = []
        for config in configs:
            counts = self.counts_of(config)
            if counts.keys() != set(names):
                raise InvalidArgument(
                    f"cost_features: expected {_listed(names)} for every config, got {_listed(counts)} for {config}; "
                    "return 0 for work that a config does not do"
                )
            rows.append([counts[name] for name in names])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))

    def try_at(self, config: Config) -> None:
        """Call the functions once, so that a mistake in them is found before anything is spent."""
        if self.known is not None:
            self.cost_of(config)
        if self.features is not None:
            self.counts_of(config)


def _checked_task(task: Any) -> Task:
    if task is None:
        return {}
    if not isinstance(task, Mapping):
        refuse("task", "a dict such as {'rows': 1000}", task)
    checked: dict[str, float | str] = {}
    for name, given in task.items():
        if isinstance(given, str):
            checked[str(name)] = given
        elif (number := _number(given)) is not None:
            checked[str(name)] = number
        else:
            refuse(f"task[{name!r}]", "a finite number or a text", given)
    return checked


def _checked_cheap(space: Space, cheap: Any) -> dict[str, float]:
    """Unit coordinates of the values that are said to be cheap."""
    if cheap is None:
        return {}
    if not isinstance(cheap, Mapping):
        refuse("cheap", "a dict of values at which evaluations are cheap, such as {'n_estimators': 10}", cheap)
    found = {}
    for name, value in cheap.items():
        if name not in space.params:
            refuse("cheap", f"names of parameters ({', '.join(map(repr, space.params))})", name)
        param: Any = space.params[name]
        if (place := param.find(value)) is None:
            refuse(f"cheap[{name!r}]", param.accepted, value)
        found[str(name)] = float(param.unit(place))
    return found


def _called(function: Callable[[Config], Any], name: str, config: Config) -> Any:
    try:
        return function(dict(config))
    except Exception as error:
        raise InvalidArgument(f"{name} raised {error!r} for config {config}") from error


def _named(given: Any) -> Mapping[Any, Any]:
    """Counts by name; those of a list, an array or a single number by position."""
    if isinstance(given, Mapping):
        return given
    return dict(enumerate(np.ravel(np.asarray(given, dtype=object)).tolist()))


def _listed(names: Iterable[Any]) -> str:
    """Names in words, or how many there are if they have none."""
    found = list(names)
    return f"{len(found)} numbers" if found == list(range(len(found))) else ", ".join(sorted(map(str, found)))


def _number(value: Any) -> float | None:
    """A finite number; None for anything else: text, None, and what no float can hold."""
    try:
        number = math.nan if isinstance(value, str | bytes | np.complexfloating) else float(value)
    except Exception:  # a tensor of two elements or an integer of a thousand digits may raise anything
        return None
    return number if math.isfinite(number) else None


def _amount(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0.0 else None
