"""Our default compared with another form of the same policy: ratios of means, with paired bootstrap intervals.

cells   (problems, seeds): the score of each run; the same problems and seeds for both forms
ratio   mean of the default / mean of the other: below 1 the default is better
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.statistics import Interval, interval, resampled

Array = NDArray[np.float64]
Verdict = Literal["better", "worse", "open"]

RESAMPLES = 5_000
SAME = 1e-9  # relative difference of two scores that tie
MANY = 1e3  # times: the ratio where only the other form has no regret left


def ratio(ours: Array, theirs: Array, mean: str) -> Interval:
    """Of the arithmetic or geometric means of cells, the seeds of every problem drawn again, alike for both."""
    if mean == "geometric":
        gaps = np.log(ours / theirs)
        return interval(float(np.exp(gaps.mean())), np.exp(_resampled_means(gaps)))
    draws = _quotients(_resampled_means(ours), _resampled_means(theirs))
    return interval(float(_quotients(ours.mean(), theirs.mean())), draws)


def _quotients(above: Array, below: Array) -> Array:
    """None over none is 1: all problems are solved by both."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.minimum(np.nan_to_num(above / below, nan=1.0, posinf=MANY), MANY)


def _resampled_means(cells: Array) -> Array:
    problems, seeds = cells.shape
    return np.take_along_axis(cells[None], resampled(seeds, RESAMPLES, problems), axis=2).mean(axis=(1, 2))


@dataclass(frozen=True)
class Count:
    """Pairs of runs in which the default is better, worse, or the same."""

    wins: int
    losses: int
    ties: int

    @classmethod
    def of(cls, ours: Array, theirs: Array) -> Count:
        gap = ours - theirs
        same = np.abs(gap) <= SAME * np.maximum(np.abs(ours), np.abs(theirs))
        return cls(int((~same & (gap < 0)).sum()), int((~same & (gap > 0)).sum()), int(same.sum()))

    def __str__(self) -> str:
        return f"{self.wins} / {self.losses} / {self.ties}"


@dataclass(frozen=True)
class Comparison:
    """The default of a policy and one other form of it, in one group of problems.

    choosing, held_out   the ratio by the last measure on either half, None where one half is all
    together             the ratio by each measure on all problems
    means                of the default and of the other form, by the last measure
    """

    policy: str
    form: str
    kind: str
    shown: str
    choosing: Interval | None
    held_out: Interval | None
    together: tuple[Interval, ...]
    means: tuple[float, float]
    count: Count
    seconds: tuple[float, float]

    @property
    def main(self) -> Interval:
        return self.together[-1]

    @property
    def verdict(self) -> Verdict:
        """Better or worse only if the interval is on one side of 1, and both halves are too."""
        halves = [half.value for half in (self.choosing, self.held_out) if half is not None]
        if self.main.high < 1.0 and all(value < 1.0 for value in halves):
            return "better"
        if self.main.low > 1.0 and all(value > 1.0 for value in halves):
            return "worse"
        return "open"


def comparisons(group: Mapping[str, Any]) -> list[Comparison]:
    """Every form but the defaults, compared with the default of its policy on the problems that both were run on."""
    forms = group["forms"]
    return [
        _comparison(group, forms[form["policy"]], name, form)
        for name, form in forms.items()
        if form["kind"] != "default" and form["policy"] in forms
    ]


def _comparison(group: Mapping[str, Any], default: Mapping[str, Any], name: str, form: Mapping[str, Any]) -> Comparison:
    problems = [problem for problem in group["problems"] if problem in form["scores"] and problem in default["scores"]]
    ours, theirs = (np.array([one["scores"][problem] for problem in problems]) for one in (default, form))
    ours = ours[:, : theirs.shape[1]]  # some forms have fewer seeds, the first ones
    is_choosing = np.array([problem in group["choosing"] for problem in problems])

    def half(rows: NDArray[np.bool_]) -> Interval | None:
        has_two = rows.any() and not rows.all()
        return ratio(ours[rows, :, -1], theirs[rows, :, -1], group["mean"]) if has_two else None

    together = [ratio(ours[:, :, i], theirs[:, :, i], group["mean"]) for i in range(len(group["measures"]))]
    last = (ours[:, :, -1], theirs[:, :, -1])
    return Comparison(
        form["policy"],
        name,
        form["kind"],
        form["shown"],
        half(is_choosing),
        half(~is_choosing),
        tuple(together),
        (_mean(last[0], group["mean"]), _mean(last[1], group["mean"])),
        Count.of(*last),
        (default["seconds"], form["seconds"]),
    )


def _mean(cells: Array, mean: str) -> float:
    return float(np.exp(np.log(cells).mean()) if mean == "geometric" else cells.mean())
