"""The estimator's current parameters, as the first configuration of a search.

A search should not end with a worse score than it started from. Many defaults of scikit-learn are good, and so may be
the parameters that somebody has set.
"""

from __future__ import annotations

from numbers import Real as Number
from typing import Any

from farthing.errors import InvalidConfig
from farthing.space import Integer, Parameter, Real, Space
from farthing.trial import Config


def estimator_config(estimator: Any, space: Space) -> Config | None:
    """The estimator's values of the searched parameters; None if they are not in the space.

    >>> from farthing import Choice
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> space = Space(max_features=Real(0.1, 1), min_samples_leaf=Integer(2, 50), criterion=Choice(["gini", "entropy"]))
    >>> estimator_config(RandomForestClassifier(max_features=0.5), space)
    {'max_features': 0.5, 'min_samples_leaf': 2, 'criterion': 'gini'}
    >>> estimator_config(RandomForestClassifier(max_features="sqrt"), space) is None
    True
    """
    given = estimator.get_params()
    current = {name: _within_bounds(param, given[name]) for name, param in space.params.items() if name in given}
    try:
        places = space.key(current)
    except InvalidConfig:
        return None
    config = {name: current[name] for name, place in zip(space.names, places, strict=True) if place is not None}
    return config if space.allows(config) else None


def _within_bounds(param: Parameter, value: Any) -> Any:
    """A number outside the bounds is moved to the nearer one: 0, for example, is not on a log scale."""
    if isinstance(param, Real | Integer) and isinstance(value, Number) and not isinstance(value, bool):
        return min(max(value, param.low), param.high)
    return value
