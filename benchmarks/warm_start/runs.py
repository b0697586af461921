"""The runs of the benchmark of warm starts: one table is tuned after none, one or three others; done once and kept.

An earlier study is one of EARLIER evaluations on another table with the same grid, by `auto`. In a misleading one the
values that its configurations found are shuffled among them before the new study sees it.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.blackbox.peers.farthing_peer import translated
from benchmarks.common.fingerprints import farthing_code
from benchmarks.common.kept_runs import once
from benchmarks.common.tables import TABLES, Table, table_of
from farthing.errors import StudyEnded

EARLIER = 60  # evaluations of an earlier study
MEANS = 40.0  # the budget of the new one, in mean costs of its table


@dataclass(frozen=True)
class Start:
    """What a study begins from: so many earlier studies, whose values may be shuffled."""

    title: str
    studies: int = 0
    shuffled: bool = False


COLD = Start("none")
ONE, THREE = Start("1 study", 1), Start("3 studies", 3)
MISLED, MISLED_THREE = Start("1 shuffled study", 1, True), Start("3 shuffled studies", 3, True)
STARTS = (COLD, ONE, THREE, MISLED, MISLED_THREE)


@dataclass(frozen=True)
class Run:
    """One study on one table with one seed."""

    table: str
    start: Start
    seed: int
    means: float = MEANS
    policy: str = "auto"

    @property
    def own_seed(self) -> int:
        return self.seed + 1_000 * TABLES.index(self.table)

    @property
    def sources(self) -> list[str]:
        """The tables of the earlier studies, drawn from those with the same grid; the first is that of `1 study`."""
        family = self.table.partition("_")[0]
        others = [name for name in TABLES if name.startswith(f"{family}_") and name != self.table]
        drawn = np.random.default_rng([self.seed, TABLES.index(self.table)]).permutation(len(others))
        return [others[i] for i in drawn[: self.start.studies]]


@dataclass(frozen=True)
class Result:
    """The least value after each evaluation, the share of the budget spent by then, and seconds of the processor."""

    spent: list[float]
    best: list[float]
    seconds: float

    def best_at(self, share: float) -> float:
        """The least value found with a share of the budget, infinite before the first evaluation has ended."""
        known = int(np.searchsorted(self.spent, share * (1 + 1e-12), side="right"))
        return self.best[known - 1] if known else np.inf


def space_of(table: Table) -> ft.Space:
    return ft.Space({parameter.name: translated(parameter) for parameter in table.parameters})


def look_up(table: Table, config: dict[str, Any]) -> tuple[float, float]:
    """Value and cost of a configuration."""
    return table.look_up([parameter.values.index(config[parameter.name]) for parameter in table.parameters])


def earlier_study(name: str, seed: int, shuffled: bool) -> ft.Study:
    """A study of another table, as told; from its kept evaluations."""
    task = {"table": name, "seed": seed, "evaluations": EARLIER, "code": farthing_code()}
    told = once(f"warm-start-earlier-{name}-{seed}", task, lambda: _evaluations(name, seed))
    values = [value for _, value, _ in told]
    if shuffled:
        values = np.random.default_rng([seed, TABLES.index(name)]).permutation(values).tolist()
    study = ft.Study(space_of(table_of(name)), f"{EARLIER} evaluations", policy="random", seed=seed)
    for (config, _, cost), value in zip(told, values, strict=True):
        study.add(config, value=value, cost=cost)
    return study


def _evaluations(name: str, seed: int) -> list[tuple[dict[str, Any], float, float]]:
    table, told = table_of(name), []
    study = ft.Study(space_of(table), f"{EARLIER} evaluations", seed=500 + seed)
    while study.ended is None:
        proposal = study.ask()
        value, cost = look_up(table, proposal.config)
        study.tell(proposal, value=value, cost=cost)
        told.append((proposal.config, value, cost))
    return told


def result_of(run: Run) -> Result:
    """What a run found; from its file if it was done before."""
    key = {"run": asdict(run), "sources": run.sources, "earlier": EARLIER, "code": farthing_code()}
    name = f"warm-start-{run.table}-{run.start.title.replace(' ', '-')}-{run.seed}"
    return Result(**once(name, key, lambda: asdict(_searched(run))))


def _searched(run: Run) -> Result:
    table = table_of(run.table)
    budget = run.means * table.mean_cost
    earlier = [earlier_study(name, run.seed, run.start.shuffled) for name in run.sources]
    began = time.process_time()
    study = ft.Study(
        space_of(table), ft.Budget(cost=budget), policy=run.policy, seed=run.own_seed, warm_start=earlier
    )  # fmt: skip
    best, spent = list[float](), list[float]()
    while True:
        try:
            proposal = study.ask()
        except StudyEnded:
            break
        value, cost = look_up(table, proposal.config)
        study.tell(proposal, value=value, cost=cost)
        best.append(min(value, best[-1] if best else np.inf))
        spent.append(study.ledger.total("cost") / budget)
    return Result(spent, best, time.process_time() - began)
