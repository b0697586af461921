"""Frozen distributions of scipy.stats: uniform, loguniform and randint."""

from __future__ import annotations

from typing import Any

import numpy as np

from farthing.errors import InvalidSpace
from farthing.space.foreign.common import LISTED, class_names, integer, no_counterpart, real
from farthing.space.parameters import Parameter

ACCEPTED = "scipy.stats.uniform, loguniform or randint"


def distribution(thing: Any) -> Parameter:
    """The Farthing parameter of a frozen distribution."""
    classes = class_names(getattr(thing, "dist", None), "scipy")
    if not classes or not hasattr(thing, "support"):  # not frozen, or of the newer interface
        raise no_counterpart(thing, f"{ACCEPTED} with their bounds, as uniform(loc, scale)")
    if not classes & {"uniform_gen", "randint_gen", "reciprocal_gen"}:
        raise InvalidSpace(f"{_called(thing)} has no counterpart in Farthing; expected {ACCEPTED}, or {LISTED}")
    low, high = map(_scalar, thing.support())
    if np.isnan(low).any():
        raise InvalidSpace(f"{_called(thing)} has no values; expected the lower bound first")
    if "reciprocal_gen" in classes:  # loguniform, and its older name
        # Shifted by loc, its values are not log-uniform.
        loc = thing.kwds.get("loc", thing.args[2] if len(thing.args) > 2 else 0)
        if np.any(np.not_equal(loc, 0)):
            raise InvalidSpace(
                f"scipy.stats.loguniform with loc={loc!r} has no counterpart in Farthing; expected loc=0"
            )
        return real(low, high, log=True)
    return real(low, high) if "uniform_gen" in classes else integer(low, high)


def _called(thing: Any) -> str:
    """A frozen distribution as it was written."""
    named = [f"{name}={value!r}" for name, value in thing.kwds.items()]
    return f"scipy.stats.{thing.dist.name}({', '.join([*map(repr, thing.args), *named])})"


def _scalar(bound: Any) -> Any:
    return bound.item() if np.ndim(bound) == 0 and hasattr(bound, "item") else bound
