"""Searches of scikit-learn under a budget of seconds: FarthingSearchCV and its peers.

    python -m benchmarks.sklearn_search.peers.search_peer < tasks.jsonl

A child answers each JSON task with a line:

    {"task": "boosting", "method": "random", "searched": false, "seed": 0, "budget": 20.0}
    {"improved": [[seconds, score], ...], "candidates": 17, "held_out": -0.4, "ended": 20.1, "versions": {...}}

`improved` are the best mean scores over all folds and when they were known. The search runs in a process of its own
that has all libraries loaded; it is killed a moment after the budget if it goes on, and what is later than the budget
does not count. `searched`: peers search the number of iterations too. `held_out` is the score on rows that the search
did not have, of the best configuration, fitted again to all rows that it had.
"""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna_integration import OptunaSearchCV
from scipy.stats import randint
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import get_scorer
from sklearn.model_selection import HalvingRandomSearchCV, RandomizedSearchCV

import farthing as ft
from benchmarks.sklearn_search.peers.task import TASKS, Found, Scorer, Task, found, mark

VERSIONS = {name: version(name) for name in ("scikit-learn", "optuna", "optuna-integration", "numpy", "scipy")}
GRACE_SECONDS = 2.0  # to end by itself
HELD_OUT_SECONDS = 120.0
MANY = 1000  # candidates of a random search: more than it can fit
FACTOR = 3
LEAST_ITERATIONS = 5

Asked = dict[str, Any]


def space_of(task: Task, asked: Asked) -> dict[str, Any]:
    """What is searched; with the number of iterations if peers are to choose it."""
    if asked["searched"] and task.iterations:
        return {**task.space, task.iterations: randint(LEAST_ITERATIONS, task.most + 1)}
    return dict(task.space)


def distribution(thing: Any) -> Any:
    """What Optuna calls it."""
    if isinstance(thing, list):
        return CategoricalDistribution(thing)
    low, high = thing.support()
    if thing.dist.name == "randint":
        return IntDistribution(int(low), int(high))
    return FloatDistribution(float(low), float(high), log=thing.dist.name == "loguniform")


# -- methods: each searches until it is killed or its budget is spent -----------------------------------------------


def by_farthing(task: Task, asked: Asked, common: dict[str, Any], X: Any, y: Any) -> None:
    options = {"skip": {"skip_folds": True}, "whole": {"iterative": False}}.get(asked["method"].partition("-")[2], {})
    budget = ft.Budget(seconds=asked["budget"])
    ft.FarthingSearchCV(
        task.estimator, space_of(task, asked), budget=budget, random_state=asked["seed"], **common, **options
    ).fit(X, y)


def by_random(task: Task, asked: Asked, common: dict[str, Any], X: Any, y: Any) -> None:
    seed = asked["seed"]
    while True:
        RandomizedSearchCV(task.estimator, space_of(task, asked), n_iter=MANY, random_state=seed, **common).fit(X, y)
        seed += 1_000


def by_halving(task: Task, asked: Asked, common: dict[str, Any], X: Any, y: Any) -> None:
    resource: dict[str, Any] = {"resource": "n_samples"}
    if task.iterations:
        resource = {"resource": task.iterations, "max_resources": task.most}
    seed = asked["seed"]
    while True:
        HalvingRandomSearchCV(
            task.estimator, dict(task.space), n_candidates=task.candidates, factor=FACTOR, min_resources="exhaust",
            random_state=seed, **resource, **common,
        ).fit(X, y)  # fmt: skip
        seed += 1_000


def by_optuna(task: Task, asked: Asked, common: dict[str, Any], X: Any, y: Any) -> None:
    space = {name: distribution(thing) for name, thing in space_of(task, asked).items()}
    OptunaSearchCV(
        task.estimator, space, n_trials=None, timeout=asked["budget"], random_state=asked["seed"], **common
    ).fit(X, y)


METHODS = {"farthing": by_farthing, "random": by_random, "halving": by_halving, "optuna": by_optuna}


# -- one task ----------------------------------------------------------------------------------------------------------


def in_child(function: Callable[[], None], began: Path, budget: float) -> float:
    """Run a function in a process group of its own until it ends or a moment after its budget, which begins when the
    file does; the seconds it took."""
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    while process.is_alive() and not began.exists():
        process.join(0.01)
    start = time.monotonic()
    process.join(budget + GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
    process.join()
    return time.monotonic() - start


def search(asked: Asked, log: Path, began: Path) -> None:
    """The process that searches."""
    os.setsid()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the answers are alone there
    warnings.simplefilter("ignore")  # networks that have not converged are part of the game
    task, seed = TASKS[asked["task"]], asked["seed"]
    X, _, y, _ = task.split(seed)
    names = (*task.space, *([task.iterations] if task.iterations else []))
    common = {
        "scoring": Scorer(task.scoring, str(log), names), "cv": task.folds(seed), "refit": False, "n_jobs": 1,
    }  # fmt: skip
    began.write_text(str(time.monotonic()))
    METHODS[asked["method"].partition("-")[0]](task, asked, common, X, y)


def held_out(asked: Asked, best: Found, result: Path) -> None:
    """The score of the best configuration on rows that no search had, to a file."""
    os.setsid()
    warnings.simplefilter("ignore")
    task = TASKS[asked["task"]]
    X, X_held_out, y, y_held_out = task.split(asked["seed"])
    config = {name: ast.literal_eval(value) for name, value in best.config.items()}
    if task.iterations and asked["method"] == "farthing" and best.trained:
        config[task.iterations] = best.trained  # the step that was best
    estimator = clone(task.estimator).set_params(**config).fit(X, y)
    result.write_text(str(float(get_scorer(task.scoring)(estimator, X_held_out, y_held_out))))


def answer(asked: Asked) -> dict[str, Any]:
    """Search, and say what was found when."""
    task = TASKS[asked["task"]]
    with tempfile.TemporaryDirectory() as name:
        log, began, result = (Path(name) / part for part in ("log", "began", "result"))
        seconds = in_child(lambda: search(asked, log, began), began, asked["budget"])
        X, _, y, _ = task.split(asked["seed"])
        marks = [mark(X[test]) for _, test in task.folds(asked["seed"]).split(X, y)]
        known = found(str(log), float(began.read_text()), marks, list(space_of(task, asked)))
        candidates = [one for one in known if one.seconds <= asked["budget"]]
        improved: list[Found] = []
        for one in candidates:
            if not improved or one.score > improved[-1].score:
                improved.append(one)
        if improved:
            in_child(lambda: held_out(asked, improved[-1], result), result, HELD_OUT_SECONDS)
        return {
            "improved": [[round(one.seconds, 4), one.score] for one in improved],
            "candidates": len(candidates),
            "configs": len({json.dumps(one.config, sort_keys=True) for one in candidates}),
            "best": dict(improved[-1].config) if improved else None,
            "held_out": float(result.read_text()) if result.exists() else None,
            "ended": round(seconds, 3),
            "versions": VERSIONS,
        }


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    os.environ["PYTHONWARNINGS"] = "ignore"
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
