"""The estimator's current parameters, as the first configuration of a search.

A search should not end with a worse score than it started from. Many defaults of scikit-learn are good, and so may be
the parameters that somebody has set.
"""

from __future__ import annotations

from numbers import Real as Number
from typing import Any

from farthing.adapters.sklearn.search_space import SearchSpace
from farthing.errors import InvalidConfig
from farthing.space import Integer, Parameter, Real, Space
from farthing.trial import Config


def estimator_config(estimator: Any, searched: SearchSpace) -> Config | None:
    """The estimator's values of the searched parameters; None if they are not in the space.

    >>> from farthing import Choice
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> space = Space(max_features=Real(0.1, 1), min_samples_leaf=Integer(2, 50), criterion=Choice(["gini", "entropy"]))
    >>> estimator_config(RandomForestClassifier(max_features=0.5), SearchSpace(space))
    {'max_features': 0.5, 'min_samples_leaf': 2, 'criterion': 'gini'}
    >>> estimator_config(RandomForestClassifier(max_features="sqrt"), SearchSpace(space)) is None
    True
    """
    given, names = estimator.get_params(), set(searched.names)
    own = {name: value for name, value in given.items() if name in names}
    found = (_valid(config, searched.space) for config in searched.configs(own, partly=True))
    return next((config for config in found if config is not None), None)


def _valid(config: Config, space: Space) -> Config | None:
    """A configuration without what is not active, its numbers moved into the bounds; None if it is not in the space."""
    current = {name: _within_bounds(space.params[name], value) for name, value in config.items()}
    try:
        places = space.key(current)
    except InvalidConfig:
        return None
    active = {name: current[name] for name, place in zip(space.names, places, strict=True) if place is not None}
    return active if space.allows(active) else None


def _within_bounds(param: Parameter, value: Any) -> Any:
    """A number outside the bounds is moved to the nearer one: 0, for example, is not on a log scale."""
    if isinstance(param, Real | Integer) and isinstance(value, Number) and not isinstance(value, bool):
        return min(max(value, param.low), param.high)
    return value
