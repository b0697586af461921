"""What a new study takes over from earlier ones: their values, their costs, and the configurations to begin with.

The earlier studies are only looked at, as by `Study.open`. Inside, every study minimises, so what was good in an
earlier one counts as good here, whichever of the two maximises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from farthing.budget import Budget
from farthing.checks import refuse
from farthing.designs.filling import sobol
from farthing.errors import FarthingError
from farthing.given import SHARE_TAKEN_OVER
from farthing.history import History, values
from farthing.history.cost_knowledge import DIGITS, MOST_EARLIER, CostKnowledge, CostPrior
from farthing.history.warm_start import EarlierValues, WarmStart
from farthing.numerics.arrays import Array
from farthing.numerics.linalg import squared_distances
from farthing.numerics.rows import few_rows
from farthing.policies.cost_models import chosen_cost_model
from farthing.policies.warm_models import earlier_models
from farthing.record.study_events import Opened
from farthing.space import Space
from farthing.space.shared import SharedPoints, nearest_config, shared_points
from farthing.study_view import OpenedStudy, StudyView
from farthing.surrogates.kernels import matern52
from farthing.text.plain import warn
from farthing.trial import Config, Status

WarmStartFrom: TypeAlias = str | PathLike[str] | StudyView | Iterable[str | PathLike[str] | StudyView]

LEAST_VALUES = 2  # of an earlier study: with fewer there is nothing to model
FIRST = 4  # configurations that a study begins with
COST_WEIGHT = 1.0  # of a log cost, where a standard deviation of the values has 1
NEARNESS, REACH = 1.0, 0.25  # the same of being where another is; and how far that reaches, in a cube of 1 dimension


@dataclass(frozen=True, eq=False)
class _Found:
    """The complete trials of one earlier study that have a place in this space."""

    name: str
    points: SharedPoints
    values: Array  # (n,) to minimise


def warmed(
    first: Opened, knowledge: CostKnowledge, earlier: Sequence[Any], space: Space, budget: Budget
) -> tuple[Opened, CostKnowledge]:
    """The first event of a new study, and what it knows of cost, with what it takes over."""
    studies = [_opened(item) for item in earlier]
    if knowledge.known is None and knowledge.prior is None:
        alike = [study for study in studies if study.ledger.unit == budget.unit]
        knowledge = replace(knowledge, prior=CostPrior.from_others(space, alike))
    found = [some for study in studies if (some := _found(space, study)) is not None]
    first = replace(first, cost=knowledge.as_json())
    if not found:
        return first, knowledge
    most = max(MOST_EARLIER // len(found), LEAST_VALUES)
    kept = tuple(_kept(some, most) for some in found if len(some.values) >= LEAST_VALUES)
    pool = _Pool.of(space, found, WarmStart(kept), knowledge)
    begin = tuple(space.store_config(config) for config in pool.first(budget, first.seed))
    return replace(first, warm_start=WarmStart(kept, begin).as_json()), knowledge


def listed(given: Any) -> list[Any]:
    """One or several earlier studies, as they were given."""
    if isinstance(given, str | PathLike | StudyView):
        return [given]
    if not isinstance(given, Iterable):
        refuse("warm_start", "paths of study files, or studies", given)
    return list(given)


def _opened(given: Any) -> StudyView:
    if isinstance(given, StudyView):
        return given
    if not isinstance(given, str | PathLike):
        refuse("warm_start", "paths of study files, or studies", given)
    try:
        return OpenedStudy(given)
    except FarthingError as error:
        raise type(error)(f"warm_start: {error}") from error


def _name(study: StudyView) -> str:
    storage = study._session.storage
    return "a study in memory" if storage is None else Path(fspath(storage)).name


def _found(space: Space, study: StudyView) -> _Found | None:
    """What can be used of a study; a warning says why nothing can."""
    name, complete = _name(study), study._history.of(Status.COMPLETE)
    points = shared_points(space, [trial.config for trial in complete])
    if not complete:
        warn(f"warm_start: {name} has no complete trial; nothing is taken over from it")
        return None
    if not points.names or not len(points.rows):
        what = "shares no parameter with this space" if not points.names else "has no trial that this space could hold"
        warn(f"warm_start: {name} {what}; nothing is taken over from it")
        return None
    return _Found(name, points, values([complete[i] for i in points.rows]))


def _kept(found: _Found, most: int) -> EarlierValues:
    """As many as a model is fitted to, the best among them, rounded as a file stores them."""
    rows = few_rows(len(found.values), found.values, most)
    values = np.array([float(f"{value:.{DIGITS}g}") for value in found.values[rows]])
    return EarlierValues(found.name, found.points.names, found.points.places[rows].round(DIGITS), values)


# -- what to begin with ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pool:
    """Configurations of the earlier studies, as they are in this space, and what is expected of them."""

    space: Space
    places: list[tuple[tuple[str, ...], Array]]  # names and places of the shared parameters
    configs: list[Config]  # in the middle of the range of what is not shared
    X: Array  # (m, f)
    rank: Array  # (m,) the lower, the better
    costs: Array  # (m,) which they exceed once in six; 0 where nothing is known

    @classmethod
    def of(cls, space: Space, found: Sequence[_Found], warm_start: WarmStart, knowledge: CostKnowledge) -> _Pool:
        middle = np.full(len(space), 0.5)
        places = [(some.points.names, place) for some in found for place in some.points.places]
        configs = [nearest_config(space, names, place, middle) for names, place in places]
        U = space.encode_many(configs)
        X, models = space.features(U), earlier_models(space, warm_start)
        expected = np.mean([model.at(X) for model in models], axis=0) if models else np.zeros(len(X))
        log_cost = chosen_cost_model(space, History(0, cost_knowledge=knowledge))[0]
        logs, variance = (np.zeros(len(X)), np.zeros(len(X))) if log_cost is None else log_cost.predict(X)
        rank = np.where(space.allowed(U), expected + COST_WEIGHT * (logs - np.median(logs)), np.inf)
        costs = np.zeros(len(X)) if log_cost is None else np.exp(logs + np.sqrt(variance))
        return cls(space, places, configs, X, rank, costs)

    def first(self, budget: Budget, seed: int) -> list[Config]:
        """Those that were good in the earlier studies, cheap, and unlike each other. What no earlier study had is
        spread over its range by a Sobol sequence."""
        spread, first = sobol(FIRST, len(self.space), np.random.default_rng(seed)), dict[Any, Config]()
        for i, elsewhere in zip(
            self._chosen(SHARE_TAKEN_OVER * budget.limits.get(budget.unit, np.inf)), spread, strict=False
        ):
            config = nearest_config(self.space, *self.places[i], elsewhere)
            config = config if self.space.allows(config) else self.configs[i]
            first.setdefault(self.space.key(config), config)
        return list(first.values())

    def _chosen(self, left: float) -> list[int]:
        """At most FIRST that cost no more than `left` together: each time the lowest sum of rank and nearness to those
        before it."""
        rank, near, chosen = self.rank, np.zeros(len(self.rank)), list[int]()
        reach = REACH * np.sqrt(len(self.space))
        while len(chosen) < FIRST and np.isfinite(rank := np.where(self.costs <= left, rank, np.inf)).any():
            best = int(np.argmin(rank + NEARNESS * near))
            chosen.append(best)
            left -= self.costs[best]
            near = np.maximum(near, matern52(squared_distances(self.X, self.X[[best]])[:, 0] / reach**2))
            rank = np.where(np.arange(len(rank)) == best, np.inf, rank)
        return sorted(chosen, key=lambda i: self.costs[i])  # so that an error in the costs costs little
