"""Draws the error of cost models against the number of evaluations, from the data that the benchmark keeps.

    python -m benchmarks.cost_models.figure docs/data/cost-models.json docs/cost-models.svg

Runs in the environment of the timed fits, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, legend, ticks

STYLES: dict[str, tuple[str, str, float]] = {  # colour, dash, width
    "auto": ("#7a1f2b", "solid", 2.4),
    "line-1": ("#c9b18a", "solid", 1.1),
    "line-2": ("#c08a2b", "solid", 1.1),
    "line-3": ("#8a5a1b", "solid", 1.3),
    "line": ("#5b7f3a", "solid", 1.3),
    "gp": ("#1f5fa8", "dashed", 1.5),
    "gp-lv": ("#1b9ac2", "dashed", 1.3),
    "gp-selected": ("#8a5a9e", "dashed", 1.3),
    "flops": ("#9a9a9a", "dotted", 1.4),
    "flops-huber": ("#d0c8b8", "dotted", 1.4),
    "gp-flops": ("#6fae8f", "dashdot", 1.4),
    "flops-updates": ("#4a4a4a", "dotted", 1.6),
    "gp-flops-updates": ("#1e7a4f", "dashdot", 1.8),
    "auto-updates": ("#d9798a", "solid", 1.8),
}


def _axes(axes: Axes, sizes: list[int], title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("evaluations n")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    bare(axes)


def draw_errors(axes: Axes, data: dict[str, Any], title: str, curves: dict[str, list[list[float]]]) -> None:
    """One panel of errors, with the interval of the automatic choice."""
    _axes(axes, data["sizes"], title)
    for model, points in curves.items():
        colour, dash, width = STYLES[model]
        value, low, high = np.array(points).T
        axes.plot(data["sizes"], value, color=colour, linestyle=dash, linewidth=width, label=data["titles"][model])
        if model == "auto":
            axes.fill_between(data["sizes"], low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_yscale("log")
    axes.set_yticks(*ticks([0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5]))
    axes.minorticks_off()


def draw_ratios(axes: Axes, data: dict[str, Any]) -> None:
    """Every model over the best single one of each data set and size."""
    _axes(axes, data["sizes"], "over the best single model\nof each data set and size")
    for model, ratios in data["to_own_best"].items():
        colour, dash, width = STYLES[model]
        axes.plot(data["sizes"], ratios, color=colour, linestyle=dash, linewidth=width)
    axes.set_ylim(0.9, 3.0)
    axes.set_ylabel("RMSE ratio (geometric mean)")


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    titles = list(data["panels"])
    for axes, title in zip((panels[0], panels[2]), titles, strict=True):
        draw_errors(axes, data, title, data["panels"][title])
    draw_ratios(panels[1], data)
    panels[0].set_ylabel("RMSE of log cost (geometric mean)")
    legend(figure, panels[2])
    return figure


if __name__ == "__main__":
    command(make, dpi=110)
