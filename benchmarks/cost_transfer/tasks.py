"""Tasks for the benchmark of transferred cost models: one space, timed on many data sets.

Two families: XGBoost fits timed here on data sets of different size, and the eight tables of HPOBench's multi-layer
perceptron among themselves. Within a family all tasks share one space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from benchmarks.cost_models.data import TABLE_TASKS, table_configs, table_space
from benchmarks.cost_models.programs import XGBOOST_SPACE, Config, Program, Timings, timings
from farthing.surrogates.cost.log_cost import LogFeatures

Array = NDArray[np.float64]

TABLE_CONFIGS = 200  # of each table


@dataclass(frozen=True, eq=False)
class Task:
    """Configurations on one data set, with what they cost, and what the data set is like."""

    name: str
    family: str
    space: ft.Space
    configs: tuple[Config, ...]
    log_cost: Array  # (n,)
    rows: int
    columns: int
    classes: int  # 1 for a number to predict

    @property
    def X(self) -> Array:  # (n, f)
        return np.asarray(self.space.features(self.space.encode_many(self.configs)))

    @property
    def Z(self) -> Array:
        """Features with sizes as logs, (n, f)."""
        return LogFeatures(np.asarray(self.space.ratios))(self.X)

    @property
    def meta(self) -> Array:
        """Log meta-features (3,)."""
        return np.log([self.rows, self.columns, self.classes])

    @property
    def described(self) -> dict[str, float]:
        """As a study is told."""
        return {"rows": self.rows, "columns": self.columns, "classes": self.classes}


# Name in the child, and rows, columns, classes. The number after a bundled set's name is a random part of its rows.
DATA: dict[str, tuple[int, int, int]] = {
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "digits": (1797, 64, 10),
    "digits:600": (600, 64, 10),
    "classes:300x10x2": (300, 10, 2),
    "classes:1000x8x3": (1000, 8, 3),
    "classes:1000x40x2": (1000, 40, 2),
    "classes:3000x10x5": (3000, 10, 5),
    "classes:4000x20x2": (4000, 20, 2),
    "classes:8000x8x2": (8000, 8, 2),
    "diabetes": (442, 10, 1),
    "regression:300x20": (300, 20, 1),
    "regression:600x50": (600, 50, 1),
    "regression:1000x8": (1000, 8, 1),
    "regression:2000x16": (2000, 16, 1),
    "regression:4000x5": (4000, 5, 1),
}
XGBOOST, TABLES = "XGBoost", "MLP tables"


def transfer_programs(fits: int, names: tuple[str, ...] = tuple(DATA)) -> list[Program]:
    """XGBoost on every data set; each has configurations of its own."""
    shown = {name: name.replace(":", "_") for name in names}
    return [Program(f"transfer_{shown[name]}", "xgboost", name, XGBOOST_SPACE, fits) for name in names]


def timed_task(timed: Timings) -> Task:
    program = timed.program
    name = program.data.replace(":", " ")
    return Task(name, XGBOOST, program.space, tuple(program.configs), np.log(timed.cpu), *DATA[program.data])


def table_task(name: str, index: int) -> Task:
    configs, cost = table_configs(name, np.random.default_rng([1, index]), TABLE_CONFIGS)
    # The tables' grids are the same, so the first one's space is everyone's.
    return Task(name, TABLES, table_space("mlp_australian"), tuple(configs), np.log(cost), *TABLE_TASKS[name])


def table_tasks() -> list[Task]:
    return [table_task(name, i) for i, name in enumerate(TABLE_TASKS) if name.startswith("mlp_")]


def timed_tasks(fits: int, names: tuple[str, ...] = tuple(DATA)) -> tuple[list[Task], list[Timings]]:
    found = timings(transfer_programs(fits, names))
    return [timed_task(timed) for timed in found], found
