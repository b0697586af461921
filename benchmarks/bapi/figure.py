"""Draws mean normalised regret against the share of the budget, from the data that the benchmark of `bapi` keeps.

    python -m benchmarks.bapi.figure docs/data/bapi-bench.json docs/bapi-bench.svg

Runs in the environment of the peers, which has matplotlib.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from benchmarks.common.figures import command, legend
from benchmarks.curves.figure import draw


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    panels = figure.subplots(1, len(data["budgets"]), squeeze=False)[0]
    for axes, (multiple, part) in zip(panels, data["budgets"].items(), strict=True):
        draw(axes, part["curves"], data["grid"], data["methods"])
        axes.set_title(f"{multiple} trainings, {len(part['tasks'])} tasks", fontsize=10)
    panels[0].set_ylabel("mean normalised regret")
    legend(figure, panels[0])
    return figure


if __name__ == "__main__":
    command(make)
