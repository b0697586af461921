"""The findings of the black-box benchmark from the data of its page: the page can be written again without a run.

Values are kept as regret, with few digits: where two methods found nearly the same, ranks may differ in the second
decimal place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.blackbox.regret import Findings
from benchmarks.blackbox.runs import Result, Run, initial_levels, method_of
from benchmarks.common.tables import table_of


def kept_findings(data: dict[str, Any], most: int) -> Findings:
    """From docs/data/blackbox.json; `most` evaluations ended a run of Farthing."""
    methods, tables = [method_of(name) for name in data["methods"]], list(data["tables"])
    seeds = range(len(data["evaluations"][tables[0]][methods[0].name]))
    runs = [Run(table, method, seed, data["means"]) for table in tables for method in methods for seed in seeds]
    return Findings({run: _result(run, data, most) for run in runs}, tables, methods)


def _result(run: Run, data: dict[str, Any], most: int) -> Result:
    def kept(numbers: str) -> Any:
        return data[numbers][run.table][run.method.name][run.seed]

    facts, (spent, regrets) = table_of(run.table), kept("steps")
    best = [facts.optimum + regret * (facts.median - facts.optimum) for regret in regrets]
    is_capped = run.method.is_farthing and kept("evaluations") >= most
    versions = tuple(data["versions"].get(run.method.library, {}).items())
    return Result(
        tuple(spent), tuple(best), kept("evaluations"), kept("seconds"), 0.0 if is_capped else 1.0, _chosen_from(run),
        versions,
    )  # fmt: skip


def _chosen_from(run: Run) -> float:
    """What the first configurations, which are the same for every method, take of the budget."""
    share = sum(table_of(run.table).look_up(levels)[1] for levels in initial_levels(run.table, run.seed)) / run.budget
    return share if share <= 1.0 else np.inf
