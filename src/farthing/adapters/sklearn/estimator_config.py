"""The estimator's current parameters, as the first configuration of a search.

A search should not end with a worse score than it started from. Many defaults of scikit-learn are good, and so may be
the parameters that somebody has set. Some have no counterpart in the space (`gamma="scale"`, `n_components=None`): such
a parameter begins in the middle of its range, and the others still begin where somebody thought they should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real as Number
from typing import Any

from farthing.adapters.sklearn.search_space import WHICH, SearchSpace
from farthing.space import Choice, Integer, Parameter, Real, Space
from farthing.trial import Config


def estimator_config(estimator: Any, searched: SearchSpace) -> Config | None:
    """The estimator's values of the searched parameters; None if it has none of them, or the space forbids them.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> space = Space(max_features=Real(0.1, 1), min_samples_leaf=Integer(2, 50), criterion=Choice(["gini", "entropy"]))
    >>> estimator_config(RandomForestClassifier(max_features=0.5), SearchSpace(space))
    {'max_features': 0.5, 'min_samples_leaf': 2, 'criterion': 'gini'}
    >>> estimator_config(RandomForestClassifier(max_features="sqrt"), SearchSpace(space))
    {'max_features': 0.55, 'min_samples_leaf': 2, 'criterion': 'gini'}
    """
    given, names = estimator.get_params(), set(searched.names)
    own = {name: value for name, value in given.items() if name in names}
    starts = [_completed(config, searched.space) for config in searched.configs(own, partly=True)]
    allowed = [start for start in starts if start.has_own and searched.space.allows(start.config)]
    return min(allowed, key=lambda start: start.distance).config if allowed else None


@dataclass(frozen=True)
class _Start:
    """A configuration and those of its parameters that the estimator did not give."""

    config: Config
    missing: tuple[Parameter, ...]

    @property
    def has_own(self) -> bool:
        """Whether it is the estimator's at all: a dict without parameters is the estimator as it is."""
        return not self.missing or len(self.missing) < len(self.config.keys() - {WHICH})

    @property
    def distance(self) -> tuple[int, int]:
        """How far from the estimator: another option makes another model, another number rarely does."""
        return sum(isinstance(param, Choice) for param in self.missing), len(self.missing)


def _completed(config: Config, space: Space) -> _Start:
    """A configuration without what is not active, its numbers moved into the bounds; what is missing or has no place in
    the space is in the middle."""
    own = {name: _within_bounds(space.params[name], value) for name, value in config.items()}
    own = {name: value for name, value in own.items() if space.params[name].find(value) is not None}
    full = {name: own[name] if name in own else _middle(param) for name, param in space.params.items()}
    active = {name for name, place in zip(space.names, space.key(full), strict=True) if place is not None}
    missing = tuple(param for name, param in space.params.items() if name in active - own.keys())
    return _Start({name: value for name, value in full.items() if name in active}, missing)


def _middle(param: Parameter) -> Any:
    """The middle of a range on its own scale, or of the list of options."""
    return Space({"it": replace(param, when=None)}).decode([0.5])["it"]


def _within_bounds(param: Parameter, value: Any) -> Any:
    """A number outside the bounds is moved to the nearer one: 0, for example, is not on a log scale."""
    if isinstance(param, Real | Integer) and isinstance(value, Number) and not isinstance(value, bool):
        return min(max(value, param.low), param.high)
    return value
