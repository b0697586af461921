"""Draws mean normalised regret against the share of the budget, kind by kind, from the data that the benchmark keeps.

    python -m benchmarks.curves.figure docs/data/curves-bench.json docs/curves-bench.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, legend, ticks

TICKS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
COLUMNS = 3
DASHES = (0, (4, 1.5))
STYLES = {
    "auto": ("#000000", 2.4, "solid"),
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
    "thaw": ("#e07a3f", 1.6, "solid"),
    "asha": ("#5b8f2a", 1.4, DASHES),
    "gp": ("#2b8c8c", 1.4, DASHES),
    "dehb": ("#3f4f8f", 1.4, DASHES),
}


def draw(
    axes: Axes, curves: Mapping[str, Sequence[float]], grid: Sequence[float], methods: Mapping[str, Mapping[str, str]]
) -> None:
    """One panel: the mean regret of each method at the shares of the budget in `grid`."""
    for name, facts in methods.items():
        colour, width, dashes = STYLES[name]
        title = facts["title"].replace("`", "")
        axes.plot(grid, curves[name], label=title, color=colour, linewidth=width, linestyle=dashes)
    axes.set_xlim(0, 1)
    axes.set_yscale("log")
    lowest = max(min(min(curve) for curve in curves.values()), TICKS[0])
    axes.set_ylim(bottom=0.9 * lowest)
    axes.set_yticks(*ticks([value for value in TICKS if value >= 0.9 * lowest]))
    axes.minorticks_off()
    axes.set_xlabel("share of the budget")
    bare(axes)


def make(data: dict[str, Any]) -> Figure:
    """One panel per kind, the mean over its problems, seeds and budgets; the first is the mean of all kinds."""
    names, rows = list(data["curves"]), -(-len(data["curves"]) // COLUMNS)
    figure = Figure(figsize=(10.5, 0.6 + 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        draw(axes, data["curves"][name], data["grid"], data["methods"])
        axes.set_title(name, fontsize=10)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("mean normalised regret")
    legend(figure, panels[0])
    return figure


if __name__ == "__main__":
    command(make)
