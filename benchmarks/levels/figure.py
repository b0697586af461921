"""Draws one curve per cell and where the rules end it, from the data that the benchmark keeps.

    python -m benchmarks.levels.figure docs/data/levels.json docs/levels.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.figures import bare, command

MARKS = {  # colour, marker, size
    "elbow": ("#7a1f2b", "o", 10),
    "progress": ("#1f5fa8", "s", 8),
    "share": ("#5b7f3a", "^", 6),
    "first step with 80 % (hindsight)": ("#9a9a9a", "x", 6),
    "converged": ("#d1495b", "D", 7),
    "loss": ("#c08a2b", "v", 6),
    "rises": ("#8a5a9e", "P", 6),
}


def make(data: dict[str, Any]) -> Figure:
    """The shown curves with a mark where each rule ends; rules that let it run to the end have none."""
    figure = Figure(figsize=(12.5, 8.0), layout="constrained")
    for axes, curve in zip(figure.subplots(3, 4).flat, data["shown"], strict=True):
        values = np.array(curve["values"])
        axes.plot(np.arange(1, len(values) + 1), values, color="#4a4a4a", linewidth=1.1)
        for rule, (colour, marker, size) in MARKS.items():
            end = data["ends"][curve["title"]][rule][curve["run"]]
            where = [end] if end is not None else []
            axes.plot(where, values[np.array(where, dtype=int) - 1], marker, color=colour, markersize=size,
                      markerfacecolor="none", markeredgewidth=1.6, linestyle="none", label=rule)  # fmt: skip
        axes.axvline(len(values) / 3, color="#c4c4c4", linewidth=0.8, linestyle="dashed")
        axes.set_title(curve["title"], fontsize=9)
        axes.set_ylim(bottom=0)
        bare(axes)
    figure.supxlabel("steps (dashed: a third of max_steps)", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(MARKS), frameon=False)
    return figure


if __name__ == "__main__":
    command(make, dpi=110)
