"""What prepared asks are worth, compared with asks made in turn: regret after each trial on tables of real evaluations.

    python -m benchmarks.overhead.choices TABLE SEED MOST     prints the regrets of both as one line of JSON

Every ask but the first is prepared while the trial before it runs, and finished with its outcome. None is made again
after a surprise, as if evaluations were too short for that.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import farthing as ft
from benchmarks.blackbox.peers.farthing_peer import translated
from benchmarks.blackbox.regret import regret
from benchmarks.blackbox.runs import initial_levels
from benchmarks.common.tables import TABLES, Table, table_of
from farthing.errors import StudyEnded
from farthing.numerics.threads import one_blas_thread
from farthing.policies.preparation import Preparation, prepared
from farthing.policies.thinking import Thinking

MEANS = 40.0  # the budget, in mean costs of a table


def study_of(table: Table, seed: int) -> ft.Study:
    start = [
        {parameter.name: parameter.values[level] for parameter, level in zip(table.parameters, levels, strict=True)}
        for levels in initial_levels(table.name, seed)
    ]
    return ft.Study(
        ft.Space({parameter.name: translated(parameter) for parameter in table.parameters}),
        ft.Budget(cost=MEANS * table.mean_cost), seed=seed + 1_000 * TABLES.index(table.name), start=start,
    )  # fmt: skip


def regrets(name: str, seed: int, most: int, ahead: bool) -> list[float]:
    """The normalised regret after each trial; that of the last one where the budget ends sooner."""
    table = table_of(name)
    study = study_of(table, seed)
    session, thinking, values, known = study._session, Thinking(), list[float](), list[Preparation]()
    with one_blas_thread():
        while len(values) < most:
            try:
                (proposal,) = session.propose(1, dict, pending=True, prepared=known)
            except StudyEnded:
                break
            snapshot = session.snapshot() if ahead else None
            found = None if snapshot is None else prepared(study.policy, study.space, snapshot, thinking, float("inf"))
            known = [] if found is None else [found]
            levels = [parameter.values.index(proposal.config[parameter.name]) for parameter in table.parameters]
            value, cost = table.look_up(levels)
            study.tell(proposal, value=value, cost=cost)
            values.append(value)
    best = np.minimum.accumulate([*values, *[values[-1]] * (most - len(values))])
    return np.maximum(regret(name, best), 0.0).tolist()


if __name__ == "__main__":
    given, first, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"ahead": regrets(given, first, trials, True), "in turn": regrets(given, first, trials, False)}))
