"""The task that every system is given: minimise a table's value within a budget of cost.

A child is started with the folder of the tables, reads one JSON task per line from stdin and answers each with one
JSON line:

    {"table": "mlp_car", "method": "tpe", "seed": 0, "budget": 4090.2, "start": [levels, ...], "batch": 1}
    {"levels": [...], "values": [...], "costs": [...], "spent": [...], "seconds": [...], "versions": {...}}

One entry per evaluation, in order: the configuration, its value, its cost, the sum of costs so far, and the seconds
that the system itself took to propose it and to be told. The system is given the configurations of `start` first. An
evaluation that would end past the budget is cut there: what was left is charged and its value is null. A task may also
say after how many evaluations to end (`most`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from benchmarks.common.tables import Levels, Table

Task = dict[str, Any]


class System(Protocol):
    """Asked for up to n configurations, told the value and the cost of each. None left: it answers with none."""

    def ask(self, n: int) -> list[list[int]]: ...

    def tell(self, values: list[float], costs: list[float]) -> None: ...


class Record:
    """What a run did so far."""

    def __init__(self, budget: float) -> None:
        self.budget, self.total = budget, 0.0
        self.columns: dict[str, list[Any]] = {name: [] for name in ("levels", "values", "costs", "spent", "seconds")}

    def __len__(self) -> int:
        return len(self.columns["spent"])

    @property
    def open(self) -> bool:
        return self.total < self.budget

    def add(self, levels: Levels, value: float | None, cost: float, seconds: float) -> None:
        fits = self.total + cost <= self.budget
        charged = cost if fits else self.budget - self.total
        self.total = self.total + cost if fits else self.budget
        row = (list(levels), value if fits else None, charged, self.total, seconds)
        for column, entry in zip(self.columns.values(), row, strict=True):
            column.append(entry)


def search(system: System, table: Table, task: Task) -> dict[str, Any]:
    """Run one task."""
    record, most = Record(task["budget"]), task.get("most") or sys.maxsize
    waiting = [list(levels) for levels in task["start"]]
    while record.open and len(record) < most:
        began = time.perf_counter()
        asked = system.ask(task["batch"])
        seconds = time.perf_counter() - began
        expected, waiting = waiting[: len(asked)], waiting[len(asked) :]
        if asked[: len(expected)] != expected:
            raise RuntimeError(f"{task['method']} began with {asked}, not with the given {expected}")
        if not asked:
            break
        for levels in asked:
            if record.open:
                record.add(levels, *table.look_up(levels), seconds / len(asked))
        if record.open:
            began = time.perf_counter()
            found = [table.look_up(levels) for levels in asked]
            system.tell([value for value, _ in found], [cost for _, cost in found])
            record.columns["seconds"][-1] += time.perf_counter() - began
    return record.columns


def serve(make: Callable[[Table, Task], System], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes; a table is loaded once."""
    folder, tables = Path(sys.argv[1]), dict[str, Table]()
    for line in sys.stdin:
        task = json.loads(line)
        name = task["table"]
        if name not in tables:
            tables[name] = Table.load(folder, name)
        columns = search(make(tables[name], task), tables[name], task)
        print(json.dumps({**columns, "versions": versions}), flush=True)
