"""What the rules saw of the end of a curve by the time they ended it, compared with fixed shares of the steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.common.documents import table
from benchmarks.common.statistics import percent
from benchmarks.levels.training import SEED, Cell
from farthing.policies.bopt.stopping import (
    BY_NAME,
    Converged,
    Elbow,
    Loss,
    Progress,
    Quotient,
    Rises,
    Rule,
    Share,
    first_end,
)

Array = NDArray[np.float64]
EIGHTY = 0.8
SHARES = tuple(np.arange(1, 101) / 100)

Ends = Callable[[Array, Array], int | None]  # values, train_values -> the step, None where training goes to its end


@dataclass(frozen=True)
class Judged:
    """A rule on the configurations of one cell, (n,) each; the rank correlation is of the value then with the final."""

    reached: Array  # share of the final improvement
    steps: Array  # share of the steps
    seconds: Array  # share of the time
    correlation: float


def judge(cell: Cell, ends: Ends) -> Judged:
    """What had been reached where a rule ends; values are the best so far, as Farthing keeps them."""
    rows, then, final = [], [], []
    for run in cell.runs:
        best = np.minimum.accumulate(run.values[cell.value])
        k = len(best)
        end = ends(run.values[cell.value], run.train) or k
        gain = best[0] - best[-1]
        reached = (best[0] - best[end - 1]) / gain if gain > 0 else 1.0
        rows.append((reached, end / k, run.seconds[:end].sum() / run.seconds.sum()))
        then.append(best[end - 1])
        final.append(best[-1])
    return Judged(*np.array(rows).T, float(spearmanr(then, final).statistic))


def by_rule(rule: Rule, train: bool = True, shift: float = 0.0) -> Ends:
    """A rule with or without training values, perhaps on values moved by a constant."""
    return lambda values, train_values: rule.first_end(values - shift, train_values if train else None, len(values))


def knowing(share: float) -> Ends:
    """The first step that reached a share of the final improvement: nobody knows it during training."""

    def end(values: Array, train_values: Array) -> int:
        best = np.minimum.accumulate(values)
        return int(np.argmax(best[0] - best >= share * (best[0] - best[-1]))) + 1

    return end


LEVEL_ONE: dict[str, Ends] = {
    "**`elbow`** (default)": by_rule(Elbow()),
    "`elbow`, no latest": by_rule(Elbow(latest=None)),
    "`progress`": by_rule(Progress()),
    "`progress`, values only": by_rule(Progress(), train=False),
    "`progress`, values only, minus 6": by_rule(Progress(), train=False, shift=6.0),
    "`quotient`": by_rule(Quotient()),
    "`share`": by_rule(Share()),
    "`share`, a third": by_rule(Share(share=1 / 3)),
    "first step with 80 % (hindsight)": knowing(EIGHTY),
}
COMPLETE: dict[str, Ends] = {
    "**`converged`** (default)": by_rule(Converged()),
    "`converged`, values only": by_rule(Converged(), train=False),
    "`loss`": by_rule(Loss()),
    "`rises`": by_rule(Rises()),
    "`quotient`, no latest": by_rule(Quotient(latest=None)),
    "`progress`, no latest": by_rule(Progress(latest=None)),
    "last improvement (hindsight)": knowing(1.0),
}


class Comparison:
    """Rules compared with fixed shares of the steps that take as much time."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        fixed = [[judge(cell, by_rule(Share(share=share))) for cell in cells] for share in SHARES]
        self.times = np.array([np.mean([each.seconds.mean() for each in row]) for row in fixed])  # (shares,)
        self.fixed = np.array([[(j.reached.mean(), j.correlation) for j in row] for row in fixed])  # (shares, cells, 2)

    def row(self, title: str, ends: Ends) -> list[str]:
        """Means over configurations and cells; differences with the standard error over cells."""
        found = [judge(cell, ends) for cell in self.cells]
        reached = np.concatenate([each.reached for each in found])
        seconds = float(np.mean([each.seconds.mean() for each in found]))
        own = np.array([(each.reached.mean(), each.correlation) for each in found])  # (cells, 2)
        more = own - self._at(seconds)
        mean, spread = more.mean(axis=0), more.std(axis=0, ddof=1) / np.sqrt(len(more))
        return [
            title, percent(own[:, 0].mean()), percent(np.median(reached)), percent(np.quantile(reached, 0.1)),
            percent(np.mean([each.steps.mean() for each in found])), percent(seconds),
            f"{own[:, 1].mean():.2f}", f"{own[:, 1].min():.2f}",
            f"{100 * mean[0]:+.1f} ± {100 * spread[0]:.1f}", f"{mean[1]:+.3f} ± {spread[1]:.3f}",
        ]  # fmt: skip

    def _at(self, seconds: float) -> Array:
        """What the fixed share that takes as much time reached, per cell (cells, 2)."""
        flat = self.fixed.reshape(len(SHARES), -1)
        at = [np.interp(seconds, self.times, column) for column in flat.T]
        return np.array(at).reshape(self.fixed.shape[1:])

    def table(self, rules: dict[str, Ends]) -> str:
        header = [
            "rule", "reached, mean", "median", "lowest tenth", "of the steps", "of the time", "rank correlation",
            "lowest cell", "reached: more than the fixed share of that time", "correlation: more than that",
        ]  # fmt: skip
        return table(header, [self.row(title, ends) for title, ends in rules.items()])


def cell_table(cells: Sequence[Cell]) -> str:
    """The two defaults, cell by cell."""
    rows = []
    for cell in cells:
        row = [cell.title]
        for ends in (by_rule(Elbow()), by_rule(Share()), by_rule(Converged())):
            found = judge(cell, ends)
            row += [percent(found.reached.mean()), percent(found.seconds.mean()), f"{found.correlation:.2f}"]
        rows.append(row)
    each = ("reached", "time", "correlation")
    return table(["cell", *(f"{rule}: {what}" for rule in ("elbow", "share", "converged") for what in each)], rows)


def speed_table() -> str:
    """Milliseconds for 100 curves of 200 steps, training values and all."""
    rng = np.random.default_rng(SEED)
    t = np.arange(200)
    curves = [0.1 + np.exp(-t / rng.uniform(5, 200)) + 0.01 * rng.normal(size=200) for _ in range(100)]

    def milliseconds(rule: str, max_steps: int | None) -> str:
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            for curve in curves:
                first_end(rule, curve, curve, max_steps)
            taken.append(time.perf_counter() - start)
        return f"{1e3 * min(taken):.1f}"

    rows = [[f"`{rule}`", milliseconds(rule, 200), milliseconds(rule, None)] for rule in BY_NAME]
    return table(["milliseconds for 100 curves of 200 steps", "max_steps known", "not known"], rows)
