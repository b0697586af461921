"""The overrun task that every system is given: one study with a budget of seconds, over trials that sleep.

A peer writes {"ready": versions, "import_seconds": s}, waits for a line on stdin, runs its study, writes
{"seconds": s, "trials": n, "found": whether there is a best value} and ends. Seconds are those of the one call that
runs the study, from before it is made until it has returned; loading the library came before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Given(NamedTuple):
    """The budget, what one trial takes, and in how many steps; no steps: a plain function."""

    budget: float
    trial_seconds: float
    steps: int

    @classmethod
    def read(cls) -> Given:
        """From the command line: BUDGET TRIAL_SECONDS STEPS."""
        return cls(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))

    def value(self, x: float) -> float:
        """A plain trial: it sleeps."""
        time.sleep(self.trial_seconds)
        return x * x

    def values(self, x: float) -> Iterator[float]:
        """The same step by step."""
        for step in range(1, self.steps + 1):
            time.sleep(self.trial_seconds / self.steps)
            yield x * x + 1.0 / step


class Ran(NamedTuple):
    """What came of a study: trials that ran to their end, and whether it has a best value."""

    trials: int
    found: bool


def serve(study: Callable[[], Ran], versions: dict[str, str], import_seconds: float) -> None:
    """Run the study, timed, when the driver says so."""
    emit({"ready": versions, "import_seconds": import_seconds})
    if not sys.stdin.readline():
        return
    began = time.perf_counter()
    ran = study()
    emit({"seconds": time.perf_counter() - began, **ran._asdict()})


def emit(event: dict[str, Any]) -> None:
    """Write one JSON line for the driver."""
    print(json.dumps(event), flush=True)
