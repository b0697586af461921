"""The task that every system is given: the lowest validation error of a network within a budget of training cost.

    python -m benchmarks.bapi.peers.... PYTHON FOLDER < tasks.jsonl

PYTHON is the one that can run surrogate.py, FOLDER what that needs. A child answers each JSON task with a line:

    {"task": "3945", "method": "tpe-median", "policy": {...}, "seed": 0, "budget": 900.0}
    {"trials": [...], "values": [...], "costs": [...], "plans": [...], "seconds": 1.2, "versions": {...}}

One entry per trained step, in order: the training it belongs to, its value and cost. A training may be paused and
resumed; only its new steps cost. A step that would end past the budget is cut: it has no entry, and there are no more.
`plans` are Farthing's: what each proposal was predicted to cost and what it did. `seconds` are the system's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Task = dict[str, Any]
Config = Mapping[str, Any]

STEPS = 52
FIRST_RUNG = 1  # the fewest steps that methods with rungs may begin with


class BudgetOver(Exception):
    """The step was cut."""


class Curves:
    """Whole trainings, from a surrogate of its own."""

    def __init__(self, python: str, folder: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.bapi.peers.surrogate", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        described = json.loads((Path(folder) / "config_space.json").read_text())["hyperparameters"]
        self.space = [one for one in described if one["name"] not in ("OpenML_task_id", "epoch")]
        self.seconds = 0.0  # spent here

    def __call__(self, task: str, config: Config) -> tuple[list[float], list[float]]:
        began = time.perf_counter()
        plain = {one["name"]: float(config[one["name"]]) for one in self.space}
        self._process.stdin.write(json.dumps({"task": task, "configs": [plain]}) + "\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]
        found = json.loads(self._process.stdout.readline())  # type: ignore[union-attr]
        self.seconds += time.perf_counter() - began
        return found["values"][0], found["costs"][0]

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(timeout=20)


class Training:
    """One configuration, trained step by step."""

    def __init__(self, record: Record, number: int, values: list[float], costs: list[float]) -> None:
        self._record, self._number, self._values, self._costs = record, number, values, costs
        self.step = 0

    def advance(self) -> tuple[float, float]:
        """One more step: its value and its cost."""
        value, cost = self._values[self.step], self._costs[self.step]
        self._record.add(self._number, value, cost)
        self.step += 1
        return value, cost

    def until(self, step: float) -> float:
        """Train on to a step; the best value by then, as for all who may keep the best model."""
        while self.step < round(step):
            self.advance()
        return min(self._values[: round(step)])


class Record:
    """Trains and writes down."""

    def __init__(self, curves: Curves, task: str, budget: float) -> None:
        self._curves, self.task, self.budget, self.spent = curves, task, budget, 0.0
        self.space = curves.space
        self.columns: dict[str, list[Any]] = {name: [] for name in ("trials", "values", "costs")}
        self.plans: list[list[Any]] = []
        self._begun: dict[Hashable, Training] = {}

    @property
    def is_open(self) -> bool:
        return self.spent < self.budget

    def training(self, key: Hashable, config: Config) -> Training:
        """The training under that key, a new one if there is none."""
        if key not in self._begun:
            self._begun[key] = Training(self, len(self._begun), *self._curves(self.task, config))
        return self._begun[key]

    def add(self, number: int, value: float, cost: float) -> None:
        if self.spent + cost > self.budget:
            self.spent = self.budget
            raise BudgetOver
        self.spent += cost
        for column, entry in zip(self.columns.values(), (number, round(value, 7), cost), strict=True):
            column.append(entry)


def serve(search: Callable[[Record, Task], None], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes. `search` trains until the record is closed."""
    curves = Curves(*sys.argv[1:])
    for line in sys.stdin:
        task = json.loads(line)
        record = Record(curves, task["task"], task["budget"])
        began, waited = time.perf_counter(), curves.seconds
        with suppress(BudgetOver):
            search(record, task)
        seconds = round(time.perf_counter() - began - (curves.seconds - waited), 3)
        answer = {**record.columns, "plans": record.plans, "seconds": seconds, "versions": versions}
        print(json.dumps(answer), flush=True)
    curves.close()
