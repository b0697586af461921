"""Search spaces written for other libraries: scipy.stats, lists of options, Optuna, Ray Tune and ConfigSpace.

Nothing foreign is imported here. A thing is known by the package its class comes from and read through its public
attributes, so a package that is not installed cannot be in the way. What has no counterpart is refused, never
approximated: a normal distribution has no bounds, a function that samples has no values to speak of.

A new library is one module here, with a function from its thing to a parameter, and one line of READERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from farthing.errors import InvalidSpace
from farthing.space.choices import Parameter
from farthing.space.foreign import configspace, optuna, ray, scipy
from farthing.space.foreign.common import LISTED, Partials, kinds, listed, naming, shown

OWN = "a Farthing parameter"
ACCEPTED = (
    f"{OWN}, {LISTED} ([value] for a constant), {scipy.ACCEPTED}, {optuna.ACCEPTED}, {ray.ACCEPTED} or "
    f"{configspace.ACCEPTED}"
)
READERS: Mapping[str, Callable[[Any], Parameter]] = {  # by the package that a thing's class comes from
    "scipy": scipy.distribution,
    "optuna": optuna.distribution,
    "ray": ray.domain,
    "ConfigSpace": configspace.hyperparameter,
}


def read(thing: object) -> tuple[dict[str, Parameter], Partials | None]:
    """The parameters and forbidden partial configurations of a mapping from names to things, or of a ConfigSpace.

    >>> from scipy.stats import loguniform, randint
    >>> read({"C": loguniform(1e-3, 1e3), "degree": randint(1, 5), "kernel": ["rbf", "poly"]})[0]
    {'C': Real(0.001, 1000.0, log=True), 'degree': Integer(1, 4), 'kernel': Choice(['rbf', 'poly'])}
    """
    if "ConfigurationSpace" in kinds(thing, "ConfigSpace"):
        return configspace.configuration_space(thing)
    if not isinstance(thing, Mapping):
        raise InvalidSpace(
            f"a space must map names to parameters, got {shown(thing)}; "
            f"accepted: a Space, a ConfigurationSpace, or a mapping from names to {ACCEPTED}"
        )
    return {name: parameter(name, item) for name, item in thing.items()}, None


def parameter(name: object, thing: object) -> Parameter:
    """The Farthing parameter of one thing, or `InvalidSpace` naming the parameter.

    >>> parameter("batch", [16, 32, 64, 128])
    Ordered([16, 32, 64, 128], log=True)
    """
    if isinstance(thing, Mapping) and thing and "grid_search" not in thing:
        raise InvalidSpace(
            f"parameter {name!r}: got a mapping, {shown(thing)}; parameters are not nested here: give each a name of "
            f"its own, as {f'{name}.{next(iter(thing))}'!r}"
        )
    with naming(name):
        return _parameter(thing)


def _parameter(thing: Any) -> Parameter:
    if isinstance(thing, Parameter):
        return thing
    for package, read_thing in READERS.items():
        if kinds(thing, package):
            return read_thing(thing)
    options = thing["grid_search"] if isinstance(thing, Mapping) and set(thing) == {"grid_search"} else thing
    if isinstance(options, Sequence) and not isinstance(options, (str, bytes, bytearray)):
        return listed(options)
    if hasattr(options, "__array__") and hasattr(options, "tolist") and np.ndim(options):
        return listed(options.tolist() if np.ndim(options) == 1 else list(options))
    raise InvalidSpace(f"got {shown(thing)}; accepted: {ACCEPTED}")
