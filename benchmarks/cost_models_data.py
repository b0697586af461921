"""Timing data for the benchmarks of cost models: tables of published training times, and fits timed here.

A `Source` draws a sample: configurations, uniform over its space, as models see them, with their log costs. Sources of
timed fits measure them once, in a child process with one thread, and keep the seconds in benchmarks/cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from blackbox_runs import CACHE, PEERS, table_of
from children import Child
from environments import digest, requirements
from farthing.surrogates.cost.flops import phi_linear, phi_quad
from peers.tables import TABLES, Parameter

Array = NDArray[np.float64]
Config = dict[str, Any]

SCRIPT = "costs_timing.py"
SEED = 20_200
PROGRESS = 50  # fits between two lines on the screen

# Rows, columns and classes of the tables' tasks, as OpenML and UCI have them; 1 class is a number to predict.
TABLE_TASKS: dict[str, tuple[int, int, int]] = {
    "mlp_australian": (690, 14, 2),
    "mlp_blood_transfusion": (748, 4, 2),
    "mlp_car": (1728, 6, 4),
    "mlp_credit_g": (1000, 20, 2),
    "mlp_kc1": (2109, 21, 2),
    "mlp_phoneme": (5404, 5, 2),
    "mlp_segment": (2310, 19, 7),
    "mlp_vehicle": (846, 18, 4),
    "fcnet_naval_propulsion": (11934, 15, 1),
    "fcnet_parkinsons_telemonitoring": (5875, 20, 1),
    "fcnet_protein_structure": (45730, 9, 1),
    "fcnet_slice_localization": (53500, 385, 1),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Configurations as models see them. `counts` is what a dense network computes, None for other programs."""

    X: Array  # (n, f) features in the unit cube
    groups: NDArray[np.intp]  # (f,)
    ratios: Array  # (f,)
    log_cost: Array  # (n,)
    counts: Array | None = None  # (n, 4), see `counts_of`


@dataclass(frozen=True, eq=False)
class Source:
    """One learner on one data set."""

    name: str
    what: str
    draw: Callable[[np.random.Generator, int], Sample]  # distinct configurations, at most so many


def sampled(space: ft.Space, configs: Sequence[Config], cost: Array, counts: Callable[..., Any] | None) -> Sample:
    """A sample from configurations and their costs."""
    counted = None if counts is None else np.array([counts(config) for config in configs])
    features = space.features(space.encode_many(configs))
    return Sample(features, space.groups, space.ratios, np.log(cost), counted)


def counts_of(layers: Sequence[float], batch: float, epochs: float = 1.0) -> tuple[float, float, float, float]:
    """What training a dense network does: CArBO's two features, which come per sample, and two that come per update.

    The paper keeps the batch size fixed. Where it varies, the optimiser's own work (on every weight) and the overhead
    of calls (for every layer) come once per update, so 1 / batch times as often.
    """
    quad, linear = phi_quad(layers, epochs=epochs), phi_linear(layers, epochs=epochs)
    return quad, linear, quad / batch, epochs * len(layers) / batch


# -- tables ------------------------------------------------------------------------------------------------------------


def parameter_of(parameter: Parameter) -> ft.Ordered | ft.Choice:
    """A parameter of a table as Farthing's users write it."""
    if parameter.ordered:
        return ft.Ordered(parameter.values, log=parameter.log)
    return ft.Choice(parameter.values)


@cache
def table_space(name: str) -> ft.Space:
    return ft.Space({parameter.name: parameter_of(parameter) for parameter in table_of(name).parameters})


def table_configs(name: str, rng: np.random.Generator, n: int) -> tuple[list[Config], Array]:
    """Distinct configurations, uniform over the grid, and their seconds."""
    table = table_of(name)
    drawn = table.draw(n, rng)
    configs = [{p.name: p.values[level] for p, level in zip(table.parameters, levels, strict=True)} for levels in drawn]
    return configs, np.array([table.look_up(levels)[1] for levels in drawn])


def table_counts(name: str) -> Callable[[Config], tuple[float, ...]]:
    """What a table's network computes in one epoch; how many epochs is the same for all its configurations."""
    _, columns, classes = TABLE_TASKS[name]
    outputs = 1 if classes <= 2 else classes

    def counts(config: Config) -> tuple[float, ...]:
        wide = [config["width"]] * config["depth"] if "depth" in config else [config["n_units_1"], config["n_units_2"]]
        return counts_of([columns, *wide, outputs], config["batch_size"])

    return counts


def table_source(name: str) -> Source:
    def draw(rng: np.random.Generator, n: int) -> Sample:
        return sampled(table_space(name), *table_configs(name, rng, n), table_counts(name))

    return Source(name, "table", draw)


# -- timed fits --------------------------------------------------------------------------------------------------------

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


def _path(program: Program) -> Path:
    space = json.dumps([program.learner, program.data, program.configs], sort_keys=True)
    key = space + digest(requirements("costs"), PEERS / SCRIPT)
    return CACHE / f"costs-{program.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def keep(path: Path, content: Any) -> None:
    """Write a file of the cache, so that it is whole or not there."""
    CACHE.mkdir(exist_ok=True)
    partial = path.with_suffix(f".partial{os.getpid()}")
    partial.write_text(json.dumps(content))
    partial.replace(path)


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
        child = None
        for program in wanted:
            path = _path(program)
            if not path.exists():
                child = child or stack.enter_context(Child("costs", [], script=SCRIPT))
                keep(path, _measured(child, program))
            stored = json.loads(path.read_text())
            wall, cpu = (np.array([answer[clock] for answer in stored["answers"]]) for clock in ("wall", "cpu"))
            found.append(Timings(program, wall, cpu, stored["versions"]))
    return found


def timed_source(timed: Timings) -> Source:
    """A program whose configurations come in a random order. Costs are processor seconds.

    On a machine that others use too, the clock would add their noise to all models alike.
    """
    program = timed.program
    everything = sampled(program.space, program.configs, timed.cpu, program.counts)

    def draw(rng: np.random.Generator, n: int) -> Sample:
        rows = rng.permutation(program.fits)[:n]
        counts = None if everything.counts is None else everything.counts[rows]
        return Sample(everything.X[rows], everything.groups, everything.ratios, everything.log_cost[rows], counts)

    return Source(program.name, "timed here", draw)


def table_sources(names: Sequence[str] = TABLES) -> list[Source]:
    return [table_source(name) for name in names]
