"""The network compared with the Gaussian processes: sentences and tables, with what it lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.common.documents import listed, table
from benchmarks.common.statistics import Interval, resampled_interval
from benchmarks.extrapolation.models import BAPIS, LAST, METHODS, NETWORK, QUANTILES
from benchmarks.extrapolation.scenes import Setting
from benchmarks.extrapolation.scores import COVERAGE, CUT, DENSITY, ERROR, NEW, SHARES, Scores

NOT_BEGUN = "not begun"
SHOWN = (*SHARES, NOT_BEGUN)
RESAMPLES = 10_000
FAR_OFF = 0.1  # of a coverage: called too low or too high
Groups = Mapping[str, Mapping[Setting, Scores]]


@dataclass(frozen=True, eq=False)
class Row:
    """One kind of curves, and what was shown of those that are asked for."""

    kind: str
    shown: str
    scores: Scores

    @property
    def part(self) -> int:
        return NEW if self.shown == NOT_BEGUN else CUT

    @property
    def title(self) -> str:
        return f"{self.kind}, {self.shown}"

    def mean(self, method: str, measure: int) -> float:
        return self.scores.mean(method, measure, self.part)

    def best(self, measure: int, methods: Sequence[str] = METHODS) -> str:
        """Of highest density or least error, of those that have any."""
        sign = -1.0 if measure == DENSITY else 1.0
        found = {method: sign * self.mean(method, measure) for method in methods}
        return min((method for method in methods if not np.isnan(found[method])), key=lambda method: found[method])

    def gain(self) -> Interval:
        """Of log density over the model of `bapi`, over draws of runs."""
        ours, theirs = (self.scores.of(method, DENSITY, self.part) for method in (NETWORK, BAPIS))
        return resampled_interval((ours - theirs).ravel(), RESAMPLES)


def rows_of(groups: Groups) -> list[Row]:
    """All kinds with all that was shown. Configurations not begun were asked for in every setting."""
    rows = []
    for kind, by_setting in groups.items():
        rows += [Row(kind, shown, by_setting[setting]) for shown, setting in SHARES.items()]
        rows.append(Row(kind, NOT_BEGUN, Scores.pooled([by_setting[setting] for setting in SHARES.values()])))
    return rows


SAID = {DENSITY: "log density", ERROR: "error"}


# -- tables ------------------------------------------------------------------------------------------------------------


def _cell(value: float, digits: int, bold: bool) -> str:
    shown = "" if np.isnan(value) else f"{value:.{digits}f}"
    return f"**{shown}**" if bold else shown


def measure_table(rows: Sequence[Row], measure: int) -> str:
    """All models in all rows, the best of each in bold, except coverages."""
    left_out = {DENSITY: (LAST, QUANTILES), ERROR: (QUANTILES,), COVERAGE: (LAST,)}[measure]
    methods = tuple(method for method in METHODS if method not in left_out)
    header, lines = ["ends predicted from", *methods], []
    if measure == DENSITY:
        header.append(f"network - {BAPIS} [95 % interval]")
    for row in rows:
        best = row.best(measure, methods) if measure != COVERAGE else None
        digits = 3 if measure == ERROR else 2
        cells = [_cell(row.mean(method, measure), digits, method == best) for method in methods]
        lines.append([row.title, *cells, *([f"{row.gain():+.2f}"] if measure == DENSITY else [])])
    return table(header, lines)


def shown_table(rows: Sequence[Row]) -> str:
    """The network and the model of `bapi` by what was shown, each kind counting the same."""
    header = ["ends predicted from"]
    header += [f"{what}: {method}" for what in (*SAID.values(), "coverage") for method in (NETWORK, BAPIS)]
    lines = []
    for shown in SHOWN:
        some = [row for row in rows if row.shown == shown]
        means = [
            (np.mean([row.mean(method, measure) for row in some]), digits)
            for measure, digits in ((DENSITY, 2), (ERROR, 3), (COVERAGE, 2))
            for method in (NETWORK, BAPIS)
        ]
        lines.append([shown, *(f"{mean:.{digits}f}" for mean, digits in means)])
    return table(header, lines)


def loss_table(rows: Sequence[Row], measure: int) -> str:
    """Every row in which some other model is better than the network."""
    digits = 3 if measure == ERROR else 2
    lines = []
    for row in rows:
        best = row.best(measure)
        if best != NETWORK:
            ours, theirs = (f"{row.mean(method, measure):.{digits}f}" for method in (NETWORK, best))
            lines.append([row.title, ours, best, theirs])
    said = f"{SAID[measure].capitalize()}: {len(lines)} of {len(rows)} rows"
    if not lines:
        return f"{said}."
    return f"{said}:\n\n" + table(["ends predicted from", "network", "best model", f"its {SAID[measure]}"], lines)


# -- sentences ---------------------------------------------------------------------------------------------------------


def comparison_text(rows: Sequence[Row]) -> str:
    return "\n".join([_measure_line(rows, DENSITY), _measure_line(rows, ERROR), _sure_line(rows), _coverage_line(rows)])


def _measure_line(rows: Sequence[Row], measure: int) -> str:
    """How often it is better than the model of `bapi` and than all."""
    sign = 1.0 if measure == DENSITY else -1.0
    gains = {row: sign * (row.mean(NETWORK, measure) - row.mean(BAPIS, measure)) for row in rows}
    won = [row for row in rows if gains[row] > 0.0]
    first = [row for row in rows if row.best(measure) == NETWORK]
    behind = [
        f"{kind} ({', '.join(row.shown for row in rows if row.kind == kind and row not in won)})"
        for kind in dict.fromkeys(row.kind for row in rows if row not in won)
    ]
    better = "higher" if measure == DENSITY else "lower"
    text = (
        f"- **{SAID[measure].capitalize()}**: the network's is {better} than that of {BAPIS} in {len(won)} of "
        f"{len(rows)} rows, and the best of all models in {len(first)}."
    )
    return text + (f" It is behind {BAPIS} on {listed(behind)}." if behind else "")


def _sure_line(rows: Sequence[Row]) -> str:
    """The rows in which an interval leaves no doubt."""
    gains = [row.gain() for row in rows]
    above, below = sum(gain.low > 0.0 for gain in gains), sum(gain.high < 0.0 for gain in gains)
    return (
        f"- The 95 % interval of the difference in log density lies above 0 in {above} rows, below it in {below}, "
        f"and includes it in {len(rows) - above - below}."
    )


def _coverage_line(rows: Sequence[Row]) -> str:
    """Where intervals are too narrow or too wide."""
    found = {row: row.mean(NETWORK, COVERAGE) for row in rows}
    narrow = [f"{row.title} ({found[row]:.2f})" for row in rows if found[row] < 0.9 - FAR_OFF]
    wide = sum(cover > 0.9 + FAR_OFF / 2 for cover in found.values())
    off, other, raw = (
        np.mean([abs(row.mean(name, COVERAGE) - 0.9) for row in rows]) for name in (NETWORK, BAPIS, QUANTILES)
    )
    text = (
        f"- **Coverage**: the network's 90 % intervals hold {min(found.values()):.2f} to {max(found.values()):.2f} of "
        f"the ends. On average the coverage is {off:.2f} away from 0.9; that of {BAPIS} is {other:.2f} away."
    )
    text += f" With its quantiles as they are it would be {raw:.2f} away."
    text += f" It is above 0.95 in {wide} rows: the intervals are too wide there." if wide else ""
    return text + (f" Too narrow (below 0.8): {listed(narrow)}." if narrow else " Nowhere is it below 0.8.")
