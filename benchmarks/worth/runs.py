"""The runs of the benchmark of stopping: one study for each table and seed, done once and kept.

Finished runs lie in benchmarks/cache, see common/kept_runs.py; the tables do too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.blackbox.runs import initial_levels
from benchmarks.common.fingerprints import fingerprint
from benchmarks.common.kept_runs import Files, Runner
from benchmarks.common.tables import TABLES, table_of, tables_folder
from farthing.policies.worth import is_over
from farthing.record.state import Prospect

Array = NDArray[np.float64]

MEANS = 40.0  # the budget, in mean costs of the table
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the budget, after which there is an outlook
AHEAD = 0.1  # of the budget, what it is about


@dataclass(frozen=True)
class Method:
    """How Farthing searches."""

    system: str = "farthing"
    module: str = "worth.peers.farthing_peer"


@dataclass(frozen=True)
class Run:
    """One study."""

    table: str
    seed: int
    method: Method = Method()

    @property
    def budget(self) -> float:
        return MEANS * table_of(self.table).mean_cost

    @property
    def task(self) -> dict[str, Any]:
        return {
            "table": self.table, "seed": self.seed + 1_000 * TABLES.index(self.table), "budget": self.budget,
            "start": initial_levels(self.table, self.seed), "shares": SHARES, "ahead": AHEAD,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.table} seed {self.seed}"


@dataclass(frozen=True)
class Stop:
    """Where a price ends a study: what is spent by then, and the best value, compared with the whole budget."""

    saved: float  # share of the budget
    lost: float  # of the way from the table's median to its optimum


@dataclass(frozen=True)
class Foreseen:
    """What was expected of more budget and what it brought, as shares of the way from median to optimum."""

    share: float
    gain: float
    interval: tuple[float, float]
    chance: float
    realised: float


@dataclass(frozen=True)
class Result:
    """What a study found and expected."""

    run: Run
    spent: Array  # shares of the budget
    best: Array
    prospects: tuple[Prospect | None, ...]  # of the asks
    outlooks: tuple[dict[str, Any], ...]
    seconds: dict[str, float]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Result:
        prospects = tuple(None if found is None else Prospect(*found) for found in answer["prospects"])
        spent, best = np.array(answer["spent"]) / run.budget, np.minimum.accumulate(answer["values"])
        return cls(run, spent, best, prospects, tuple(answer["outlooks"]), answer["seconds"])

    @property
    def unit(self) -> float:
        """From the table's median to its optimum."""
        table = table_of(self.run.table)
        return table.median - table.optimum

    def stop(self, price: float) -> Stop:
        """If an improvement by a hundredth of the way is worth `price` mean evaluations."""
        worth = price * table_of(self.run.table).mean_cost / (0.01 * self.unit)
        seen: list[Prospect] = []
        for ask, prospect in enumerate(self.prospects):
            seen += [] if prospect is None else [prospect]
            if prospect is not None and is_over(seen, worth):
                return Stop(float(1.0 - self.spent[ask - 1]), float(self.best[ask - 1] - self.best[-1]) / self.unit)
        return Stop(0.0, 0.0)

    def _best_at(self, share: float) -> float:
        return float(self.best[np.searchsorted(self.spent, share * (1 + 1e-12), side="right") - 1])

    def foreseen(self) -> list[Foreseen]:
        """Outlooks, and what came of them."""
        found = []
        for outlook in self.outlooks:
            spent = outlook["spent"] / self.run.budget
            realised = (self._best_at(spent) - self._best_at(spent + AHEAD)) / self.unit
            low, high = (bound / self.unit for bound in outlook["interval"])
            found.append(
                Foreseen(outlook["share"], outlook["gain"] / self.unit, (low, high), outlook["chance"], realised)
            )
        return found


def _shown(run: Run, result: Result) -> str:
    return f"{len(result.spent)} evaluations in {sum(result.seconds.values()):.1f} s"


FILES = Files[Run, Result](
    lambda run: f"worth-{run.table}-{run.seed}",
    lambda run: fingerprint("farthing", (run.method.module, "blackbox.peers.farthing_peer", "common.tables")),
    Result.of,
)


def answers_of(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Results as JSON, with the digits that matter."""
    return [
        {
            "table": result.run.table, "seed": result.run.seed,
            "spent": _rounded(result.spent * result.run.budget), "values": _rounded(result.best),
            "prospects": [found if found is None else _rounded(found) for found in result.prospects],
            "outlooks": [{name: _rounded(value) for name, value in found.items()} for found in result.outlooks],
            "seconds": {name: _rounded(value) for name, value in result.seconds.items()},
        }
        for result in results
    ]  # fmt: skip


def _rounded(given: Any) -> Any:
    return float(f"{given:.7g}") if np.ndim(given) == 0 else [_rounded(item) for item in given]


def results_of(data: dict[str, Any]) -> list[Result]:
    """Results from the data of the page."""
    return [Result.of(Run(answer["table"], answer["seed"]), answer) for answer in data["runs"]]


def measure(seeds: int, tables: Sequence[str], workers: int) -> list[Result]:
    """The results of all runs; seeds outermost, so that a part is a fair part."""
    runs = [Run(table, seed) for seed, table in product(range(seeds), tables)]
    runner = Runner(FILES, _shown, lambda run: (tables_folder(),), 7_200.0)
    return list(runner.measure_all(runs, workers).values())
