"""Draws mean normalised regret against the share of the budget, from the data that the black-box benchmark keeps.

    python -m benchmarks.blackbox.figure docs/data/blackbox.json docs/blackbox.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.figures import command, legend, regret_panel

Array = NDArray[np.float64]

SHARES = np.linspace(0.02, 1.0, 197)
WIDTHS = {"peer": 1.3, "farthing": 2.0}
DASHES = {"peer": (0, (4, 1.5)), "farthing": "solid"}
PEER_COLOURS = ("#9a9a9a", "#c08a2b", "#5b7f3a", "#8a5a9e")
OWN_COLOURS = ("#1b9ac2", "#46b3a5", "#1f5fa8", "#d1495b", "#7a1f2b")


def curve(steps: list[list[float]]) -> Array:
    """Regret at SHARES from the steps [shares, regrets] of one run; at most 1."""
    shares, regrets = steps
    known = np.searchsorted(shares, SHARES, side="right")
    return np.minimum(np.array([1.0, *regrets])[known], 1.0)


def mean_curve(data: dict[str, Any], tables: list[str], method: str) -> Array:
    """The mean over tables and seeds."""
    return np.mean([curve(steps) for table in tables for steps in data["steps"][table][method]], axis=0)


def draw(axes: Axes, data: dict[str, Any], title: str, tables: list[str]) -> None:
    """One panel."""
    colours = {"peer": iter(PEER_COLOURS), "farthing": iter(OWN_COLOURS)}
    for method, facts in data["methods"].items():
        kind = facts["kind"]
        axes.plot(
            100 * SHARES, mean_curve(data, tables, method), label=facts["title"].replace("`", ""),
            color=next(colours[kind]), linewidth=WIDTHS[kind], linestyle=DASHES[kind],
        )  # fmt: skip
    regret_panel(axes, title)


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = figure.subplots(1, len(data["groups"]), sharey=True, squeeze=False)[0]
    for axes, (title, tables) in zip(panels, data["groups"].items(), strict=True):
        draw(axes, data, title, tables)
    panels[0].set_ylabel("mean normalised regret")
    legend(figure, panels[0])
    return figure


if __name__ == "__main__":
    command(make)
