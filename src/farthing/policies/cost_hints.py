"""What hints at the cost of a configuration before any cost is known: the names of parameters, and `cheap`.

A forest of 1,000 trees costs a hundred times as much as one of 10, and whoever calls a parameter `n_estimators` has
said so. The first evaluations are chosen by that. It decides little later on: models of cost learn what the hints leave
unexplained, and a hint that is wrong is outvoted by the first costs (docs/first-steps.md has the measurements).

An elasticity e says that cost grows as size^e. It is 1 for what is done once for each, and less where other work is
done besides. `cheap` names values at which evaluations are cheap: cost grows away from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from farthing.space import Choice, Integer, Ordered, Real, Space
from farthing.surrogates.cost.hinted import HintedCost
from farthing.surrogates.cost.log_cost import LogFeatures

ELASTICITIES: Mapping[float, str] = {
    1.0: "estimators trees tree iterations iteration iter iters epochs epoch rounds round steps layers layer depth "
    "width units unit hidden neurons filters channels leaves components samples degree heads length size dim folds",
    0.5: "subsample colsample bins bin features",
    0.3: "neighbors neighbours",
    -0.2: "tol tolerance",
    -0.5: "batch leaf child split",
}
BY_WORD = {word: elasticity for elasticity, words in ELASTICITIES.items() for word in words.split()}
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
UNKNOWN_RATIO = float(np.log(10.0))  # log of largest over smallest cost, where a range includes zero
ONE_HOT = float(np.sqrt(0.5))  # the feature of the option that is chosen, see `UnitCube.features`
MOST_RATIO = float(np.log(1000.0))  # log of the most that one parameter is believed to change the cost, by its hint
OTHER_OPTION = 1.0  # log of what other options cost more than the one that is said to be cheap


def elasticity(name: str) -> float:
    """How the cost grows with a parameter, by its name: what makes it fall counts before what makes it grow.

    >>> elasticity("n_estimators"), elasticity("batchSize"), elasticity("learning_rate")
    (1.0, -0.5, 0.0)
    """
    found = [BY_WORD.get(word.lower(), 0.0) for word in WORDS.findall(name)]
    return min(found) if min(found, default=0.0) < 0.0 else max(found, default=0.0)


def hinted_cost(space: Space, cheap: Mapping[str, float]) -> HintedCost | None:
    """The cost that names hint at, and `cheap`, unit coordinates by name; None if there is no hint."""
    return _hinted(ThisSpace(space), tuple(cheap.items()))


def who_hints(space: Space, cheap: Mapping[str, float]) -> str:
    """Who hints at costs, and the verb.

    >>> who_hints(Space(trees=Integer(10, 1000), rate=Real(0.1, 1.0)), {"rate": 0.0})
    'names of parameters and `cheap` hint'
    """
    by_name = any(elasticity(n) and not isinstance(p, Choice) for n, p in space.params.items() if n not in cheap)
    if not by_name:
        return "`cheap` hints"
    return "names of parameters and `cheap` hint" if cheap else "names of parameters hint"


class ThisSpace(NamedTuple):
    """A space that equals no other object: comparing two spaces takes a second where options are many."""

    space: Space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThisSpace) and self.space is other.space

    def __hash__(self) -> int:
        return id(self.space)


@lru_cache(maxsize=16)
def _hinted(this: ThisSpace, cheap: tuple[tuple[str, float], ...]) -> HintedCost | None:
    space = this.space
    given, features = dict(cheap), LogFeatures(space.ratios)
    slopes, ends = np.zeros(len(space.groups)), np.zeros(len(space.groups))
    for j, (name, param) in enumerate(space.params.items()):
        columns = np.flatnonzero(space.groups == j)
        if not isinstance(param, Choice):
            ends[columns], slopes[columns] = _hint_of_number(name, param, given.get(name))
        elif name in given and len(columns) in (1, param.levels):  # more options share columns, which say nothing alone
            level = _level(given[name], param.levels)
            column, end = (columns[0], float(level)) if len(columns) == 1 else (columns[level], ONE_HOT)
            ends[column], slopes[column] = end, OTHER_OPTION / max(end, 1.0 - end)
    if not slopes.any():
        return None
    return HintedCost(slopes, features(ends[np.newaxis])[0], features)


def _hint_of_number(name: str, param: Real | Integer | Ordered, cheap: float | None) -> tuple[float, float]:
    """The cheap end of a parameter, as its feature, and how log cost grows across its range."""
    ratio = _log_ratio(param)
    if cheap is not None:
        end = float(param.positions[_level(cheap, param.levels)]) if isinstance(param, Ordered) else cheap
        return end, min(abs(ratio), MOST_RATIO)
    slope = elasticity(name) * ratio
    return float(slope < 0.0), min(abs(slope), MOST_RATIO)


def _level(unit: float, levels: int) -> int:
    return min(int(unit * levels), levels - 1)


def _log_ratio(param: Real | Integer | Ordered) -> float:
    """log of last over first value; a guess where the range includes zero, 0 where values are no numbers."""
    if isinstance(param, Ordered):
        if not param.numeric or param.levels == 1:
            return 0.0
        first, last = float(param.values[0]), float(param.values[-1])
    else:
        first, last = float(param.low), float(param.high)
    if min(first, last) <= 0.0:
        return UNKNOWN_RATIO if last > first else -UNKNOWN_RATIO
    return float(np.log(last / first))
