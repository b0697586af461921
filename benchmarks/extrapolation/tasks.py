"""Training curves whose ends are predicted: of LCBench, of live networks, random ones, and recorded ones by kind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.environments import run_module
from benchmarks.common.fingerprints import code_hash, module_file
from benchmarks.common.kept_runs import once
from benchmarks.curves.sets import RecordedSet, recorded_kinds, sets_of
from benchmarks.extrapolation.mlp_curves import mlp_curves
from benchmarks.extrapolation.random_curves import SHAPES, random_curves

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

# The tasks of later benchmarks; details of the model were chosen on other tasks of LCBench.
LCBENCH_TASKS = (3945, 7593, 126026, 126029, 146212, 167104, 167152, 167161, 167181, 167184, 167190, 167200)
DRAWN = 300  # configurations per task of LCBench
LIVE = 40  # per data set of the live networks
RANDOM = 60  # per task of random curves
PER_SHAPE = 2  # tasks of random curves


@dataclass(frozen=True, eq=False)
class Task:
    """Complete training curves: X (m, f) in the unit cube, the hyperparameter of each of its columns, and what was
    reported, Y (m, T)."""

    title: str
    X: Array
    groups: Ints
    Y: Array

    @property
    def running(self) -> Array:
        """(m, T) the best values so far, to be minimised."""
        return np.asarray(np.minimum.accumulate(self.Y, axis=1))

    @property
    def spread(self) -> float:
        """The standard deviation of final values."""
        return float(self.running[:, -1].std())


def plain(title: str, X: Array, Y: Array) -> Task:
    """A task whose columns are one hyperparameter each."""
    return Task(title, X, np.arange(X.shape[1]), Y)


def lcbench_tasks(folder: Path, tasks: Sequence[int] = LCBENCH_TASKS) -> list[Task]:
    """Curves of random configurations, drawn by a child that has onnxruntime."""
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "curves.npz"
        run_module("lcbench", "common.lcbench", folder.resolve(), target, DRAWN, 0, *tasks)
        drawn = np.load(target)
        return [plain(str(task), drawn[f"X_{task}"], drawn[f"Y_{task}"].astype(np.float64)) for task in tasks]


def live_tasks(count: int) -> list[Task]:
    """Trained once, then kept."""

    def trained() -> list[tuple[str, list[list[float]], list[list[float]]]]:
        return [(name, X.tolist(), Y.tolist()) for name, X, Y in mlp_curves(count)]

    key = [count, code_hash([module_file("extrapolation.mlp_curves")]), version("scikit-learn")]
    return [plain(name, np.array(X), np.array(Y)) for name, X, Y in once("extrapolation-live-curves", key, trained)]


def random_tasks() -> list[Task]:
    """Of each shape, with 1 to 5 hyperparameters and with noise of one of three sizes."""
    return list(_random_tasks())


def _random_tasks() -> Iterator[Task]:
    for i, shape in enumerate(SHAPES):
        for j in range(PER_SHAPE):
            rng = np.random.default_rng([9, i, j])
            R = rng.random((RANDOM, int(rng.integers(1, 6))))
            yield plain(f"{shape.replace(' ', '-')}-{j}", R, random_curves(rng, R, [shape]))


def recorded_tasks() -> dict[str, list[Task]]:
    """By kind, the recorded sets that judge; those that defaults are chosen on are left out."""
    judging = {kind: [one for one in sets_of(kind).values() if not one.is_for_choosing] for kind in recorded_kinds()}
    return {kind: [_recorded(one) for one in found] for kind, found in judging.items() if found}


def _recorded(one: RecordedSet) -> Task:
    """Without the trainings that failed: they have no end."""
    widths = [len(described.get("choices", [None])) for described in one.space]
    complete = np.isfinite(one.values).all(axis=1)
    groups = np.repeat(np.arange(len(widths)), widths)
    return Task(one.name, one.places[complete], groups, one.values[complete])
