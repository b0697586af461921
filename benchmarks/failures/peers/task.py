"""The task of the benchmark of failures: minimise a function that crashes inside a ball next to its optimum.

A child reads one JSON task per line from stdin and answers each with one JSON line:

    {"problem": "branin", "failing": true, "method": "ei", "evaluations": 60, "seed": 0}
    {"values": [1.3, null, ...], "inside": [false, true, ...], "seconds": s, "versions": {...}}

`values` are the objective's in the order of evaluation, null where it crashed; `inside` says which evaluations lay in
the ball, also where crashing was switched off; `seconds` is what the system itself took.

Everything is in the unit box, u (p,). The cost of an evaluation is 10 ** mean(u), from 1 to 10, crashed or not.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Task = dict[str, Any]


def branin(U: Array) -> Array:
    """Branin's function plus 5 x1 (Forrester et al. 2008), which leaves it one global minimum; (n,) at U (n, 2)."""
    x1, x2 = 15.0 * U[:, 0] - 5.0, 15.0 * U[:, 1]
    valley = x2 - 5.1 / (4.0 * math.pi**2) * x1**2 + 5.0 / math.pi * x1 - 6.0
    return np.asarray(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * np.cos(x1) + 10.0 + 5.0 * x1)


WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
SCALES = np.array([[10.0, 3.0, 17.0, 3.5], [0.05, 10.0, 17.0, 0.1], [3.0, 3.5, 1.7, 10.0], [17.0, 8.0, 0.05, 10.0]])
CENTRES = 1e-4 * np.array(
    [[1312, 1696, 5569, 124], [2329, 4135, 8307, 3736], [2348, 1451, 3522, 2883], [4047, 8828, 8732, 5743]]
)


def hartmann4(U: Array) -> Array:
    """Hartmann's function in four dimensions (Picheny et al. 2013): four overlapping wells; (n,) at U (n, 4)."""
    distances = (SCALES * (U[:, None, :] - CENTRES) ** 2).sum(axis=2)
    return np.asarray((1.1 - np.exp(-distances) @ WEIGHTS) / 0.839)


@dataclass(frozen=True)
class Problem:
    """A function over the unit box with its optimum and largest value, and the ball in which it crashes."""

    function: Callable[[Array], Array]
    minimizer: tuple[float, ...]
    optimum: float
    largest: float
    centre: tuple[float, ...]
    radius: float

    @property
    def p(self) -> int:
        return len(self.centre)

    def crashes(self, U: Array) -> NDArray[np.bool_]:
        """Which of the points (n, p) lie in the ball."""
        return np.asarray(np.linalg.norm(U - np.array(self.centre), axis=1) < self.radius)


PROBLEMS = {
    "branin": Problem(
        branin, (0.08738098, 0.90866584), -16.644021570843147, 283.1290960, (0.211, 0.778), 0.15,
    ),
    "hartmann4": Problem(
        hartmann4, (0.18739527, 0.19415152, 0.55791777, 0.26477962), -3.1344941412223966, 1.3095406,
        (0.245, 0.556, 0.712, 0.534), 0.45,
    ),
}  # fmt: skip


def cost_at(u: Array) -> float:
    """What an evaluation costs."""
    return float(10.0 ** np.mean(u))


class System(Protocol):
    """A system under test: asked for a point of the unit box, told what became of the one it gave last."""

    def ask(self) -> Array: ...
    def tell(self, value: float | None, cost: float) -> None: ...


def minimise(make: Callable[[int, Task], System], task: Task) -> dict[str, Any]:
    """Run one task; `make(p, task)` begins."""
    problem, seconds = PROBLEMS[task["problem"]], 0.0
    values: list[float | None] = []
    inside: list[bool] = []
    system = make(problem.p, task)
    for _ in range(task["evaluations"]):
        begin = time.perf_counter()
        u = system.ask()
        seconds += time.perf_counter() - begin
        inside.append(bool(problem.crashes(u[None, :])[0]))
        values.append(None if inside[-1] and task["failing"] else float(problem.function(u[None, :])[0]))
        begin = time.perf_counter()
        system.tell(values[-1], cost_at(u))
        seconds += time.perf_counter() - begin
    return {"values": values, "inside": inside, "seconds": seconds}


def serve(make: Callable[[int, Task], System], versions: dict[str, str]) -> None:
    """Answer the tasks on stdin until it closes."""
    for line in sys.stdin:
        print(json.dumps({**minimise(make, json.loads(line)), "versions": versions}), flush=True)
