"""Frozen distributions of scipy.stats: uniform, loguniform and randint."""

from __future__ import annotations

from typing import Any

import numpy as np

from farthing.errors import InvalidSpace
from farthing.space.choices import Parameter
from farthing.space.foreign.common import LISTED, integer, kinds, no_counterpart, real

ACCEPTED = "scipy.stats.uniform, loguniform or randint"


def distribution(thing: Any) -> Parameter:
    family = kinds(getattr(thing, "dist", None), "scipy")
    if not family or not hasattr(thing, "support"):  # not frozen, or of the newer kind
        raise no_counterpart(thing, f"{ACCEPTED} with their bounds, as uniform(loc, scale)")
    if not family & {"uniform_gen", "randint_gen", "reciprocal_gen"}:
        raise InvalidSpace(f"{_called(thing)} has no counterpart here; accepted: {ACCEPTED}, or {LISTED}")
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
