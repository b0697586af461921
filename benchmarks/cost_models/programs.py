"""Learners whose fits are timed here: their spaces, and what their configurations take.

A fit is timed once, in a child process with one thread; the seconds are kept in benchmarks/cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from benchmarks.common.children import Child
from benchmarks.common.fingerprints import fingerprint
from benchmarks.common.kept_runs import once
from farthing.surrogates.cost.flops import phi_linear, phi_quad

Array = NDArray[np.float64]
Config = dict[str, Any]

TIMING = "cost_models.peers.timing"
SEED = 20_200
PROGRESS = 50  # fits between two lines on the screen


def counts_of(layers: Sequence[float], batch: float, epochs: float = 1.0) -> tuple[float, float, float, float]:
    """What training a dense network does: CArBO's two features, which come per sample, and two that come per update.

    The paper keeps the batch size fixed. Where it varies, the optimiser's own work (on every weight) and the overhead
    of calls (for every layer) come once per update, so 1 / batch times as often.
    """
    quad, linear = phi_quad(layers, epochs=epochs), phi_linear(layers, epochs=epochs)
    return quad, linear, quad / batch, epochs * len(layers) / batch


XGBOOST_SPACE = ft.Space(
    n_estimators=ft.Integer(4, 256, log=True),
    max_depth=ft.Integer(2, 10),
    learning_rate=ft.Real(0.01, 1.0, log=True),
    min_child_weight=ft.Real(1.0, 64.0, log=True),
    gamma=ft.Real(1e-6, 16.0, log=True),
    subsample=ft.Real(0.3, 1.0),
    colsample_bylevel=ft.Real(0.3, 1.0),
    reg_lambda=ft.Real(1e-3, 64.0, log=True),
)
FOREST_SPACE = ft.Space(
    n_estimators=ft.Integer(4, 128, log=True),
    max_depth=ft.Integer(2, 20),
    max_features=ft.Real(0.05, 1.0),
    min_samples_leaf=ft.Integer(1, 32, log=True),
    criterion=ft.Choice(["gini", "entropy"]),
    bootstrap=ft.Choice([True, False]),
)
HIST_SPACE = ft.Space(
    max_iter=ft.Integer(8, 128, log=True),
    max_leaf_nodes=ft.Integer(4, 64),
    learning_rate=ft.Real(0.01, 1.0, log=True),
    min_samples_leaf=ft.Integer(2, 200, log=True),
    l2_regularization=ft.Real(1e-3, 10.0, log=True),
    max_bins=ft.Integer(16, 255),
)
BOOSTING_SPACE = ft.Space(
    n_estimators=ft.Integer(10, 300),
    max_depth=ft.Integer(1, 8),
    learning_rate=ft.Real(0.01, 1.0, log=True),
    subsample=ft.Real(0.3, 1.0),
    max_features=ft.Real(0.1, 1.0),
    loss=ft.Choice(["squared_error", "absolute_error", "huber"]),
)
MLP_SPACE = ft.Space(
    units_1=ft.Integer(8, 256, log=True),
    units_2=ft.Integer(8, 256, log=True),
    batch_size=ft.Integer(16, 256, log=True),
    epochs=ft.Integer(1, 12),
    learning_rate_init=ft.Real(1e-4, 1e-1, log=True),
    activation=ft.Choice(["relu", "tanh"]),
    solver=ft.Choice(["adam", "sgd"]),
)


@dataclass(frozen=True)
class Program:
    """A learner on a data set, its space, and how many configurations of it are timed. Names as in the child."""

    name: str
    learner: str
    data: str
    space: ft.Space
    fits: int
    counts: Callable[[Config], tuple[float, ...]] | None = None

    @property
    def configs(self) -> list[Config]:
        """Uniform over the space, always the same."""
        letters = np.frombuffer(self.name.encode(), dtype=np.uint8).tolist()
        return self.space.decode_many(np.random.default_rng([SEED, *letters]).random((self.fits, len(self.space))))


def digits_counts(config: Config) -> tuple[float, ...]:
    return counts_of([64, config["units_1"], config["units_2"], 10], config["batch_size"], config["epochs"])


def programs(fits: int) -> list[Program]:
    """The learners whose fits are timed."""
    return [
        Program("xgboost_breast_cancer", "xgboost", "breast_cancer", XGBOOST_SPACE, fits),
        Program("xgboost_diabetes", "xgboost", "diabetes", XGBOOST_SPACE, fits),
        Program("xgboost_classes_3000x20x2", "xgboost", "classes:3000x20x2", XGBOOST_SPACE, fits),
        Program("random_forest_digits", "random_forest", "digits", FOREST_SPACE, fits),
        Program("hist_boosting_classes_3000x20x2", "hist_boosting", "classes:3000x20x2", HIST_SPACE, fits),
        Program("boosting_diabetes", "boosting", "diabetes", BOOSTING_SPACE, fits),
        Program("mlp_digits", "mlp", "digits", MLP_SPACE, fits, digits_counts),
    ]


@dataclass(frozen=True, eq=False)
class Timings:
    """Seconds of each configuration of a program: on the clock, and of the processor."""

    program: Program
    wall: Array  # (n,)
    cpu: Array  # (n,)
    versions: dict[str, str]

    @property
    def waiting(self) -> Array:
        """Seconds on the clock over those of the processor (n,): 1 where nothing else disturbed."""
        return self.wall / self.cpu


def _measured(child: Child, program: Program) -> dict[str, Any]:
    """Time every configuration; one fit before that loads the data and the library."""
    child.ask({"learner": program.learner, "config": program.configs[0], "data": program.data})
    answers = []
    for i, config in enumerate(program.configs, start=1):
        answers.append(child.ask({"learner": program.learner, "config": config, "data": program.data}))
        if i % PROGRESS == 0 or i == program.fits:
            seconds = sum(answer["wall"] for answer in answers)
            print(f"timing {program.name}: {i}/{program.fits} fits, {seconds:.0f} s", flush=True)
    return {"answers": answers, "versions": child.ask("versions")}


def timings(wanted: Sequence[Program]) -> list[Timings]:
    """The seconds of programs, from the cache where they are."""
    found = []
    with ExitStack() as stack:
        child: Child | None = None

        def measured(program: Program) -> dict[str, Any]:
            nonlocal child
            child = child or stack.enter_context(Child("costs", TIMING))
            return _measured(child, program)

        for program in wanted:
            key = [program.learner, program.data, program.configs, fingerprint("costs", (TIMING,))]
            stored = once(f"costs-{program.name}", key, lambda program=program: measured(program))
            wall, cpu = (np.array([answer[clock] for answer in stored["answers"]]) for clock in ("wall", "cpu"))
            found.append(Timings(program, wall, cpu, stored["versions"]))
    return found
