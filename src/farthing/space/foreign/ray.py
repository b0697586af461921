"""Domains of Ray Tune."""

from __future__ import annotations

import math
from typing import Any

from farthing.errors import InvalidSpace
from farthing.space.foreign.common import class_names, integer, listed, no_counterpart, real, stepped
from farthing.space.parameters import Parameter

ACCEPTED = "a Ray Tune domain"
DOMAINS = "tune.uniform, loguniform, randint, lograndint, their quantised versions, choice or grid_search"


def domain(thing: Any) -> Parameter:
    """The Farthing parameter of a Ray Tune domain."""
    classes = class_names(thing, "ray")
    if "Categorical" in classes:
        return listed(thing.categories)
    if not classes & {"Float", "Integer"}:
        raise no_counterpart(thing, DOMAINS)
    sampler, step = thing.get_sampler(), None
    if "Quantized" in class_names(sampler, "ray"):
        sampler, step = sampler.get_sampler(), sampler.q
    scale = class_names(sampler, "ray")
    if not scale & {"Uniform", "LogUniform"}:
        raise InvalidSpace(
            f"a Ray Tune {type(sampler).__name__.strip('_')} sampler has no counterpart in Farthing; expected {DOMAINS}"
        )
    log = "LogUniform" in scale
    if "Float" in classes:
        return real(thing.lower, thing.upper, log=log) if step is None else _grid(thing, step, log)
    if step is None or step == 1:  # Ray excludes the upper bound, also if the step is 1
        return integer(thing.lower, thing.upper - 1, log=log)
    first, last = math.ceil(thing.lower / step), math.floor(thing.upper / step)
    return integer(first * step, last * step, log=log, step=step)


def _grid(thing: Any, step: float, log: bool) -> Parameter:
    """The multiples of a step between two bounds, which Ray requires to be multiples themselves."""
    first, last = round(thing.lower / step), round(thing.upper / step)
    return stepped(lambda i: (first + i) * step, last - first + 1, log=log)
