"""Optuna's distributions."""

from __future__ import annotations

from typing import Any

from farthing.space.choices import Parameter
from farthing.space.foreign.common import integer, kinds, listed, no_counterpart, real, stepped

ACCEPTED = "an Optuna distribution"


def distribution(thing: Any) -> Parameter:
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
