"""A study on a table to the end of its budget, and what it expected on the way, as a child process.

    python -m benchmarks.worth.peers.farthing_peer FOLDER < tasks.jsonl

    {"table": "mlp_car", "seed": 0, "budget": 4090.2, "start": [levels, ...], "shares": [0.1, ...], "ahead": 0.1}
    {"spent": [...], "values": [...], "prospects": [[gain, cost] or null, ...], "outlooks": [...], "seconds": {...}}

Nothing ends the study early: an improvement is worth so much that every evaluation is worth its cost. A prospect is
what the ask of an evaluation expected of the best candidate. Outlooks are taken once each of `shares` of the budget is
spent, for `ahead` of it more.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import farthing as ft
from benchmarks.blackbox.peers.farthing_peer import translated
from benchmarks.common.tables import Table
from farthing.errors import StudyEnded

ENDLESS = 1e200  # what an improvement by 1 is worth
Task = dict[str, Any]


def study_of(table: Table, task: Task) -> ft.Study:
    names = {parameter.name: parameter for parameter in table.parameters}
    start = [
        {name: parameter.values[level] for (name, parameter), level in zip(names.items(), levels, strict=True)}
        for levels in task["start"]
    ]
    return ft.Study(
        ft.Space({name: translated(parameter) for name, parameter in names.items()}), ft.Budget(cost=task["budget"]),
        seed=task["seed"], start=start, stop_when_not_worth=ENDLESS,
    )  # fmt: skip


def searched(table: Table, task: Task) -> dict[str, Any]:
    """Run one task."""
    study, shares = study_of(table, task), list(task["shares"])
    spent, values, prospects, outlooks = list[float](), list[float](), list[Any](), list[Any]()
    seconds = {"asks": 0.0, "outlooks": 0.0}
    while True:
        began = time.process_time()
        try:
            proposal = study.ask()
        except StudyEnded:
            break
        seconds["asks"] += time.process_time() - began
        levels = [parameter.values.index(proposal.config[parameter.name]) for parameter in table.parameters]
        value, cost = table.look_up(levels)
        total = (spent[-1] if spent else 0.0) + cost
        if total > task["budget"]:
            break
        study.tell(proposal, value=value, cost=cost)
        spent.append(total)
        values.append(value)
        prospects.append((proposal.fits.get("prospects") or [None])[-1])
        while shares and total >= shares[0] * task["budget"] and len(values) > 1:
            began = time.process_time()
            found = study.outlook(ft.Budget(cost=task["ahead"] * task["budget"]))
            seconds["outlooks"] += time.process_time() - began
            outlooks.append({
                "share": shares.pop(0), "spent": total, "evaluations": found.evaluations, "gain": found.gain,
                "interval": found.interval, "chance": found.chance,
            })  # fmt: skip
    return {"spent": spent, "values": values, "prospects": prospects, "outlooks": outlooks, "seconds": seconds}


if __name__ == "__main__":
    tables = dict[str, Table]()
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["table"] not in tables:
            tables[asked["table"]] = Table.load(Path(sys.argv[1]), asked["table"])
        print(json.dumps(searched(tables[asked["table"]], asked)), flush=True)
