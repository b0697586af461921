"""One study of the experiment: how long its evaluations are, what they do, and what was seen of them.

An evaluation keeps a processor busy until its time is over, and leaves word of when it began and ended in a file: by a
clock that all processes share, read inside the objective, so no system is asked how busy it was.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

BOUNDS = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (-1.0, 1.0)}


@dataclass(frozen=True)
class Given:
    """A budget, and how long one evaluation takes, in seconds."""

    budget: float
    evaluation: float


@dataclass(frozen=True)
class Objective:
    """Computes for a while, and notes when."""

    seconds: float
    path: str

    def __call__(self, config: dict[str, Any]) -> float:
        began = time.monotonic()
        while time.monotonic() < began + self.seconds:
            pass
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{began!r} {time.monotonic()!r}\n".encode())
        os.close(file)
        x, y, z = (config[name] for name in BOUNDS)
        return float((x - 0.3) ** 2 + (y - 0.7) ** 2 + 0.5 * (z - x) ** 2)


@dataclass(frozen=True)
class Busy:
    """What was seen: evaluations, the share of the time from the first one's beginning to the last one's end in which
    one ran, and the median of the seconds between them."""

    evaluations: int
    share: float
    wait: float


def busy(lines: list[str]) -> Busy:
    stretches = sorted(tuple(map(float, line.split())) for line in lines)
    spent = sum(end - began for began, end in stretches)
    waits = [later[0] - earlier[1] for earlier, later in pairwise(stretches)]
    return Busy(len(stretches), spent / (stretches[-1][1] - stretches[0][0]), median(waits))


def serve(run: Callable[[Given, Objective], dict[str, Any]]) -> None:
    """Run the study that the arguments of this process describe; print what was seen as one line of JSON."""
    given = Given(**json.loads(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        objective = Objective(given.evaluation, str(Path(folder) / "log"))
        versions = run(given, objective)
        seen = busy(Path(objective.path).read_text().splitlines())
    print(json.dumps({**asdict(seen), "versions": versions}))
