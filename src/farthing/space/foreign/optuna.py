"""Distributions of Optuna."""

from __future__ import annotations

from typing import Any

from farthing.space.foreign.common import class_names, integer, listed, no_counterpart, real, stepped
from farthing.space.parameters import Parameter

ACCEPTED = "an Optuna distribution"


def distribution(thing: Any) -> Parameter:
    """The Farthing parameter of an Optuna distribution."""
    classes = class_names(thing, "optuna")
    if "FloatDistribution" in classes:
        if thing.step is None:
            return real(thing.low, thing.high, log=thing.log)
        low, high, step = thing.low, thing.high, thing.step
        count = round((high - low) / step) + 1  # Optuna lowers high to where a step lands
        return stepped(lambda i: min(i * step + low, high), count)
    if "IntDistribution" in classes:
        return integer(thing.low, thing.high, log=thing.log, step=thing.step)
    if "CategoricalDistribution" in classes:
        return listed(thing.choices)
    raise no_counterpart(thing, "FloatDistribution, IntDistribution or CategoricalDistribution")
