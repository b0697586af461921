"""What each system is asked for: suggestions after n observations, their processor time and the peak of memory.

The last line of what a process prints is its answer, JSON. A process that would take longer than `--limit` seconds of
processor time is ended by the kernel.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class System(Protocol):
    """A study of one system."""

    def feed(self, points: Array, values: Array, costs: Array) -> None: ...
    def suggest(self) -> Array: ...
    def tell(self, value: float, cost: float) -> None: ...


def value_of(x: Array) -> float:
    """Smooth, with a ripple along one coordinate."""
    return float(((x - 0.4) ** 2).sum() + 0.05 * np.sin(20.0 * x[0]))


def cost_of(x: Array) -> float:
    """Spans a factor of 50, with an interaction."""
    return float(np.exp(3.0 * x[0] + x[1] * x[2]))


def main(description: str | None, versions: dict[str, str], system: Callable[[int, str], System]) -> None:
    """Feed n observations, then time suggestions, each told before the next."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in (("n", 100), ("dimensions", 5), ("asks", 5), ("limit", 120)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--system", default="")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (given.limit, given.limit))
    study, X = system(given.dimensions, given.system), np.random.default_rng(0).random((given.n, given.dimensions))
    study.feed(X, np.array([value_of(x) for x in X]), np.array([cost_of(x) for x in X]))
    seconds = []
    for _ in range(given.asks + 1):
        began = time.process_time()
        x = study.suggest()
        seconds.append(time.process_time() - began)
        study.tell(value_of(x), cost_of(x))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({"first": seconds[0], "later": seconds[1:], "peak_mb": peak, "versions": versions}))
