"""Draws mean normalised regret against the share of the budget, from the data that the benchmark of `bapi` keeps.

    python -m benchmarks.bapi.figure docs/data/bapi-bench.json docs/bapi-bench.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, legend, ticks

TICKS = (0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
DASHES = (0, (4, 1.5))
STYLES = {
    "bapi": ("#d1495b", 2.4, "solid"),
    "bapi-last": ("#d1495b", 1.2, (0, (1, 1))),
    "bapi-plain": ("#e08a97", 1.2, (0, (3, 1, 1, 1))),
    "bopt": ("#1f5fa8", 1.6, "solid"),
    "ei": ("#1b9ac2", 1.2, "solid"),
    "eipu": ("#7fb8d6", 1.2, "solid"),
    "random": ("#9a9a9a", 1.2, DASHES),
    "hyperband": ("#46a36a", 1.4, DASHES),
    "bohb": ("#6b4f2a", 1.4, DASHES),
    "tpe-median": ("#c08a2b", 1.4, DASHES),
    "tpe-hyperband": ("#e0b25c", 1.4, DASHES),
    "smac": ("#8a5a9e", 1.4, DASHES),
}


def draw(axes: Axes, part: dict[str, Any], grid: list[float], methods: dict[str, Any]) -> None:
    """One panel."""
    for name, facts in methods.items():
        colour, width, dashes = STYLES[name]
        title = facts["title"].replace("`", "")
        axes.plot(grid, part["curves"][name], label=title, color=colour, linewidth=width, linestyle=dashes)
    axes.set_xlim(0, 1)
    axes.set_yscale("log")
    lowest = min(min(curve) for curve in part["curves"].values())
    axes.set_yticks(*ticks([value for value in TICKS if value >= 0.9 * lowest]))
    axes.minorticks_off()
    axes.set_xlabel("share of the budget")
    bare(axes)


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    panels = figure.subplots(1, len(data["budgets"]), squeeze=False)[0]
    for axes, (multiple, part) in zip(panels, data["budgets"].items(), strict=True):
        draw(axes, part, data["grid"], data["methods"])
        axes.set_title(f"{multiple} trainings, {len(part['tasks'])} tasks", fontsize=10)
    panels[0].set_ylabel("mean normalised regret")
    legend(figure, panels[0])
    return figure


if __name__ == "__main__":
    command(make)
