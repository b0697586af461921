"""How well the ends of curves are predicted from their first 20 %."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.common.environments import run_module
from farthing.surrogates import gp
from farthing.surrogates.curves import monotone
from farthing.surrogates.curves.monotone import Curves
from farthing.surrogates.curves.paths import Mixture
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.unconstrained import CurveGP

Array = NDArray[np.float64]

# The tasks of later benchmarks; details of the model were chosen on other tasks of LCBench.
TASKS = (3945, 7593, 126026, 126029, 146212, 167104, 167152, 167161, 167181, 167184, 167190, 167200)
DRAWN = 300  # configurations per task of LCBench
CUT = 0.2
SETTINGS = ((20, 10), (20, 3), (10, 2), (20, 0))  # runs, of which complete
LEAST_ERROR = 1e-3  # below, logarithms would tell noise apart
REACH = float(ndtri(0.95))  # of a 90 % interval


@dataclass(frozen=True)
class Task:
    """Curves as the running best: X (m, f) in the unit cube, Y (m, T)."""

    title: str
    X: Array
    Y: Array


@dataclass(frozen=True)
class Scene:
    """What is observed, t in steps, and what is asked: the last values of the runs that were cut."""

    X: Array
    t: Array
    y: Array
    t_max: int
    asked: Array
    last: Array
    final: Array


@dataclass(frozen=True)
class Guess:
    """Final values of the cut runs, and the ends of their 90 % intervals where there are any."""

    value: Array
    low: Array | None = None
    high: Array | None = None


def points_of(end: int) -> Array:
    """The points, at most three, of a curve of `end` steps that the surrogate gets."""
    return np.unique([max(end // 4, 1), max(end // 2, 1), end])


def scene_of(task: Task, runs: int, complete: int, rng: np.random.Generator) -> Scene:
    chosen, t_max = rng.choice(len(task.X), runs, replace=False), task.Y.shape[1]
    cut = int(CUT * t_max)
    pairs = [(row, at) for i, row in enumerate(chosen) for at in points_of(t_max if i < complete else cut)]
    of, t = np.array(pairs).T
    short = chosen[complete:]
    observed = task.X[of], t.astype(np.float64), task.Y[of, t - 1]
    return Scene(*observed, t_max, task.X[short], task.Y[short, cut - 1], task.Y[short, -1])


def normal_guess(mean: Array, variance: Array) -> Guess:
    reach = REACH * np.sqrt(variance)
    return Guess(mean, mean - reach, mean + reach)


def plain_guess(model: CurveGP, scene: Scene) -> Guess:
    mean, variance = model.predict(scene.asked, np.full(len(scene.asked), float(scene.t_max)))
    return normal_guess(mean, variance + model.noise)


def falling_guess(curves: Curves, scene: Scene) -> Guess:
    parts = curves.paths.at(scene.asked, np.full(len(scene.asked), float(scene.t_max)))
    seen = Mixture(parts.weights, parts.means, parts.variance + curves.plain.noise)
    return Guess(seen.moments()[0], seen.quantiles(0.05), seen.quantiles(0.95))


def ordinary_guess(scene: Scene) -> Guess:
    """The exact Gaussian process that the other policies use, with time as one more input."""
    model = gp.fit(np.column_stack([scene.X, scene.t / scene.t_max]), scene.y)
    mean, variance = model.predict(np.column_stack([scene.asked, np.ones(len(scene.asked))]))
    return normal_guess(mean, variance + model.noise)


def guesses(scene: Scene, rng: np.random.Generator) -> dict[str, Guess]:
    found = {"last value": Guess(scene.last), "plain GP": ordinary_guess(scene)}
    kernels: dict[str, TimeKernel] = {"decay": "decay", "rbf": "rbf"}
    for name, kernel in kernels.items():
        curves = monotone.fit(scene.X, scene.t, scene.y, t_max=scene.t_max, kernel=kernel, rng=rng)
        found[f"{name}, unconstrained"] = plain_guess(curves.plain, scene)
        found[f"{name}, monotone"] = falling_guess(curves, scene)
    found["decay, monotone, of logarithms"] = log_guess(scene, rng)
    return found


def log_guess(scene: Scene, rng: np.random.Generator) -> Guess:
    """The default on logarithms of the errors: curves that fall still do, and small errors are told apart."""
    y = np.log(np.maximum(scene.y, LEAST_ERROR))
    guess = falling_guess(monotone.fit(scene.X, scene.t, y, t_max=scene.t_max, rng=rng), scene)
    assert guess.low is not None
    assert guess.high is not None
    return Guess(np.exp(guess.value), np.exp(guess.low), np.exp(guess.high))


METHODS = (
    "last value", "plain GP", "rbf, unconstrained", "rbf, monotone",
    "decay, unconstrained", "decay, monotone", "decay, monotone, of logarithms",
)  # fmt: skip


@dataclass(frozen=True)
class Scores:
    """Of one setting: mean absolute errors by the spread of final values, and coverages, (tasks, seeds, methods)."""

    errors: Array
    coverage: Array

    def error(self, method: str) -> float:
        return float(self.errors[..., METHODS.index(method)].mean())

    def covered(self, method: str) -> float:
        return float(self.coverage[..., METHODS.index(method)].mean())

    def ratio(self, method: str, other: str) -> tuple[float, float]:
        """Of the errors, and one standard error of it over the tasks."""
        ours, theirs = (self.errors[..., METHODS.index(name)].mean(axis=1) for name in (method, other))
        logs = np.log(ours / theirs)
        whole = float(ours.mean() / theirs.mean())
        return whole, whole * float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0


def scores_of(tasks: Sequence[Task], runs: int, complete: int, seeds: int) -> Scores:
    errors, coverage = (np.zeros((len(tasks), seeds, len(METHODS))) for _ in range(2))
    for i, task in enumerate(tasks):
        spread = task.Y[:, -1].std()
        for seed in range(seeds):
            rng = np.random.default_rng([seed, i, runs, complete])
            scene = scene_of(task, runs, complete, rng)
            found = guesses(scene, rng)
            for j, method in enumerate(METHODS):
                guess = found[method]
                errors[i, seed, j] = np.abs(guess.value - scene.final).mean() / spread
                if guess.low is not None and guess.high is not None:
                    coverage[i, seed, j] = ((guess.low <= scene.final) & (scene.final <= guess.high)).mean()
    return Scores(errors, coverage)


def lcbench_tasks(folder: Path) -> list[Task]:
    """Curves of random configurations, drawn by a child that has onnxruntime."""
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "curves.npz"
        run_module("lcbench", "common.lcbench", folder.resolve(), target, DRAWN, 0, *TASKS)
        drawn = np.load(target)
        return [Task(str(task), drawn[f"X_{task}"], best_so_far(drawn[f"Y_{task}"])) for task in TASKS]


def best_so_far(Y: Array) -> Array:
    return np.asarray(np.minimum.accumulate(Y, axis=1))
