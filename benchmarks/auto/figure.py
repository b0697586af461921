"""Draws mean normalised regret against the share of the budget, from the data that the benchmark of `auto` keeps.

    python -m benchmarks.auto.figure docs/data/auto-bench.json docs/auto-bench.svg

Runs in the environment `blackbox`, which has matplotlib. The curves are drawn before this is called, see `curves_of`.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common.figures import command, legend, regret_panel

TITLES = {"a": "(a) twelve tables", "b": "(b) more tables, and LCBench", "c": "(c) trained live"}
PEER_COLOURS = ("#9a9a9a", "#c08a2b", "#5b7f3a", "#8a5a9e", "#1b9ac2", "#46b3a5", "#a0522d")
OWN_COLOUR = "#d1495b"


def draw(axes: Axes, data: dict[str, Any], group: str) -> None:
    """One panel."""
    colours = dict(zip(data["peers"], PEER_COLOURS, strict=False))
    for title, regrets in data["curves"][group].items():
        is_peer = title in colours
        axes.plot(
            [100 * share for share in data["curve_shares"]], regrets, label=title.replace("`", ""),
            color=colours.get(title, OWN_COLOUR), linewidth=1.3 if is_peer else 2.2,
            linestyle=(0, (4, 1.5)) if is_peer else "solid",
        )  # fmt: skip
    regret_panel(axes, TITLES[group])


def make(data: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    panels = figure.subplots(1, len(data["curves"]), sharey=True, squeeze=False)[0]
    for axes, group in zip(panels, data["curves"], strict=True):
        draw(axes, data, group)
    panels[0].set_ylabel("mean normalised regret")
    legend(figure, max(panels, key=lambda axes: len(axes.lines)))
    return figure


if __name__ == "__main__":
    command(make)
