"""Import search spaces written for other libraries: scipy.stats, lists of options, Optuna, Ray Tune and ConfigSpace.

None of these libraries is imported. An object is recognised by the package its class comes from and read through its
public attributes, so the libraries need not be installed. What Farthing cannot represent exactly is refused, never
approximated: a normal distribution has no bounds, and a function that samples has no list of values.

To add a library, write one module with a function that turns its object into a parameter and a text ACCEPTED that says
what it reads, and add one line to READERS and one to ACCEPTED here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from farthing.checks import refuse
from farthing.errors import InvalidSpace
from farthing.space.foreign import configspace, optuna, ray, scipy
from farthing.space.foreign.common import BOUNDS, LISTED, Partials, bounds, class_names, listed, naming
from farthing.space.parameters import Parameter
from farthing.text.plain import shown

ACCEPTED = (
    f"a Farthing parameter, {LISTED} ([value] for a constant), {BOUNDS}, {scipy.ACCEPTED}, {optuna.ACCEPTED}, "
    f"{ray.ACCEPTED} or {configspace.ACCEPTED}"
)
READERS: Mapping[str, Callable[[Any], Parameter]] = {  # by the package of the object's class
    "scipy": scipy.distribution,
    "optuna": optuna.distribution,
    "ray": ray.domain,
    "ConfigSpace": configspace.hyperparameter,
}


def read(thing: object) -> tuple[dict[str, Parameter], Partials | None]:
    """The parameters and forbidden partial configurations of a mapping from names to parameters, or of a ConfigSpace.

    >>> from scipy.stats import loguniform, randint
    >>> read({"C": loguniform(1e-3, 1e3), "degree": randint(1, 5), "kernel": ["rbf", "poly"]})[0]
    {'C': Real(0.001, 1000.0, log=True), 'degree': Integer(1, 4), 'kernel': Choice(['rbf', 'poly'])}
    """
    if "ConfigurationSpace" in class_names(thing, "ConfigSpace"):
        return configspace.configuration_space(thing)
    if not isinstance(thing, Mapping):
        refuse("space", f"a Space, a ConfigurationSpace, or a mapping from names to {ACCEPTED}", thing, InvalidSpace)
    return {name: parameter(name, item) for name, item in thing.items()}, None


def parameter(name: object, thing: object) -> Parameter:
    """The Farthing parameter of one object, or `InvalidSpace` naming the parameter.

    >>> parameter("batch", [16, 32, 64, 128]), parameter("rate", (1e-4, 0.1, "log"))
    (Ordered([16, 32, 64, 128], log=True), Real(0.0001, 0.1, log=True))
    """
    if isinstance(thing, Mapping) and thing and "grid_search" not in thing:
        raise InvalidSpace(
            f"parameter {name!r}: got a mapping, {shown(thing)}; parameters cannot be nested: give each its own name, "
            f"such as {f'{name}.{next(iter(thing))}'!r}"
        )
    with naming(name):
        found = _parameter(thing)
    if found is None:
        refuse(f"parameter {name!r}", ACCEPTED, thing, InvalidSpace)
    return found


def _parameter(thing: Any) -> Parameter | None:
    if isinstance(thing, Parameter):
        return thing
    for package, read_thing in READERS.items():
        if class_names(thing, package):
            return read_thing(thing)
    if type(thing) is tuple and (bounded := bounds(thing)) is not None:
        return bounded
    options = thing["grid_search"] if isinstance(thing, Mapping) and set(thing) == {"grid_search"} else thing
    if isinstance(options, Sequence) and not isinstance(options, (str, bytes, bytearray)):
        return listed(options)
    if hasattr(options, "__array__") and hasattr(options, "tolist") and np.ndim(options):
        return listed(options.tolist() if np.ndim(options) == 1 else list(options))
    return None
