"""The quality task that every system is given: minimise a problem from given first configurations.

A child reads one JSON task per line from stdin and answers each with one JSON line:

    {"problem": "branin", "start": [config, ...], "evaluations": 60, "seed": 0, ...}
    {"values": [...], "seconds": s, "versions": {...}}

`values` are the objective's, in the order of evaluation; `seconds` is what the system itself took over the
whole run, without the objective.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

Config = dict[str, Any]
Task = dict[str, Any]


class Stopwatch:
    """Seconds spent inside `with` blocks, added up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._begin


class Quality(Protocol):
    """A system under test: asked for a configuration, told the value of the one it gave last."""

    def ask(self) -> Config: ...

    def tell(self, value: float) -> None: ...


def minimise(make: Callable[[Any, Task], Quality], task: Task) -> dict[str, Any]:
    """Run one task."""
    from farthing.problems.functions import FUNCTIONS

    problem, watch, values = FUNCTIONS[task["problem"]], Stopwatch(), []
    system = make(problem.space, task)
    for _ in range(task["evaluations"]):
        with watch:
            config = system.ask()
        values.append(problem.objective(config))
        with watch:
            system.tell(values[-1])
    return {"values": values, "seconds": watch.seconds}


def serve(make: Callable[[Any, Task], Quality], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes."""
    for line in sys.stdin:
        result = minimise(make, json.loads(line))
        print(json.dumps({**result, "versions": versions}), flush=True)
