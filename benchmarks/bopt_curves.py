"""Real learners that train step by step, live: `bopt`, which pauses and completes, beside `ei` on complete trainings.

    python benchmarks/bopt_curves.py                     writes docs/bopt-curves.md and docs/data/bopt-curves.json
    python benchmarks/bopt_curves.py --mnist FILE.npz    also on 15,000 rows of MNIST (X, y); else fetched from OpenML
                                                         with --mnist fetch
    QUICK=1 python benchmarks/bopt_curves.py             one learner, two seeds; prints only

Cost is the processor time of a step, value the error on a validation half. Both policies start from the same four
configurations with the same seed. Two processes, one thread each. Finished runs are kept in benchmarks/cache, under the
code of the policies, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import time
import warnings

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from bopt_synthetic_runs import CACHE, code_of, sources
from documents import machine, machine_text, table, verdict, write
from farthing.policies import policy_as_json
from farthing.policies.bopt.policy import PAPER

Array = NDArray[Any]
Data = tuple[Array, Array, Array, Array]  # X, y to train on, and to validate
Curve = list[tuple[float, float]]  # seconds spent, best error by then

SEEDS = 5
FIRST = 4
BAR = 0.5
POLICIES: dict[str, ft.policies.Policy] = {
    "ei": ft.policies.EI(),
    "bopt": ft.policies.BOPT(),
}
OPTIONS: dict[str, ft.policies.Policy] = {  # of `bopt`, on the quickest learner only
    "as in the paper": ft.policies.BOPT(**PAPER),
    'surrogate="dgp"': ft.policies.BOPT(surrogate="dgp"),
    'bias="lognormal"': ft.policies.BOPT(bias="lognormal"),
    "rho=None": ft.policies.BOPT(rho=None),
    "per_cost=True": ft.policies.BOPT(per_cost=True),
    "joint=True": ft.policies.BOPT(joint=True),
}

MEASURED = ("digits", "sgd")  # with all options

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
STEPS = {
    "digits": {"sgd": 60, "mlp": 40, "boosting": 30},
    "mnist": {"sgd": 30, "mlp": 20, "boosting": 15},
}
SECONDS = {
    "digits": {"sgd": 6.0, "mlp": 30.0, "boosting": 45.0},
    "mnist": {"sgd": 45.0, "mlp": 120.0, "boosting": 150.0},
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


def searched(
    learner: str, data: Data, policy: ft.policies.Policy, seed: int, steps: int, seconds: float
) -> Curve:  # fmt: skip
    """Seconds spent and the best error by then, for every step in the order in which they were trained."""
    space, seen, best = SPACES[learner], [], [0.0, np.inf]

    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        step = LEARNERS[learner](config, data)
        for _ in range(steps):
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
        train, space, ft.Budget(cost=seconds), policy=policy, seed=seed, max_steps=steps,
        start=[proposal.config for proposal in start], progress=False,
    )  # fmt: skip
    return seen


def reached(curve: Curve, value: float) -> float:
    """Seconds after which an error as low was there."""
    return next((spent for spent, best in curve if best <= value), np.inf)


@dataclass(frozen=True)
class Task:
    data: str
    where: str  # of MNIST
    learner: str
    policy: str
    seed: int

    @property
    def place(self) -> tuple[str, str]:
        return self.data, self.learner

    @property
    def seconds(self) -> float:
        return SECONDS[self.data][self.learner]

    def __str__(self) -> str:
        return f"{self.learner} on {self.data}, {self.policy}, seed {self.seed}"

    @property
    def kept_at(self) -> Path:
        policy = policy_as_json({**POLICIES, **OPTIONS}[self.policy])
        code = "".join(map(code_of, [Path(__file__), *sources([f"policies.{policy['name']}"])]))
        key = json.dumps([self.data, self.learner, policy, self.seed, code])
        return CACHE / f"bopt-curves-{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"


def run(task: Task) -> Curve:
    path = task.kept_at
    if path.exists():
        return [(spent, best) for spent, best in json.loads(path.read_text())]
    data = digits() if task.data == "digits" else mnist(task.where)
    policy, steps = {**POLICIES, **OPTIONS}[task.policy], STEPS[task.data][task.learner]
    curve = searched(task.learner, data, policy, task.seed, steps, task.seconds)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(curve))
    return curve


def measured(tasks: list[Task]) -> dict[Task, Curve]:
    found = {}
    with ProcessPoolExecutor(2) as pool:
        for task, curve in zip(tasks, pool.map(run, tasks), strict=True):
            found[task] = curve
            print(f"{len(found)}/{len(tasks)} {task}: {curve[-1][1]:.4f}", flush=True)
    return found


def compared(curves: dict[Task, Curve], policy: str, blind: Task) -> tuple[float, float, float, float]:
    """Seconds to the best of `ei` over those it needed and over its budget; the errors at the end of both."""
    theirs, ours = curves[blind], curves[replace(blind, policy=policy)]
    value = theirs[-1][1]
    spent = min(reached(ours, value), blind.seconds)
    return spent / reached(theirs, value), spent / blind.seconds, value, ours[-1][1]


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

## Options

SGD on digits: medians of the share of the budget of `ei` after which its best was reached, and means of the errors at
the end in units of the one `ei` had (below 1: better).

{options}

{machine}

Reproduce with `make bench-bopt-curves`{how}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", default="", help="a file with X and y, or: fetch")
    arguments = parser.parse_args()
    names = ["digits", *(["mnist"] if arguments.mnist and not quick() else [])]
    learners, seeds = (["sgd"], 2) if quick() else (list(LEARNERS), SEEDS)
    blinds = [Task(d, arguments.mnist, m, "ei", seed) for d, m, seed in product(names, learners, range(seeds))]
    others = [*POLICIES, *([] if quick() else OPTIONS)]
    tasks = [replace(task, policy=p) for p in others for task in blinds if p in POLICIES or task.place == MEASURED]
    curves = measured(tasks)
    rows, data = [], {}
    for name, learner in dict.fromkeys(task.place for task in blinds):
        here = [task for task in blinds if task.place == (name, learner)]
        found = np.array([compared(curves, "bopt", task) for task in here])
        data[f"{name} {learner}"] = found.round(5).tolist()
        share, whole, value, own_value = np.median(found, axis=0)
        rows.append([f"{learner} on {name}", f"{share:.2f}", f"{whole:.2f}", f"{value:.4f}", f"{own_value:.4f}"])
    needs, wholes, *_ = np.median([compared(curves, "bopt", task) for task in blinds], axis=0)
    facts = machine()
    text = PAGE.format(
        first=FIRST, seeds=seeds, bar=BAR, how=" (with `MNIST=fetch` also on MNIST)",
        options=options_table(curves, blinds),
        table=table(["medians", "share of what `ei` needed", "of its budget", "error of `ei`", "of `bopt`"], rows),
        whole=f"{wholes:.2f}, {verdict(wholes <= BAR)}", need=f"{needs:.2f}, {verdict(needs <= BAR)}",
        machine=machine_text(facts, {"farthing": {"numpy": np.__version__}}),
    )  # fmt: skip
    if quick():
        print("\n" + text)
        return
    write("bopt-curves", text, {"machine": facts, "columns": ["share", "of_budget", "ei", "bopt"], "runs": data})


def options_table(curves: dict[Task, Curve], blinds: list[Task]) -> str:
    rows = []
    for policy in ("bopt", *OPTIONS):
        pairs = [task for task in blinds if task.place == MEASURED and replace(task, policy=policy) in curves]
        if pairs:
            found = np.array([compared(curves, policy, task) for task in pairs])
            ratio = found[:, 3] / np.maximum(found[:, 2], 1e-4)
            error = ratio.std(ddof=1) / np.sqrt(len(ratio))
            rows.append([f"`{policy}`", f"{np.median(found[:, 1]):.2f}", f"{ratio.mean():.3f} ± {error:.3f}"])
    return table(["", "share of the budget of `ei`", "error over that of `ei`"], rows)


if __name__ == "__main__":
    main()
