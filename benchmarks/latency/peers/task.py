"""The latency task that every system is given, and the loop that times it.

The objective is smooth with noise, on the unit cube in 7 dimensions. A system is a `Latency` object: `feed`
puts the first n trials in, untimed; `suggest` returns the next point; `tell` hands its value back. One sample
is the time of a suggest and its tell, without the objective's. Every suggestion sees a new value, so every
one fits again, and the first of them has no earlier fit to start from: it is the cold start, and counts.

One JSON line per event goes to stdout: {"ready": versions} after warming up and feeding, then {"seconds": s,
"cpu_seconds": c} per round. With --lockstep each round waits for a line on stdin, so that a driver can let
several systems take turns.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 7
NOISE = 0.05
WARM_UP_TRIALS = 30
WARM_UP_ROUNDS = 3

Array = NDArray[np.float64]


class Latency(Protocol):
    """A system under test: points are in the unit cube, values are minimised."""

    def feed(self, points: Array, values: Array) -> None: ...

    def suggest(self) -> Array: ...

    def tell(self, point: Array, value: float) -> None: ...


class Noisy:
    """The objective: a bowl with unequal axes, two interactions and a wave, plus Gaussian noise."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._centre = self._rng.uniform(0.2, 0.8, DIMENSIONS)
        self._weight = np.geomspace(4.0, 0.2, DIMENSIONS)

    def points(self, n: int) -> Array:
        return self._rng.random((n, DIMENSIONS))

    def __call__(self, X: Array) -> Array:  # (m, 7) -> (m,)
        offset = X - self._centre
        smooth = (
            offset**2 @ self._weight
            + offset[:, 0] * offset[:, 1]
            - offset[:, 2] * offset[:, 3]
            + 0.3 * np.sin(4.0 * offset[:, 0] + 3.0 * offset[:, 4])
        )
        return smooth + NOISE * self._rng.standard_normal(len(X))


def clocks() -> Array:
    """Wall and CPU seconds of this process so far."""
    return np.array([time.perf_counter(), time.process_time()])


def one_round(system: Latency, objective: Noisy) -> dict[str, float]:
    """Wall and CPU seconds that one suggestion and the telling of its value take."""
    begin = clocks()
    point = system.suggest()
    suggested = clocks()
    value = float(objective(point[None, :])[0])
    evaluated = clocks()
    system.tell(point, value)
    seconds, cpu_seconds = clocks() - evaluated + suggested - begin
    return {"seconds": float(seconds), "cpu_seconds": float(cpu_seconds)}


def prepared(make: Callable[[int], Latency], n: int, seed: int) -> tuple[Latency, Noisy]:
    """A fresh system that was told n trials."""
    objective = Noisy(seed)
    points = objective.points(n)
    system = make(seed)
    system.feed(points, objective(points))
    return system, objective


def warm_up(make: Callable[[int], Latency]) -> None:
    """Import, compile and allocate on a small unrelated study."""
    system, objective = prepared(make, WARM_UP_TRIALS, seed=987_654)
    for _ in range(WARM_UP_ROUNDS):
        one_round(system, objective)


def emit(event: dict[str, Any]) -> None:
    """Write one JSON line for the driver."""
    print(json.dumps(event), flush=True)


def main(about: str | None, versions: dict[str, str], make: Callable[[int], Latency]) -> None:
    """The command line of a peer: time the rounds that it asks for."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, required=True, help="trials told before the first timed suggestion")
    parser.add_argument("--rounds", type=int, required=True, help="suggestions to time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lockstep", action="store_true", help="wait for a line on stdin before each round")
    arguments = parser.parse_args()
    warm_up(make)
    system, objective = prepared(make, arguments.n, arguments.seed)
    emit({"ready": versions})
    for _ in range(arguments.rounds):
        if arguments.lockstep and not sys.stdin.readline():
            return
        emit(one_round(system, objective))
