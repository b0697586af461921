"""Ray Tune's domains."""

from __future__ import annotations

import math
from typing import Any

from farthing.errors import InvalidSpace
from farthing.space.choices import Parameter
from farthing.space.foreign.common import integer, kinds, listed, no_counterpart, real, stepped

ACCEPTED = "a Ray Tune domain"
DOMAINS = "tune.uniform, loguniform, randint, lograndint, their quantised kin, choice or grid_search"


def domain(thing: Any) -> Parameter:
    family = kinds(thing, "ray")
    if "Categorical" in family:
        return listed(thing.categories)
    if not family & {"Float", "Integer"}:
        raise no_counterpart(thing, DOMAINS)
    sampler, step = thing.get_sampler(), None
    if "Quantized" in kinds(sampler, "ray"):
        sampler, step = sampler.get_sampler(), sampler.q
    scale = kinds(sampler, "ray")
    if not scale & {"Uniform", "LogUniform"}:
        raise InvalidSpace(
            f"a Ray Tune {type(sampler).__name__.strip('_')} sampler has no counterpart here; accepted: {DOMAINS}"
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
