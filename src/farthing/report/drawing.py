"""A drawing: traces and a layout for Plotly as plain values, made without Plotly.

A report of ten figures is made in a moment, because nothing is checked twice; `figure_of` makes the Plotly figure that
a notebook shows. Colours hold on light and on dark ground, grounds are transparent, and the colours of text and lines
are left to whoever shows it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.numerics.arrays import Array
from farthing.text.escaping import on_one_line

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, GREY, SKY, YELLOW = (
    "#2f7ed8", "#e07b00", "#1f9d6b", "#d64545", "#9b5fc0", "#8a8f98", "#56b4e9", "#c9a400",
)  # fmt: skip
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, YELLOW, GREY)

MOST_POINTS = 2_000  # of one trace: more cannot be told apart, and make a page slow
LONGEST_LABEL = 60  # characters
TITLE = 48  # pixels

LAYOUT: Mapping[str, Any] = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "margin": {"l": 64, "r": 16, "t": 16, "b": 52},
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    "hovermode": "closest",
    "colorway": list(COLOURS),
    "height": 380,
}


@dataclass(frozen=True)
class Drawing:
    """What is drawn, under which title, and one sentence on how to read it."""

    name: str  # of the figure, as in study.plot.<name>()
    title: str
    caption: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For a page: lists in the place of arrays, null in the place of numbers that are not finite."""
        return {
            "name": self.name, "title": self.title, "caption": self.caption,
            "data": listed(self.traces), "layout": listed({**LAYOUT, **self.layout}),
        }  # fmt: skip


def figure_of(drawing: Drawing) -> Figure:
    """The drawing as a Plotly figure, under its title."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("figures need plotly: pip install 'farthing[report]'") from error
    shown = drawing.as_json()
    layout = {**shown["layout"], "title": {"text": drawing.title}, "template": "plotly_white"}
    layout |= {"paper_bgcolor": "white", "plot_bgcolor": "white"}  # of a picture nobody knows where it will be shown
    layout["margin"] = {**layout["margin"], "t": layout["margin"]["t"] + TITLE}
    if "legend" not in drawing.layout:
        layout["legend"] = {**layout["legend"], "y": -0.2, "yanchor": "top"}  # above the plot it would hide the title
    return go.Figure(data=shown["data"], layout=layout)


def listed(thing: Any) -> Any:
    """Plain lists, numbers and texts, as JSON has them.

    >>> listed({"x": np.array([1.0, np.nan]), "n": np.int64(3), "y": (float("inf"), "a")})
    {'x': [1.0, None], 'n': 3, 'y': [None, 'a']}
    """
    if isinstance(thing, Mapping):
        return {key: listed(item) for key, item in thing.items()}
    if isinstance(thing, np.ndarray):
        return [listed(item) for item in thing.tolist()]
    if isinstance(thing, np.generic):
        return listed(thing.item())
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    if isinstance(thing, list | tuple):
        return [listed(item) for item in thing]
    return thing


def label(thing: object, longest: int = LONGEST_LABEL) -> str:
    """Text of a stranger's for a figure, where a browser reads tags: on one line, escaped, and cut in the middle.

    >>> label("<b>x</b>")
    '&lt;b&gt;x&lt;/b&gt;'
    """
    return html.escape(cut(thing, longest), quote=False)


def cut(thing: object, longest: int) -> str:
    """Text on one line, without its middle if it is longer.

    >>> cut("abcdefghij", longest=5)
    'ab…ij'
    """
    text = str(thing)
    text = on_one_line(text if len(text) <= 10 * longest else f"{text[: 5 * longest]}{text[-5 * longest :]}")
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}…{text[-half:]}" if half else "…"
    return text


def spread(count: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Indices of at most so many of `count` points, evenly spread; always the first and the last.

    >>> spread(5), spread(9, most=3)
    (array([0, 1, 2, 3, 4]), array([0, 4, 8]))
    """
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def with_extremes(y: Array, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Indices of at most about so many of the values y (n,), in their order: the least and the largest of each stretch,
    so that thinning hides no peak.

    >>> with_extremes(np.array([0.0, 9.0, 1.0, 2.0, -5.0, 3.0]), most=4)
    array([0, 1, 4, 5])
    """
    count = len(y)
    if count <= most:
        return np.arange(count)
    ends = np.linspace(0, count, max(most // 2, 1) + 1).round().astype(np.intp)
    filled = np.where(np.isfinite(y), y, np.inf), np.where(np.isfinite(y), y, -np.inf)
    found = [
        start + index
        for start, end in pairwise(ends.tolist())
        for index in (int(np.argmin(filled[0][start:end])), int(np.argmax(filled[1][start:end])))
    ]
    return np.unique(np.array(found, dtype=np.intp))
