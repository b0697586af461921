"""The task that every system is given: the lowest validation error of a learner within a budget of training cost.

    python -m benchmarks.curves.peers.... [PYTHON FOLDER] < tasks.jsonl

PYTHON is the one that can run surrogate.py, FOLDER what that needs; tasks of LCBench need both. A child answers each
JSON task with a line:

    {"task": "lcbench/3945", "method": "tpe-median", "policy": {...}, "seed": 0, "budget": 900.0}
    {"trials": [...], "values": [...], "costs": [...], "own": [...], "plans": [...], "seconds": 1.2, "versions": {...}}

One entry per trained step, in order: the training it belongs to, its value and cost, and the CPU seconds that the
system itself had needed by then. A training may be paused and resumed; only its new steps cost. A step that would end
past the budget is cut: it has no entry, and there are no more. A step that fails has no value but a cost, and ends its
training. `plans` are Farthing's: what each proposal was predicted to cost and what it did. `seconds` are the system's
own, in all. Starting a process and importing libraries are not among them.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

from benchmarks.curves.peers.sources import Config, Curve, Curves, Sources

Task = dict[str, Any]

FIRST_RUNG = 1  # the fewest steps that methods with rungs may begin with


class BudgetOver(Exception):
    """The step was cut."""


class TrainingFailed(Exception):
    """The step had no value; `cost` is what it cost. If it is tried again, it fails and costs again."""

    def __init__(self, cost: float) -> None:
        super().__init__("the training failed")
        self.cost = cost


class Training:
    """One configuration, trained step by step."""

    def __init__(self, record: Record, number: int, curve: Curve) -> None:
        self._record, self._number, self._curve = record, number, curve

    @property
    def step(self) -> int:
        return self._curve.step

    def advance(self) -> tuple[float, float]:
        """One more step: its value and its cost."""
        value, cost = self._curve.ahead
        self._record.add(self._number, value, cost)
        self._curve.advance()
        if math.isnan(value):
            raise TrainingFailed(cost)
        return value, cost

    def until(self, step: float) -> float:
        """Train on to a step; the best value by then, as for all who may keep the best model."""
        while self.step < round(step):
            self.advance()
        return float(min(self._curve.values[: round(step)]))


class Record:
    """Trains and writes down."""

    def __init__(self, curves: Curves, budget: float) -> None:
        self._curves, self.budget, self.spent = curves, budget, 0.0
        self.space, self.steps = curves.space, curves.steps
        self.columns: dict[str, list[Any]] = {name: [] for name in ("trials", "values", "costs", "own")}
        self.plans: list[list[Any]] = []
        self._begun: dict[Hashable, Training] = {}
        self._began, self._waited = time.process_time(), 0.0

    @property
    def is_open(self) -> bool:
        return self.spent < self.budget

    @property
    def seconds(self) -> float:
        """CPU seconds of the system itself so far: without those of looking a training up."""
        return round(time.process_time() - self._began - self._waited, 4)

    def training(self, key: Hashable, config: Config) -> Training:
        """The training under that key, a new one if there is none."""
        if key not in self._begun:
            began = time.process_time()
            self._begun[key] = Training(self, len(self._begun), self._curves.begin(config))
            self._waited += time.process_time() - began
        return self._begun[key]

    def add(self, number: int, value: float, cost: float) -> None:
        if self.spent + cost > self.budget:
            self.spent = self.budget
            raise BudgetOver
        self.spent += cost
        entries = (number, None if math.isnan(value) else round(value, 7), cost, self.seconds)
        for column, entry in zip(self.columns.values(), entries, strict=True):
            column.append(entry)


def serve(search: Callable[[Record, Task], None], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes. `search` trains until the record is closed."""
    with Sources(*sys.argv[1:]) as sources:
        for line in sys.stdin:
            task = json.loads(line)
            record = Record(sources.curves(task["task"]), task["budget"])
            with suppress(BudgetOver):
                search(record, task)
            answer = {**record.columns, "plans": record.plans, "seconds": record.seconds, "versions": versions}
            print(json.dumps(answer), flush=True)
