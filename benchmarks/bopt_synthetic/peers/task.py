"""The task that every system is given: minimise the complete level of a function within a budget of cost.

A child reads one JSON task per line from stdin and answers each with one JSON line:

    {"function": "park", "method": "tpe", "seed": 0, "budget": 30.0, "design": [[...], ...]}
    {"points": [...], "levels": [...], "values": [...], "costs": [...], "seconds": 1.2, "versions": {...}}

One entry per evaluation, in order: the point in the unit cube, its level (0 cheap, 1 complete), its value and cost.
`design` is the nested design, its first half to be completed. A complete run costs 1, a cheap one CHEAP; a complete run
of a point that had its cheap one goes on from there and costs the rest. An evaluation that would end past the budget is
cut there, charged, and its value is null. `seconds` are the system's own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from benchmarks.common.two_level_functions import FUNCTIONS, Function

Task = dict[str, Any]
Point = Sequence[float]

CHEAP, COMPLETE = 0.2, 1.0
ROUNDING = 1e-9


class BudgetOver(Exception):
    """The evaluation was cut."""


class Record:
    """Evaluates and writes down."""

    def __init__(self, function: Function, budget: float) -> None:
        self.function, self.budget, self.spent = function, budget, 0.0
        self.columns: dict[str, list[Any]] = {name: [] for name in ("points", "levels", "values", "costs")}
        self._begun: set[bytes] = set()

    @property
    def is_open(self) -> bool:
        return self.spent < self.budget - ROUNDING

    def cheap(self, point: Point) -> float:
        """The value of the cheap level; the point can go on from there."""
        value = self._add(0, point, CHEAP)
        self._begun.add(_key(point))
        return value

    def cheap_value(self, point: Point) -> float:
        """The same of a point whose complete run has passed it: nothing is charged."""
        return float(self.function.cheap(np.array(point, dtype=np.float64)[None, :])[0])

    def complete(self, point: Point) -> float:
        """The value of the complete level."""
        return self._add(1, point, self.cost_of_completing(point))

    def cost_of_completing(self, point: Point) -> float:
        return COMPLETE - CHEAP if _key(point) in self._begun else COMPLETE

    def _add(self, level: int, point: Point, cost: float) -> float:
        fits = self.spent + cost <= self.budget + ROUNDING
        X = np.array(point, dtype=np.float64)[None, :]
        value = float((self.function.complete if level else self.function.cheap)(X)[0])
        charged = cost if fits else self.budget - self.spent
        self.spent = self.spent + charged if fits else self.budget
        row = ([round(x, 6) for x in map(float, point)], level, value if fits else None, charged)
        for column, entry in zip(self.columns.values(), row, strict=True):
            column.append(entry)
        if not fits:
            raise BudgetOver
        return value


def _key(point: Point) -> bytes:
    return np.array(point, dtype=np.float64).tobytes()


def first_complete(task: Task) -> list[list[float]]:
    """What methods of one level start from: as many complete points of the design as it costs."""
    half = len(task["design"]) // 2
    bought = int(2 * half * CHEAP + half * (COMPLETE - CHEAP) + ROUNDING)
    return list(task["design"][:bought])


def serve(search: Callable[[Record, Task], None], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes. `search` evaluates until the record is closed."""
    for line in sys.stdin:
        task = json.loads(line)
        record = Record(FUNCTIONS[task["function"]], task["budget"])
        began = time.perf_counter()
        with suppress(BudgetOver):
            search(record, task)
        seconds = round(time.perf_counter() - began, 3)
        print(json.dumps({**record.columns, "seconds": seconds, "versions": versions}), flush=True)
