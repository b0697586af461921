"""README's figure: mean regret against the share of the budget, Farthing compared with its peers.

    python docs/figures/regret.py        writes docs/regret.svg from docs/data/*.json; needs only Python

The numbers are those of docs/blackbox.md and docs/bapi-bench.md: this script averages and draws, and measures nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

DOCS = Path(__file__).resolve().parent.parent
SHARES = [i / 50 for i in range(1, 51)]

WIDTH, HEIGHT, PANEL, LEFT, TOP, BOTTOM = 930, 330, 290, 58, 64, 280
INK, FAINT = "#333333", "#e4e4e4"
COLOURS = {
    "Farthing": "#b5471b", "SMAC3": "#5b8e7d", "random search": "#8a8a8a",
    "Optuna TPE": "#33658a", "Optuna GPSampler": "#8d6a9f", "Hyperband": "#33658a", "BOHB": "#8d6a9f",
}  # fmt: skip

Curve = Sequence[float]  # mean regret at SHARES


@dataclass(frozen=True)
class Panel:
    """One plot: its title and a curve for each method, Farthing's first."""

    title: str
    curves: dict[str, Curve]
    top: float  # of the axis
    ticks: tuple[float, ...]


def black_box() -> Panel:
    """Twelve tables, ten seeds each: the default policy for functions, and its peers."""
    steps = json.loads((DOCS / "data/blackbox.json").read_text())["steps"]

    def mean_at(method: str, share: float) -> float:
        return fmean(_at(run, share) for table in steps.values() for run in table[method])

    methods = {
        "Farthing": "carbo", "Optuna TPE": "tpe", "SMAC3": "smac", "Optuna GPSampler": "gpsampler",
        "random search": "random",
    }  # fmt: skip
    curves = {title: [mean_at(method, share) for share in SHARES] for title, method in methods.items()}
    return Panel("Functions: 12 tables, 10 seeds", curves, 0.6, (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6))


def _at(run: tuple[list[float], list[float]], share: float) -> float:
    """Regret of one run at a share of its budget, as the results page counts it: 1 at most, and before any value."""
    shares, regrets = run
    seen = bisect_right(shares, share)
    return min(1.0, regrets[seen - 1]) if seen else 1.0


def iterative() -> Panel:
    """Twelve tasks, five seeds each, the middle budget: the default policy for learners that yield, and its peers."""
    curves = json.loads((DOCS / "data/bapi-bench.json").read_text())["budgets"]["8"]["curves"]
    methods = {
        "Farthing": "bapi", "Hyperband": "hyperband", "BOHB": "bohb", "SMAC3": "smac", "random search": "random",
    }  # fmt: skip
    found = {title: curves[method] for title, method in methods.items()}
    return Panel("Step-by-step learners: 12 tasks, 5 seeds", found, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))


def drawn(panel: Panel, left: int) -> list[str]:
    def x(share: float) -> float:
        return left + PANEL * share

    def y(regret: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * min(regret / panel.top, 1.0)

    parts = [text(left, TOP - 18, panel.title, weight="bold")]
    for tick in panel.ticks:
        parts.append(f'<path d="M{left} {y(tick):.1f}h{PANEL}" stroke="{FAINT}"/>')
        parts.append(text(left - 8, y(tick) + 4, f"{tick:g}", anchor="end"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(text(x(share), BOTTOM + 18, f"{share:.0%}", anchor="middle"))
    parts.append(text(left + PANEL / 2, BOTTOM + 38, "share of the budget spent", anchor="middle"))
    labels = spread({title: y(curve[-1]) for title, curve in panel.curves.items()})
    for title in reversed(panel.curves):  # Farthing on top
        points = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r in zip(SHARES, panel.curves[title], strict=True))
        wide = 3 if title == "Farthing" else 1.6
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[title]}" stroke-width="{wide}"/>')
        weight = "bold" if title == "Farthing" else "normal"
        parts.append(text(x(1.0) + 7, labels[title] + 4, title, colour=COLOURS[title], weight=weight))
    return parts


def spread(heights: dict[str, float], apart: float = 15.0) -> dict[str, float]:
    """Labels at these heights, moved up just so far that none covers another."""
    placed: dict[str, float] = {}
    limit = BOTTOM - 2.0
    for title in sorted(heights, key=lambda title: -heights[title]):
        placed[title] = min(heights[title], limit)
        limit = placed[title] - apart
    return placed


def text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = INK, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{words}</text>'


def picture() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT - 30, 22, "Mean regret (0 is the best known value, 1 the median configuration)"),
        *drawn(black_box(), LEFT),
        *drawn(iterative(), LEFT + 460),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    (DOCS / "regret.svg").write_text(picture())
