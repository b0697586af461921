"""Draws how far each search is behind the best of all, against seconds, from the data that the benchmark keeps.

    python -m benchmarks.sklearn_search.figure docs/data/sklearn-bench.json docs/sklearn-bench.svg

Runs in the environment of the searches, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, legend

DASHES, DOTS = (0, (4, 1.5)), (0, (1, 1))
STYLES = {
    "farthing": ("#d1495b", 2.4, "solid"),
    "farthing-skip": ("#e08a97", 1.2, DOTS),
    "farthing-whole": ("#d1495b", 1.2, DOTS),
    "random": ("#9a9a9a", 1.4, "solid"),
    "random-searched": ("#9a9a9a", 1.2, DASHES),
    "halving": ("#46a36a", 1.4, "solid"),
    "optuna": ("#c08a2b", 1.4, "solid"),
    "optuna-searched": ("#c08a2b", 1.2, DASHES),
}


def draw(axes: Axes, curves: dict[str, Any], grid: list[float], methods: dict[str, Any]) -> None:
    """One panel."""
    for name, curve in curves.items():
        colour, width, dashes = STYLES[name]
        gaps = np.array([np.nan if gap is None else gap for gap in curve])
        axes.plot(grid, gaps, label=methods[name]["title"], color=colour, linewidth=width, linestyle=dashes)
    axes.set_xlim(0, grid[-1])
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    bare(axes)


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10.5, 6.2), layout="constrained")
    panels = figure.subplots(2, (len(data["curves"]) + 1) // 2, squeeze=False).flat
    fullest = max(data["curves"], key=lambda task: len(data["curves"][task]))
    for axes, (task, curves) in zip(panels, data["curves"].items(), strict=False):
        draw(axes, curves, data["grid"], data["methods"])
        axes.set_title(task, fontsize=10)
        axes.set_ylabel("behind the best score, median")
        if task == fullest:
            full = axes
    legend(figure, full)
    return figure


if __name__ == "__main__":
    command(make)
