"""What all figures share: where they come from and go to, and how they look. Needs matplotlib."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def bare(axes: Axes, **grid: Any) -> None:
    """A light grid and no frame above and to the right."""
    axes.grid(color="#e4e4e4", linewidth=0.6, **grid)
    axes.spines[["top", "right"]].set_visible(False)


def ticks(values: list[float]) -> tuple[list[float], list[str]]:
    """Places and labels of ticks on a logarithmic axis."""
    return values, [f"{value:g}" for value in values]


def regret_panel(axes: Axes, title: str) -> None:
    """The look of a panel that has regret over the share of a budget."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("share of the budget spent, %")
    axes.set_yscale("log")
    axes.set_xlim(0, 100)
    axes.set_yticks(*ticks([0.02, 0.05, 0.1, 0.2, 0.5, 1.0]))
    axes.minorticks_off()
    bare(axes)


def legend(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, to their right, with the lines of one."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)


def draw(source: Path, target: Path, make: Callable[[dict[str, Any]], Figure], dpi: int = 120) -> None:
    """The figure that `make` makes of the data in a file; the same data give the same bytes."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "farthing", "font.size": 9})
    figure = make(json.loads(source.read_text()))
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=dpi)


def command(make: Callable[[dict[str, Any]], Figure], dpi: int = 120) -> None:
    """The command line of a figure: the file of its data, the file to draw."""
    draw(Path(sys.argv[1]), Path(sys.argv[2]), make, dpi)
