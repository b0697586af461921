"""The estimator's own parameters, as a configuration to begin with.

A search should not end with less than it was given. Many defaults of scikit-learn are good ones, and so may be what
somebody has set.
"""

from __future__ import annotations

from numbers import Real as Number
from typing import Any

from farthing.errors import InvalidConfig
from farthing.space import Integer, Parameter, Real, Space
from farthing.trial import Config


def own_config(estimator: Any, space: Space) -> Config | None:
    """What the estimator has for the parameters that are searched; None where the space has nothing like it.

    >>> from farthing import Choice
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> space = Space(max_features=Real(0.1, 1), min_samples_leaf=Integer(2, 50), criterion=Choice(["gini", "entropy"]))
    >>> own_config(RandomForestClassifier(max_features=0.5), space)
    {'max_features': 0.5, 'min_samples_leaf': 2, 'criterion': 'gini'}
    >>> own_config(RandomForestClassifier(max_features="sqrt"), space) is None
    True
    """
    given = estimator.get_params()
    own = {name: _moved(param, given[name]) for name, param in space.params.items() if name in given}
    try:
        places = space.key(own)
    except InvalidConfig:
        return None
    config = {name: own[name] for name, place in zip(space.names, places, strict=True) if place is not None}
    return config if space.allows(config) else None


def _moved(param: Parameter, value: Any) -> Any:
    """A number beyond the bounds of a range at the nearer one: 0 is no number on a logarithmic scale."""
    if isinstance(param, Real | Integer) and isinstance(value, Number) and not isinstance(value, bool):
        return min(max(value, param.low), param.high)
    return value
