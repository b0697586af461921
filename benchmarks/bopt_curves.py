"""Real learners that train step by step, live: `bopt`, which pauses and completes, beside `ei` on complete trainings.

    python benchmarks/bopt_curves.py                     writes docs/bopt-curves.md and docs/data/bopt-curves.json
    python benchmarks/bopt_curves.py --mnist FILE.npz    also on 15,000 rows of MNIST (X, y); else fetched from OpenML
                                                         with --mnist fetch
    QUICK=1 python benchmarks/bopt_curves.py             one learner, two seeds; prints only

Cost is the processor time of a step, value the error on a validation half. Both policies start from the same four
configurations with the same seed. Two processes, one thread each.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import time
import warnings

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from documents import machine, machine_text, table, verdict, write

Array = NDArray[Any]
Data = tuple[Array, Array, Array, Array]  # X, y to train on, and to validate

SEEDS = 5
FIRST = 4
BAR = 0.5
POLICIES = ("ei", "bopt")

SPACES = {
    "sgd": ft.Space(
        alpha=ft.Real(1e-7, 1e-1, log=True), eta0=ft.Real(1e-4, 1.0, log=True),
        loss=ft.Choice(["hinge", "log_loss", "modified_huber"]), schedule=ft.Choice(["constant", "invscaling"]),
    ),
    "mlp": ft.Space(
        learning_rate=ft.Real(1e-5, 1e-1, log=True), alpha=ft.Real(1e-7, 1e-1, log=True),
        batch=ft.Integer(16, 256, log=True), units=ft.Integer(16, 256, log=True), layers=ft.Integer(1, 3),
    ),
    "boosting": ft.Space(
        learning_rate=ft.Real(1e-2, 1.0, log=True), leaves=ft.Integer(3, 63, log=True),
        least=ft.Integer(2, 64, log=True), ridge=ft.Real(1e-6, 10.0, log=True),
    ),
}  # fmt: skip
STEPS = {"sgd": 60, "mlp": 40, "boosting": 30}
SECONDS = {
    "digits": {"sgd": 6.0, "mlp": 30.0, "boosting": 45.0},
    "mnist": {"sgd": 90.0, "mlp": 240.0, "boosting": 300.0},
}


def digits() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return halves(X / 16.0, y)


def mnist(where: str) -> Data:
    """From a file with X and y, or from OpenML."""
    if where == "fetch":
        from sklearn.datasets import fetch_openml

        X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    else:
        with np.load(where, allow_pickle=False) as held:
            X, y = held["X"], held["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:15_000]
    return halves(X[rows].astype(np.float64) / 255.0, y[rows].astype(int))


def halves(X: Array, y: Array) -> Data:
    order = np.random.default_rng(0).permutation(len(X))
    half = len(X) // 2
    return X[order[:half]], y[order[:half]], X[order[half:]], y[order[half:]]


# -- learners ----------------------------------------------------------------------------------------------------------


def sgd(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.linear_model import SGDClassifier

    X, y, *_ = data
    model = SGDClassifier(
        loss=config["loss"], alpha=config["alpha"], learning_rate=config["schedule"], eta0=config["eta0"],
        random_state=0,
    )  # fmt: skip
    return lambda: model.partial_fit(X, y, classes=np.unique(y))


def mlp(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.neural_network import MLPClassifier

    X, y, *_ = data
    model = MLPClassifier(
        (config["units"],) * config["layers"], learning_rate_init=config["learning_rate"], alpha=config["alpha"],
        batch_size=config["batch"], random_state=0,
    )  # fmt: skip
    return lambda: model.partial_fit(X, y, classes=np.unique(y))


def boosting(config: dict[str, Any], data: Data) -> Callable[[], Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y, *_ = data
    model = HistGradientBoostingClassifier(
        learning_rate=config["learning_rate"], max_leaf_nodes=config["leaves"], min_samples_leaf=config["least"],
        l2_regularization=config["ridge"], max_iter=1, warm_start=True, early_stopping=False, random_state=0,
    )  # fmt: skip

    def step() -> Any:
        model.fit(X, y)
        model.max_iter += 1
        return model

    return step


LEARNERS: dict[str, Callable[[dict[str, Any], Data], Callable[[], Any]]] = {
    "sgd": sgd,
    "mlp": mlp,
    "boosting": boosting,
}


# -- runs --------------------------------------------------------------------------------------------------------------


def searched(learner: str, data: Data, policy: str, seed: int, seconds: float) -> list[tuple[float, float]]:
    """Seconds spent and the best error by then, for every step in the order in which they were trained."""
    space, seen, best = SPACES[learner], [], [0.0, np.inf]

    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        step = LEARNERS[learner](config, data)
        for _ in range(STEPS[learner]):
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = 1.0 - float(step().score(*data[2:]))
            taken = time.process_time() - began
            best[0], best[1] = best[0] + taken, min(best[1], error)
            seen.append((best[0], best[1]))
            yield {"value": error, "cost": taken}

    start = ft.Study(space, ft.Budget(cost=1.0), policy="sobol", seed=seed).ask(FIRST)
    ft.tune(
        train, space, ft.Budget(cost=seconds), policy=policy, seed=seed, max_steps=STEPS[learner],
        start=[proposal.config for proposal in start], progress=False,
    )  # fmt: skip
    return seen


def reached(curve: list[tuple[float, float]], value: float) -> float:
    """Seconds after which an error as low was there."""
    return next((spent for spent, best in curve if best <= value), np.inf)


def run(task: tuple[str, str, str, str, int, float]) -> list[tuple[float, float]]:
    name, where, learner, policy, seed, seconds = task
    return searched(learner, digits() if name == "digits" else mnist(where), policy, seed, seconds)


PAGE = """\
# Two levels of training on real learners

Learners of scikit-learn that train step by step, live: `bopt` beside `ei`, which trains every configuration completely.
Cost is the processor time of the steps, value the error on a validation half; both policies start from the same {first}
configurations with the same seed, {seeds} seeds. Share: the seconds after which `bopt` had an error as low as the best
of `ei`, over those that `ei` needed for it (and over its whole budget); where it never had, its whole budget counts.

{table}

The bar: as low as the best of `ei` at {bar:.0%} of its cost or less, by the median over learners and seeds.

- of all that `ei` spent: {whole}
- of what `ei` had spent when it found that value (with hindsight: it could have stopped there): {need}

{machine}

Reproduce with `make bench-bopt-curves`{how}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", default="", help="a file with X and y, or: fetch")
    arguments = parser.parse_args()
    names = ["digits", *(["mnist"] if arguments.mnist and not quick() else [])]
    learners, seeds = (["sgd"], 2) if quick() else (list(LEARNERS), SEEDS)
    tasks = [
        (name, arguments.mnist, learner, policy, seed, SECONDS[name][learner])
        for name in names for learner in learners for seed in range(seeds) for policy in POLICIES
    ]  # fmt: skip
    with ProcessPoolExecutor(2) as pool:
        curves = {}
        for task, curve in zip(tasks, pool.map(run, tasks), strict=True):
            curves[task[0], task[2], task[3], task[4]] = curve
            print(
                f"{len(curves)}/{len(tasks)} {task[0]} {task[2]} {task[3]} seed {task[4]}: {curve[-1][1]:.4f}",
                flush=True,
            )
    rows, shares, data = [], [], {}
    for name in names:
        for learner in learners:
            cells = []
            for seed in range(seeds):
                blind, own = (curves[name, learner, policy, seed] for policy in POLICIES)
                budget, value = SECONDS[name][learner], blind[-1][1]
                need, ours = reached(blind, value), min(reached(own, value), budget)
                cells.append((ours / need, ours / budget, value, own[-1][1]))
            found = np.array(cells)
            shares += found[:, :2].tolist()
            data[f"{name} {learner}"] = found.round(5).tolist()
            share, whole, value, own_value = np.median(found, axis=0)
            rows.append([f"{learner} on {name}", f"{share:.2f}", f"{whole:.2f}", f"{value:.4f}", f"{own_value:.4f}"])
    needs, wholes = (float(part) for part in np.median(np.array(shares), axis=0))
    facts = machine()
    text = PAGE.format(
        first=FIRST, seeds=seeds, bar=BAR, how=" (with `MNIST=fetch` also on MNIST)",
        table=table(["medians", "share of what `ei` needed", "of its budget", "error of `ei`", "of `bopt`"], rows),
        whole=f"{wholes:.2f}, {verdict(wholes <= BAR)}", need=f"{needs:.2f}, {verdict(needs <= BAR)}",
        machine=machine_text(facts, {"farthing": {"numpy": np.__version__}}),
    )  # fmt: skip
    if quick():
        print("\n" + text)
        return
    write("bopt-curves", text, {"machine": facts, "columns": ["share", "of_budget", "ei", "bopt"], "runs": data})


if __name__ == "__main__":
    main()
