"""How well the ends of curves are predicted, by each model; finished tasks lie in benchmarks/cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.fingerprints import SOURCE, code_hash, module_file
from benchmarks.common.kept_runs import once
from benchmarks.extrapolation.models import FITTED, LEARNED, METHODS, Guess, fitted_guesses, network_guesses
from benchmarks.extrapolation.scenes import Scene, Setting, scene_of
from benchmarks.extrapolation.tasks import Task
from farthing.policies.bapi import BAPI
from farthing.surrogates.curves import network

Array = NDArray[np.float64]

CUT, NEW = 0, 1  # trainings that were begun and cut, configurations that were not begun
ERROR, COVERAGE, DENSITY = 0, 1, 2
LEAST_DENSITY = -10.0  # of a log density, so that no curve decides alone

MAIN = Setting(20, 3, 0.2)
SHARES = {"first tenth": Setting(20, 3, 0.1), "first fifth": MAIN, "first half": Setting(20, 3, 0.5)}
MORE = (Setting(20, 10, 0.2), MAIN, Setting(10, 2, 0.2), Setting(20, 0, 0.2))


@dataclass(frozen=True, eq=False)
class Group:
    """Tasks whose scores are averaged, with the number of draws of runs of each, and settings."""

    title: str
    tasks: Sequence[Task]
    seeds: int
    settings: Sequence[Setting] = tuple(SHARES.values())


@dataclass(frozen=True, eq=False)
class Scores:
    """Of one setting, (tasks, seeds, methods, 2, 3): of cut trainings and of configurations not begun,

    errors     mean absolute errors by the spread of final values
    coverage   the share of final values in the 90 % interval
    density    mean log density of final values in units of their spread, each at least LEAST_DENSITY

    NaN where a method has none.
    """

    cells: Array

    def of(self, method: str, measure: int, part: int = CUT) -> Array:
        """(tasks, seeds)"""
        return np.asarray(self.cells[:, :, METHODS.index(method), part, measure])

    def mean(self, method: str, measure: int, part: int = CUT) -> float:
        return float(self.of(method, measure, part).mean())

    def error(self, method: str) -> float:
        return self.mean(method, ERROR)

    def covered(self, method: str) -> float:
        return self.mean(method, COVERAGE)

    def ratio(self, method: str, other: str) -> tuple[float, float]:
        """Of the errors of cut trainings, and one standard error of it over the tasks."""
        ours, theirs = (self.of(name, ERROR).mean(axis=1) for name in (method, other))
        logs = np.log(ours / theirs)
        whole = float(ours.mean() / theirs.mean())
        return whole, whole * float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0

    @classmethod
    def pooled(cls, several: Sequence[Scores]) -> Scores:
        """The mean of several settings, task by task and seed by seed."""
        return cls(np.mean([one.cells for one in several], axis=0))


def scores_of(group: Group, setting: Setting) -> Scores:
    print(f"{group.title}: {setting.title}, {setting.share:.0%} of the others", flush=True)
    return Scores(np.array([task_cells(task, group, setting) for task in group.tasks]))


def task_cells(task: Task, group: Group, setting: Setting) -> Array:
    """(seeds, methods, 2, 3). The network's are kept apart from the others', which other weights do not change."""
    seed_of = int.from_bytes(hashlib.sha256(f"{group.title} {task.title}".encode()).digest()[:4], "big")

    def made(methods: Sequence[str], guesses: Callable[[Scene, np.random.Generator], Mapping[str, Guess]]) -> Any:
        rows = []
        for seed in range(group.seeds):
            rng = np.random.default_rng([seed, seed_of, setting.runs, setting.complete, round(1e3 * setting.share)])
            scene = scene_of(task, setting, rng)
            found = guesses(scene, rng)
            rows.append([cells_of(found.get(method), scene, task.spread).tolist() for method in methods])
        return rows

    title = f"extrapolation-{group.title}-{task.title}-{setting.runs}-{setting.complete}-{setting.share:g}"
    name = title.replace("/", "-").replace(" ", "-")
    key = [seed_of, group.seeds, setting.runs, setting.complete, setting.share, _content(task)]
    fitted = once(f"{name}-fitted", [*key, _fitted_code()], lambda: made(FITTED, fitted_guesses))
    learned = once(
        f"{name}-network", [*key, _network_code()],
        lambda: made(LEARNED, lambda scene, rng: network_guesses(scene)),
    )  # fmt: skip
    return np.concatenate([np.array(fitted, dtype=np.float64), np.array(learned, dtype=np.float64)], axis=1)


def cells_of(guess: Guess | None, scene: Scene, spread: float) -> Array:
    """(2, 3)"""
    if guess is None:
        return np.full((2, 3), np.nan)
    error = np.abs(guess.value - scene.final) / spread
    covered = np.where(np.isnan(guess.low), np.nan, (guess.low <= scene.final) & (scene.final <= guess.high))
    density = np.maximum(guess.log_density + np.log(spread), LEAST_DENSITY)
    each = np.stack([error, covered, density])  # (3, c + k)
    cut = len(scene.cut)
    return np.array([each[:, :cut].mean(axis=1), each[:, cut:].mean(axis=1)])


# -- what kept results depend on ---------------------------------------------------------------------------------------

OF_NETWORK = ("network.py", "tokens.py")


def _content(task: Task) -> str:
    joined = hashlib.sha256()
    for array in (task.X, task.groups, task.Y):
        joined.update(np.ascontiguousarray(array).tobytes())
    return joined.hexdigest()[:16]


def _own_code() -> str:
    return code_hash(module_file(f"extrapolation.{name}") for name in ("scenes", "models", "scores"))


def gp_files() -> list[Path]:
    """The code of Gaussian processes over curves."""
    files = (path for folder in ("surrogates", "numerics") for path in sorted((SOURCE / folder).rglob("*.py")))
    return [path for path in files if path.name not in OF_NETWORK and "cost" not in path.parts]


def _fitted_code() -> str:
    """Of the models but the network. Policies may change, but for what `bapi` says of its model."""
    policy = BAPI()
    return f"{_own_code()} {code_hash(gp_files())} {policy.kernel} {policy.monotone}"


def _network_code() -> str:
    files = [SOURCE / "surrogates" / "curves" / name for name in OF_NETWORK]
    return f"{_own_code()} {code_hash(files)} {network.weights().checksum}"
