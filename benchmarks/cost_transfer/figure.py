"""Draws the errors of offline and online cost models as boxes, from the data that the benchmark keeps.

    python -m benchmarks.cost_transfer.figure docs/data/cost-transfer.json docs/cost-transfer.svg

Runs in the environment of the timed fits, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, ticks

COLOURS = {"offline": "#5b7f3a", "gp": "#1f5fa8", "line-3": "#c08a2b", "auto": "#7a1f2b", "prior": "#8a5a9e"}
LEFT_OUT = "XGBoost ("  # all of XGBoost: its two parts are drawn


def colour(name: str, kind: str) -> str:
    return COLOURS["offline" if kind == "offline" else name.partition("(")[0]]


def draw(axes: Axes, data: dict[str, Any], title: str, tasks: list[str]) -> None:
    """One panel: a box per method over the tasks."""
    names = list(data["methods"])
    values = [[float(np.mean(data["rmse"][task][name])) for task in tasks] for name in names]
    boxes = axes.boxplot(values, orientation="horizontal", widths=0.65, patch_artist=True, flierprops={"markersize": 3})
    for i, name in enumerate(names):
        shade = colour(name, data["methods"][name]["kind"])
        boxes["boxes"][i].set(facecolor=shade, alpha=0.55, edgecolor=shade)
        boxes["medians"][i].set(color="#222222")
    axes.set_yticks(range(1, len(names) + 1), [data["methods"][name]["title"] for name in names], fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("RMSE of log cost")
    axes.set_xscale("log")
    axes.set_xticks(*ticks([0.1, 0.2, 0.5, 1.0, 2.0, 5.0]))
    axes.minorticks_off()
    bare(axes, axis="x")


def make(data: dict[str, Any]) -> Figure:
    shown = {title: tasks for title, tasks in data["groups"].items() if not title.startswith(LEFT_OUT)}
    figure = Figure(figsize=(11.5, 6.2), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, (title, tasks) in zip(panels, shown.items(), strict=True):
        draw(axes, data, title, tasks)
    panels[0].set_ylim(len(data["methods"]) + 0.6, 0.4)  # the first method on top
    return figure


if __name__ == "__main__":
    command(make, dpi=110)
