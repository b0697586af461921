"""Draws mean simple regret against cost, from the data that the benchmark on synthetic functions keeps.

    python -m benchmarks.bopt_synthetic.figure docs/data/bopt-synthetic.json docs/bopt-synthetic.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.figures import bare, command, legend

Array = NDArray[np.float64]

STYLES = {
    "tgp": ("#d1495b", 2.2, "solid"),
    "dgp": ("#1f5fa8", 2.2, "solid"),
    "tgp-paper": ("#d1495b", 1.5, (0, (1, 1))),
    "dgp-paper": ("#1f5fa8", 1.5, (0, (1, 1))),
    "eqie": ("#46a36a", 1.4, (0, (4, 1.5))),
    "ei": ("#1b9ac2", 1.4, (0, (4, 1.5))),
    "random": ("#9a9a9a", 1.2, (0, (4, 1.5))),
    "tpe": ("#c08a2b", 1.2, (0, (4, 1.5))),
    "bohb": ("#6b4f2a", 1.2, (0, (4, 1.5))),
    "smac": ("#8a5a9e", 1.2, (0, (4, 1.5))),
}
LEAST = 1e-6


def curves(runs: list[list[list[float]]], costs: Array) -> Array:
    """Regret (seeds, k) at costs (k,) from the steps [costs, regrets] of the runs."""
    return np.array(
        [np.append(np.inf, regrets)[np.searchsorted(spent, costs + 1e-6, side="right")] for spent, regrets in runs]
    )


def draw(axes: Axes, part: dict[str, Any], methods: dict[str, Any]) -> None:
    """One panel."""
    costs = np.arange(part["first"], part["budget"] + 1e-9, 0.2)
    for name, facts in methods.items():
        colour, width, dashes = STYLES[name]
        regret = curves(part["steps"][name], costs)
        mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1) / np.sqrt(len(regret))
        title = facts["title"].replace("`", "")
        axes.plot(costs, np.maximum(mean, LEAST), label=title, color=colour, linewidth=width, linestyle=dashes)
        if facts["kind"] == "bopt":
            low, high = np.maximum(mean - error, LEAST), np.maximum(mean + error, LEAST)
            axes.fill_between(costs, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_title(part["title"], fontsize=10)
    axes.set_yscale("log")
    axes.set_xlim(part["first"], part["budget"])
    bare(axes)


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9.5, 6.4), layout="constrained")
    panels = figure.subplots(2, 2)
    for axes, part in zip(panels.flat, data["functions"].values(), strict=True):
        draw(axes, part, data["methods"])
    for axes in panels[:, 0]:
        axes.set_ylabel("mean simple regret")
    for axes in panels[-1]:
        axes.set_xlabel("cost spent")
    legend(figure, panels[0, 0])
    return figure


if __name__ == "__main__":
    command(make)
