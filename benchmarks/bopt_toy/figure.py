"""Draws the toy of BOPT-HPO's Figure 3, from the data that the benchmark keeps.

    python -m benchmarks.bopt_toy.figure docs/data/bopt-toy.json docs/bopt-toy.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command, legend

STYLES: dict[str, tuple[str, Any, float]] = {  # colour, dash, width
    "GP-TGP": ("#c0392b", (0, (5, 1.5)), 2.0),
    "DGP": ("#1f5fa8", (0, (1.5, 1.5)), 1.6),
    "GP, complete runs only": ("#5b7f3a", (0, (4, 1.5)), 1.4),
}


def draw(axes: Axes, data: dict[str, Any], kernel: str) -> None:
    """One kernel."""
    x = np.array(data["x"])
    axes.plot(x, data["low"], color="#9a9a9a", linewidth=1.2, label="eighty-percent level")
    axes.plot(x, data["complete"], color="black", linewidth=1.4, label="complete level")
    for name, (colour, dash, width) in STYLES.items():
        mean, sd = (np.array(part) for part in data["curves"][kernel][name])
        axes.plot(x, mean, color=colour, linestyle=dash, linewidth=width, label=name)
        if name == "GP-TGP":
            axes.fill_between(x, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.12, linewidth=0, label="± 2 sd")
    axes.plot(*data["low_runs"], "^", color="#7a7a7a", markersize=6, label="eighty-percent runs")
    axes.plot(*data["complete_runs"], "o", color="black", markersize=6, label="complete runs")
    axes.set_title(data["kernels"][kernel], fontsize=10)
    axes.set_xlabel("x")
    axes.set_xlim(-0.02, 1.02)
    bare(axes)


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9.5, 4.0), layout="constrained")
    panels = figure.subplots(1, len(data["curves"]), sharey=True, squeeze=False)[0]
    for axes, kernel in zip(panels, data["curves"], strict=True):
        draw(axes, data, kernel)
    legend(figure, panels[0])
    return figure


if __name__ == "__main__":
    command(make)
