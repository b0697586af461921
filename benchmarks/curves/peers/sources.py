"""Where the curves of a task come from: a recorded set, `sgd/digits`, or the surrogate of LCBench, `lcbench/3945`.

A recorded set lists configurations, so what a method proposes is not trained itself. A new training is that of the
nearest listed configuration that the search has not begun: by Euclidean distance, where ranges are [0, 1] and two
different choices are 1 apart. When all have been begun, it is the nearest that was not trained to its end; that one is
trained again from its start, and paid for again. When all were trained to their ends, it is the nearest.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from benchmarks.common.described_spaces import Described, place
from benchmarks.curves.sets import RecordedSet, set_named

Config = Mapping[str, Any]

LCBENCH = "lcbench"  # the kind of its tasks


@dataclass
class Curve:
    """A training: the value and the cost of each step, and how many were trained. NaN is a failure."""

    values: Sequence[float]
    costs: Sequence[float]
    step: int = 0
    has_failed: bool = False

    @property
    def ahead(self) -> tuple[float, float]:
        """The value and the cost of the next step."""
        return float(self.values[self.step]), float(self.costs[self.step])

    @property
    def has_ended(self) -> bool:
        return self.has_failed or self.step == len(self.values)

    def advance(self) -> None:
        """The next step was trained, or failed."""
        self.has_failed = bool(np.isnan(self.values[self.step]))
        self.step += not self.has_failed


class Curves(Protocol):
    """What a search can train: configurations of a space, for up to `steps` steps each."""

    @property
    def space(self) -> Sequence[Described]: ...
    @property
    def steps(self) -> int: ...
    def begin(self, config: Config) -> Curve: ...


class RecordedCurves:
    """A recorded set during one search, which is what `begin` depends on."""

    def __init__(self, recorded: RecordedSet) -> None:
        self._recorded = recorded
        self._begun: dict[int, Curve] = {}  # by the number of the listed configuration; the last one if there were more
        self.space, self.steps = recorded.space, recorded.steps

    def begin(self, config: Config) -> Curve:
        listed = self._nearest(config)
        self._begun[listed] = Curve(self._recorded.values[listed], self._recorded.seconds[listed])
        return self._begun[listed]

    def _nearest(self, config: Config) -> int:
        distances = np.linalg.norm(self._recorded.places - place(self.space, config), axis=1)
        taken, over = np.zeros((2, len(distances)), dtype=bool)
        for listed, curve in self._begun.items():
            taken[listed], over[listed] = True, curve.has_ended
        if taken.all():
            taken = over & ~over.all()
        return int(np.argmin(np.where(taken, np.inf, distances)))


class Surrogate:
    """The surrogate of LCBench, a process of its own."""

    def __init__(self, python: str, folder: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.curves.peers.surrogate", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        described = json.loads((Path(folder) / "config_space.json").read_text())["hyperparameters"]
        self.space = [one for one in described if one["name"] not in ("OpenML_task_id", "epoch")]
        epochs = next(one for one in described if one["name"] == "epoch")
        self.steps = int(epochs["upper"])

    def curve(self, task: str, config: Config) -> Curve:
        plain = {one["name"]: float(config[one["name"]]) for one in self.space}
        self._process.stdin.write(json.dumps({"task": task, "configs": [plain]}) + "\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]
        found = json.loads(self._process.stdout.readline())  # type: ignore[union-attr]
        return Curve(found["values"][0], found["costs"][0])

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(timeout=20)


class SurrogateCurves:
    """A task of LCBench: any configuration can be trained, and one that is begun twice is trained twice."""

    def __init__(self, surrogate: Surrogate, task: str) -> None:
        self._surrogate, self._task = surrogate, task
        self.space, self.steps = surrogate.space, surrogate.steps

    def begin(self, config: Config) -> Curve:
        return self._surrogate.curve(self._task, config)


class Sources:
    """Gives the curves of tasks. The surrogate is started for the first task of LCBench."""

    def __init__(self, *surrogate: str) -> None:
        self._arguments = surrogate  # PYTHON FOLDER
        self._surrogate: Surrogate | None = None

    def curves(self, task: str) -> Curves:
        kind, _, name = task.partition("/")
        if kind != LCBENCH:
            return RecordedCurves(set_named(task))
        if self._surrogate is None:
            self._surrogate = Surrogate(*self._arguments)
        return SurrogateCurves(self._surrogate, name)

    def __enter__(self) -> Sources:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._surrogate is not None:
            self._surrogate.close()
