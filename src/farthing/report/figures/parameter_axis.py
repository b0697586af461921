"""A parameter as an axis: which of its values are looked at, and where they and those of trials are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.checks import refuse
from farthing.history.history import TrackedTrial
from farthing.numerics.arrays import Array, Ints
from farthing.report.drawing import label, spread
from farthing.report.figures.scales import log_scale
from farthing.space import Space
from farthing.space.parameters import Choice, Integer, Ordered, Parameter, Real
from farthing.text.plain import shown

MOST_TICKS = 12  # options that are named at an axis
LONGEST_OPTION = 24  # characters


@dataclass(frozen=True)
class Axis:
    """Where the values of a parameter are drawn: numbers where they are, other values by their place in the list."""

    name: str
    log: bool
    options: tuple[str, ...] | None  # labels of the places 0, 1, ...; None for numbers

    @classmethod
    def of(cls, space: Space, name: str) -> Axis:
        param = space.params[name]
        if _is_number(param):
            return cls(name, getattr(param, "log", False), None)
        assert isinstance(param, Choice | Ordered)
        return cls(name, False, tuple(label(text_of(item), LONGEST_OPTION) for item in param.items))

    def layout(self, x: Array) -> dict[str, Any]:
        """For Plotly, of an axis on which these places (g,) are."""
        axis: dict[str, Any] = {
            "title": {"text": label(self.name), "standoff": 4}, "type": "linear", "nticks": 5, "zeroline": False,
            "tickangle": 0, **(log_scale(float(x.min()), float(x.max()), ticks=4) if self.log else {}),
        }  # fmt: skip
        if self.options is not None:
            named = spread(len(self.options), MOST_TICKS).tolist()
            axis |= {"tickvals": named, "ticktext": [self.options[i] for i in named]}
            axis["range"] = [-0.5, len(self.options) - 0.5]
            axis["ticklabeloverflow"] = "allow"  # Plotly loses the title of an axis all of whose labels it hides
        return axis


def grid(param: Parameter, most: int) -> tuple[Array, Array]:
    """Unit coordinates (g,) of at most so many values of a parameter, evenly spread, and where they are drawn (g,).

    >>> grid(Integer(1, 3), 9)[1].tolist(), grid(Choice(["a", "b"]), 9)[1].tolist()
    ([1.0, 2.0, 3.0], [0.0, 1.0])
    """
    if isinstance(param, Real):
        u = np.linspace(0.0, 1.0, most)
        return u, np.array(param.places(u))
    levels = _levels(param, most)
    return np.asarray(param.units(levels)), np.array([_drawn(param, level) for level in levels.tolist()])


def places(space: Space, name: str, trials: Sequence[TrackedTrial]) -> Array:
    """Where the values of trials are drawn (n,); NaN for those in which the parameter has no effect."""
    j, param = space.names.index(name), space.params[name]
    keys = (trial.key[j] for trial in trials)
    return np.array([np.nan if place is None else _drawn(param, place) for place in keys], dtype=np.float64)


def checked_names(space: Space, given: Sequence[Any]) -> tuple[str, ...]:
    """Names of parameters as a user gave them; a wrong one is an error that lists them."""
    for name in given:
        if name not in space.params:
            refuse("name", f"one of the parameters {', '.join(map(repr, space.names))}", name)
    return tuple(given)


def config_text(config: Mapping[str, Any], most: int = 8) -> str:
    """A configuration for a hover text, one parameter per line.

    >>> config_text({"a": 0.5, "b": "<x>"})
    'a = 0.5<br>b = &lt;x&gt;'
    """
    lines = [label(f"{name} = {text_of(value)}") for name, value in list(config.items())[:most]]
    return "<br>".join([*lines, f"and {len(config) - most} more"] if len(config) > most else lines)


def text_of(value: Any) -> str:
    """A value of a parameter, an object of the user's own among them."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else shown(value)


def _levels(param: Parameter, most: int) -> Ints:
    assert param.levels is not None  # a Real
    if param.levels <= most:
        return np.arange(param.levels)
    if isinstance(param, Integer) and param.log:
        return np.unique(param.log_levels(np.linspace(0.0, 1.0, most)))
    return np.unique(np.linspace(0, param.levels - 1, most).round().astype(np.intp))


def _is_number(param: Parameter) -> bool:
    return isinstance(param, Real | Integer) or (isinstance(param, Ordered) and param.numeric)


def _drawn(param: Any, place: Any) -> float:
    return float(param.value(place)) if _is_number(param) else float(place)
