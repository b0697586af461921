"""One study of the experiment: what it is, what its objective does, and what was seen of it.

An objective trains again and again until its time is over, and leaves word of when it began and ended in a file: by a
clock that all processes share, read inside the objective, so no system is asked how busy it was.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import get_native_id
from typing import Any

EVALUATION_SECONDS = 0.5
STEPS = 5  # of one that trains step by step
WORTHLESS = 1e6

MODULES = {"scikit-learn": "scikit_learn", "XGBoost": "xgboost", "PyTorch": "pytorch"}
PACKAGES = {"scikit-learn": "scikit-learn", "XGBoost": "xgboost-cpu", "PyTorch": "torch"}


@dataclass(frozen=True)
class Study:
    """A library, whether its objective trains step by step, and how the study is run."""

    library: str
    steps: bool
    policy: str
    workers: int
    seconds: float


@dataclass(frozen=True)
class Log:
    """A file of times, to which every process appends lines."""

    path: str

    def note(self, what: str) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{get_native_id()} {what} {time.monotonic()!r}\n".encode())
        os.close(file)


@dataclass(frozen=True)
class Objective:
    """Trains for half a second, at once or in steps."""

    fitted: Callable[[dict[str, Any]], float]
    log: Log

    @classmethod
    def of(cls, library: str, folder: str) -> Objective:
        """That of a library, which is imported here, as a script does before it begins to tune."""
        module = import_module(f"benchmarks.start.objectives.{MODULES[library]}")
        return cls(module.fitted, Log(str(Path(folder) / "log")))

    def __call__(self, config: dict[str, Any]) -> float:
        return self._trained(config, EVALUATION_SECONDS)

    def in_steps(self, config: dict[str, Any]) -> Iterator[float]:
        for _ in range(STEPS):
            yield self._trained(config, EVALUATION_SECONDS / STEPS)

    def _trained(self, config: dict[str, Any], seconds: float) -> float:
        self.log.note("began")
        until = time.monotonic() + seconds
        value = WORTHLESS
        while time.monotonic() < until:
            value = self.fitted(config)
        self.log.note("ended")
        return value


@dataclass(frozen=True)
class Busy:
    """What was seen of a study: complete evaluations, and how much of the time of its workers went into evaluations,
    from the second one on; the seconds until the first began."""

    evaluations: int
    share: float
    first_seconds: float


def busy(lines: list[str], study: Study, began: float) -> Busy:
    """From the notes of an objective. The study ends with its budget: what is late is not counted."""
    end = began + study.seconds
    stretches, unfinished = stretches_of(lines)
    whole = STEPS if study.steps else 1
    complete = sum(stop <= end for _, stop in stretches) / whole
    stretches += [(start, end) for start in unfinished]
    stretches = sorted((start, min(stop, end)) for start, stop in stretches if start < end)
    first = stretches[0][0]
    second = stretches[min(whole, len(stretches) - 1)][0] if study.workers == 1 else _second(stretches)
    spent = sum(stop - max(start, second) for start, stop in stretches if stop > second)
    return Busy(int(complete), spent / (study.workers * (end - second)), first - began)


def stretches_of(lines: list[str]) -> tuple[list[tuple[float, float]], list[float]]:
    """When evaluations, or steps of them, began and ended; and when those began that never did."""
    open_since, stretches = dict[str, float](), list[tuple[float, float]]()
    for line in lines:
        thread, what, text = line.split()
        if what == "began":
            open_since[thread] = float(text)
        elif thread in open_since:
            stretches.append((open_since.pop(thread), float(text)))
    return stretches, list(open_since.values())


def _second(stretches: list[tuple[float, float]]) -> float:
    """When a second stretch began beside the first."""
    return stretches[min(1, len(stretches) - 1)][0]


def serve(run: Callable[[Study, Objective], dict[str, Any]]) -> None:
    """Run the study that the arguments of this process describe; print what was seen as one line of JSON."""
    study = Study(**json.loads(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        objective = Objective.of(study.library, folder)
        began = time.monotonic()
        more = run(study, objective)
        took = time.monotonic() - began
        seen = busy(Path(objective.log.path).read_text().splitlines(), study, began)
    found = {study.library: version(PACKAGES[study.library])}
    print(json.dumps({**asdict(seen), "took": took, "versions": found, **more}))
