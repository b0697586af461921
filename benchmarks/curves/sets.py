"""Recorded training curves: what each kind of learner did with random configurations, kept in recorded/<kind>.npz.

A file has, per data set of its kind,

    <data set>.configs    (n,) the configurations, as JSON
    <data set>.values     (n, steps) what was reported after each step, to be minimised; NaN from a failure on
    <data set>.seconds    (n, steps) CPU seconds of each step; 0 after a failure

with `space` (JSON, see common/described_spaces.py) and `data`, the data sets of the kind. record.py makes it. Of the
four data sets of a kind, the first and the third are for choosing defaults, the second and the fourth for judging
them: said before any was looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.described_spaces import Config, Described, place

Array = NDArray[np.float64]

RECORDED = Path(__file__).parent / "recorded"
KINDS = ("sgd", "mlp", "boosting", "folds", "cnn", "sequence", "control")


@dataclass(frozen=True, eq=False)
class RecordedSet:
    """The curves of one kind of learner on one data set."""

    kind: str
    data: str
    is_for_choosing: bool  # of defaults; the others judge them
    space: Sequence[Described]
    configs: Sequence[Config]
    places: Array  # (n, d)
    values: Array  # (n, T)
    seconds: Array  # (n, T)

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.data}"

    @property
    def steps(self) -> int:
        return self.values.shape[1]

    @property
    def best(self) -> Array:
        """(n,) the lowest value of each configuration; inf where there was none."""
        return np.nanmin(np.where(np.isfinite(self.values), self.values, np.inf), axis=1)

    @property
    def cost(self) -> float:
        """Mean seconds of a complete training."""
        return float(self.seconds.sum(axis=1).mean())

    @property
    def median(self) -> float:
        """Of the lowest values of configurations; a failure counts as worse than all others."""
        return float(np.sort(self.best)[(len(self.best) - 1) // 2])

    @property
    def lowest(self) -> float:
        return float(self.best.min())


@cache
def sets_of(kind: str) -> Mapping[str, RecordedSet]:
    """The recorded sets of a kind, by data set, in the order of the kind."""
    with np.load(RECORDED / f"{kind}.npz", allow_pickle=False) as stored:
        space: list[dict[str, Any]] = json.loads(str(stored["space"]))
        found = {}
        for i, name in enumerate(map(str, stored["data"])):
            if f"{name}.configs" not in stored:
                continue  # not recorded yet
            configs = [json.loads(str(text)) for text in stored[f"{name}.configs"]]
            places = np.array([place(space, config) for config in configs])
            values, seconds = (stored[f"{name}.{what}"].astype(np.float64) for what in ("values", "seconds"))
            found[name] = RecordedSet(kind, name, i % 2 == 0, space, configs, places, values, seconds)
    return found


def set_named(name: str) -> RecordedSet:
    """A set by `kind/data`."""
    kind, _, data = name.partition("/")
    return sets_of(kind)[data]


def recorded_kinds() -> list[str]:
    return [kind for kind in KINDS if (RECORDED / f"{kind}.npz").exists()]


def names(is_for_choosing: bool) -> list[str]:
    """The sets that defaults are chosen on, or those that judge them."""
    every = (one for kind in recorded_kinds() for one in sets_of(kind).values())
    return [one.name for one in every if one.is_for_choosing == is_for_choosing]
