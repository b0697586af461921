"""The task that every system is given: the lowest value within a budget, begun as the system does by itself.

    python -m benchmarks.auto.peers.... FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

The folders hold the tables. PYTHON is the one that can run the surrogate of LCBench, whose files are in LCBENCH; only
problems of LCBench need them. A child answers each JSON task with a line:

    {"problem": "mlp_car", "method": "tpe", "seed": 0, "budget": 4090.2, "cheap": {}, "most": 1000}
    {"values": [...], "spent": [...], "own": [...], "versions": {...}}

One entry per evaluation that ended within the budget, in order: its value, what was spent by then, and the CPU seconds
that the system itself had needed by then. An evaluation that would end past the budget is cut, and the search is over.
`cheap` is a part of a configuration that is known to cost little. A search ends after `most` evaluations.

The cost of an evaluation is that of the table. Live problems, `live/...`, are trained: what is spent there is time,
from before the system is made, with all that the system does (see live.py).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.auto.peers.spaces import described, levels
from benchmarks.common.described_spaces import Config, Described
from benchmarks.common.tables import Table

Task = dict[str, Any]


class SearchOver(Exception):
    """The budget is spent, or there were as many evaluations as a search may have."""


class Problem(Protocol):
    """A space, and the value and the cost of its configurations."""

    @property
    def space(self) -> Sequence[Described]: ...
    def evaluate(self, config: Config) -> tuple[float, float]: ...


class Tabled:
    def __init__(self, table: Table) -> None:
        self._table = table
        self.space = [described(parameter) for parameter in table.parameters]

    def evaluate(self, config: Config) -> tuple[float, float]:
        return self._table.look_up(levels(self._table.parameters, config))


class LCBench:
    """A network trained to its end: the lowest error of its epochs, and the cost of all of them."""

    def __init__(self, surrogate: Any, task: str) -> None:
        self._surrogate, self._task, self.space = surrogate, task, surrogate.space

    def evaluate(self, config: Config) -> tuple[float, float]:
        curve = self._surrogate.curve(self._task, config)
        return float(min(curve.values)), float(sum(curve.costs))


class Record:
    """Evaluates and writes down."""

    is_live = False

    def __init__(self, problem: Problem, budget: float, most: int) -> None:
        self._problem, self.budget, self.most, self.space = problem, budget, most, problem.space
        self.columns: dict[str, list[Any]] = {name: [] for name in ("values", "spent", "own")}
        self._spent, self._waited, self._began = 0.0, 0.0, time.process_time()

    def evaluate(self, config: Config) -> tuple[float, float]:
        """The value and the cost of a configuration."""
        began = time.process_time()
        value, cost = self._problem.evaluate(config)
        self._waited += time.process_time() - began
        self._spent += cost
        if self._spent > self.budget or len(self.columns["values"]) >= self.most:
            raise SearchOver
        own = time.process_time() - self._began - self._waited
        for column, entry in zip(self.columns.values(), (value, self._spent, round(own, 4)), strict=True):
            column.append(entry)
        return value, cost


class Problems:
    """Makes problems by name; tables are loaded once, and the surrogate is started for the first task of LCBench."""

    def __init__(self, folders: str, *surrogate: str) -> None:
        self._folders = [Path(folder) for folder in folders.split(",")]
        self._arguments, self._surrogate = surrogate, None
        self._tables: dict[str, Tabled] = {}

    def named(self, name: str) -> Problem:
        kind, _, task = name.partition("/")
        if kind == "lcbench":
            return LCBench(self._started(), task)
        if name not in self._tables:
            folder = next(folder for folder in self._folders if (folder / f"{name}.npz").exists())
            self._tables[name] = Tabled(Table.load(folder, name))
        return self._tables[name]

    def _started(self) -> Any:
        from benchmarks.curves.peers.sources import Surrogate

        if self._surrogate is None:
            self._surrogate = Surrogate(*self._arguments)  # type: ignore[assignment]
        return self._surrogate

    def close(self) -> None:
        if self._surrogate is not None:
            self._surrogate.close()


def record_of(task: Task, problems: Problems) -> Any:
    """What a search is done with; the clock of a live one begins here."""
    if task["problem"].startswith("live/"):
        from benchmarks.auto.peers.live import LiveRecord

        return LiveRecord(task)
    return Record(problems.named(task["problem"]), task["budget"], task["most"])


def serve(search: Callable[[Any, Task], None], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes. `search` evaluates until the record says that it is over."""
    problems = Problems(*sys.argv[1:])
    for line in sys.stdin:
        task = json.loads(line)
        record = record_of(task, problems)
        with suppress(SearchOver):
            search(record, task)
        print(json.dumps({**record.columns, "versions": versions}), flush=True)
    problems.close()
