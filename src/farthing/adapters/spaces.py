"""Spaces written for others: scipy.stats, lists of options, Optuna, Ray Tune and ConfigSpace.

Nothing foreign is imported here. A thing is known by the package its class comes from and read through its public
attributes, so a package that is not installed cannot be in the way. What has no counterpart is refused, never
approximated: a normal distribution has no bounds, a function that samples has no values to speak of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from farthing.adapters.configspace import configuration_space, hyperparameter
from farthing.adapters.foreign import integer, kinds, listed, naming, no_counterpart, real, shown, stepped
from farthing.errors import InvalidSpace
from farthing.options import Parameter
from farthing.space import Space

LISTED = "a list of options"
OWN = "a Farthing parameter"
SCIPY = "scipy.stats.uniform, loguniform or randint"
OPTUNA = "an Optuna distribution"
RAY = "a Ray Tune domain"
CONFIGSPACE = "a ConfigSpace hyperparameter"
ACCEPTED = f"{OWN}, {LISTED} ([value] for a constant), {SCIPY}, {OPTUNA}, {RAY} or {CONFIGSPACE}"


def space_of(thing: object) -> Space:
    """The Farthing space of a mapping from names to things, of a ConfigSpace, or of a space.

    >>> from scipy.stats import loguniform, randint
    >>> space_of({"C": loguniform(1e-3, 1e3), "degree": randint(1, 5), "kernel": ["rbf", "poly"]})
    Space(C=Real(0.001, 1000.0, log=True), degree=Integer(1, 4), kernel=Choice(['rbf', 'poly']))
    """
    if isinstance(thing, Space):
        return thing
    if "ConfigurationSpace" in kinds(thing, "ConfigSpace"):
        return configuration_space(thing)
    if not isinstance(thing, Mapping):
        raise InvalidSpace(
            f"a space must map names to parameters, got {shown(thing)}; "
            f"accepted: a Space, a ConfigurationSpace, or a mapping from names to {ACCEPTED}"
        )
    return Space({name: parameter(name, item) for name, item in thing.items()})


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
        return _converted(thing)


def _converted(thing: Any) -> Parameter:
    if isinstance(thing, Parameter):
        return thing
    for package, convert in CONVERTERS.items():
        if kinds(thing, package):
            return convert(thing)
    options = thing["grid_search"] if isinstance(thing, Mapping) and set(thing) == {"grid_search"} else thing
    if isinstance(options, Sequence) and not isinstance(options, (str, bytes, bytearray)):
        return listed(options)
    if hasattr(options, "__array__") and hasattr(options, "tolist") and np.ndim(options):
        return listed(options.tolist() if np.ndim(options) == 1 else list(options))
    raise InvalidSpace(f"got {shown(thing)}; accepted: {ACCEPTED}")


# Packages


def _from_scipy(thing: Any) -> Parameter:
    family = kinds(getattr(thing, "dist", None), "scipy")
    if not family or not hasattr(thing, "support"):  # not frozen, or of the newer kind
        raise no_counterpart(thing, f"{SCIPY} with their bounds, as uniform(loc, scale)")
    if not family & {"uniform_gen", "randint_gen", "reciprocal_gen"}:
        raise InvalidSpace(f"{_called(thing)} has no counterpart here; accepted: {SCIPY}, or {LISTED}")
    low, high = map(_scalar, thing.support())
    if np.isnan(low).any():
        raise InvalidSpace(f"{_called(thing)} has no values; accepted: bounds in order")
    if "reciprocal_gen" in family:  # loguniform, and its older name
        # A shifted one is not log-uniform in its values.
        loc = thing.kwds.get("loc", thing.args[2] if len(thing.args) > 2 else 0)
        if np.any(np.not_equal(loc, 0)):
            raise InvalidSpace(f"scipy.stats.loguniform with loc={loc!r} has no counterpart here; accepted: loc=0")
        return real(low, high, log=True)
    return real(low, high) if "uniform_gen" in family else integer(low, high)


def _called(thing: Any) -> str:
    """A frozen distribution as it was written."""
    named = [f"{name}={value!r}" for name, value in thing.kwds.items()]
    return f"scipy.stats.{thing.dist.name}({', '.join([*map(repr, thing.args), *named])})"


def _scalar(bound: Any) -> Any:
    return bound.item() if np.ndim(bound) == 0 and hasattr(bound, "item") else bound


def _from_optuna(thing: Any) -> Parameter:
    family = kinds(thing, "optuna")
    if "FloatDistribution" in family:
        if thing.step is None:
            return real(thing.low, thing.high, log=thing.log)
        low, high, step = thing.low, thing.high, thing.step
        count = round((high - low) / step) + 1  # Optuna has seen to it that a step lands on high
        return stepped(lambda i: min(i * step + low, high), count)
    if "IntDistribution" in family:
        return integer(thing.low, thing.high, log=thing.log, step=thing.step)
    if "CategoricalDistribution" in family:
        return listed(thing.choices)
    raise no_counterpart(thing, "FloatDistribution, IntDistribution or CategoricalDistribution")


RAY_DOMAINS = "tune.uniform, loguniform, randint, lograndint, their quantised kin, choice or grid_search"


def _from_ray(thing: Any) -> Parameter:
    family = kinds(thing, "ray")
    if "Categorical" in family:
        return listed(thing.categories)
    if not family & {"Float", "Integer"}:
        raise no_counterpart(thing, RAY_DOMAINS)
    sampler, step = thing.get_sampler(), None
    if "Quantized" in kinds(sampler, "ray"):
        sampler, step = sampler.get_sampler(), sampler.q
    scale = kinds(sampler, "ray")
    if not scale & {"Uniform", "LogUniform"}:
        raise InvalidSpace(
            f"a Ray Tune {type(sampler).__name__.strip('_')} sampler has no counterpart here; accepted: {RAY_DOMAINS}"
        )
    log = "LogUniform" in scale
    if "Float" in family:
        return real(thing.lower, thing.upper, log=log) if step is None else _ray_grid(thing, step, log)
    if step is None or step == 1:  # Ray leaves the upper bound out, also when the step is 1
        return integer(thing.lower, thing.upper - 1, log=log)
    first, last = math.ceil(thing.lower / step), math.floor(thing.upper / step)
    return integer(first * step, last * step, log=log, step=step)


def _ray_grid(thing: Any, step: float, log: bool) -> Parameter:
    """The multiples of a step between two bounds, which Ray has seen to be multiples themselves."""
    first, last = round(thing.lower / step), round(thing.upper / step)
    return stepped(lambda i: (first + i) * step, last - first + 1, log=log)


CONVERTERS: dict[str, Callable[[Any], Parameter]] = {
    "scipy": _from_scipy,
    "optuna": _from_optuna,
    "ray": _from_ray,
    "ConfigSpace": hyperparameter,
}
