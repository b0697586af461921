"""What is searched: (a) twelve tables, (b) more of them and tasks of LCBench, (c) models that are trained live.

Defaults were chosen on half of (a), see common/tables.py; on nothing of (b) and (c). DATA is a folder with the grids of
HPOlib, see tables.py, and the surrogate of LCBench in `yahpo_lcbench`, see common/lcbench.py.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.auto.tables import GRIDS, NAS
from benchmarks.common.environments import digest, ensure, requirements, run_module
from benchmarks.common.fingerprints import code_hash, module_file
from benchmarks.common.kept_runs import CACHE
from benchmarks.common.tables import CHOOSING, TABLES, Table, table_of, tables_folder
from benchmarks.curves.runs import LCBENCH_TASKS, lcbench

MEANS = 40  # the budget of (a) and (b), in mean costs
LIVE_SECONDS = 20.0
SEEDS_APART = 1_000_000
LCBENCH = tuple(f"lcbench/{task}" for task in LCBENCH_TASKS[::2])  # six, as many as there are tables in (b)
LIVE = tuple(f"live/{model}" for model in ("knn", "mlp", "svm", "tree", "forest"))
GROUPS = {"a": TABLES, "b": (*NAS, *GRIDS, *LCBENCH), "c": LIVE}

# Parts of configurations that anyone would expect to cost little. NAS-Bench-201 has only choices, for which FLAML's
# low-cost start is not meant, and grid_lda nothing of which one would know it.
CHEAP: Mapping[str, Mapping[str, Any]] = {
    "mlp": {"depth": 1, "width": 16, "batch_size": 256},
    "fcnet": {"n_units_1": 16, "n_units_2": 16, "batch_size": 64},
    "grid_logreg": {"n_epochs": 5},
    "grid_svm": {"epsilon": 0.1},
    "lcbench": {"num_layers": 1, "max_units": 64, "batch_size": 512},
    "live/knn": {"reduction": 1e-6},
    "live/mlp": {"layers": 1, "size_1": 10},
    "live/svm": {"iterations": 1},
    "live/tree": {"depth": 1},
    "live/forest": {"trees": 1, "depth": 1},
}


@dataclass(frozen=True)
class Problem:
    """`data` is the folder DATA, where there is one."""

    name: str
    data: Path | None = None

    @property
    def group(self) -> str:
        return next(group for group, names in GROUPS.items() if self.name in names)

    @property
    def place(self) -> int:
        """Among all problems."""
        return [name for names in GROUPS.values() for name in names].index(self.name)

    @property
    def is_held_out(self) -> bool:
        """Whether no default was chosen on it."""
        return self.name not in CHOOSING

    @property
    def is_live(self) -> bool:
        return self.group == "c"

    @property
    def cheap(self) -> Mapping[str, Any]:
        """A part of a configuration that costs little; empty where none is known."""
        kinds = (self.name, self.name.partition("/")[0], self.name.partition("_")[0])
        return next((CHEAP[kind] for kind in kinds if kind in CHEAP), {})

    @property
    def number(self) -> int:
        return zlib.crc32(self.name.encode()) % SEEDS_APART

    @property
    def budget(self) -> float:
        return LIVE_SECONDS if self.is_live else MEANS * self.mean_cost

    @property
    def mean_cost(self) -> float:
        return float(self._of_lcbench.facts.cost) if self.name in LCBENCH else self.table.mean_cost

    @property
    def median(self) -> float:
        """The value of a configuration in the middle; live: the error of guessing the most frequent class."""
        if self.is_live:
            from benchmarks.auto.peers.models import guess_error

            return guess_error(self.name.partition("/")[2])
        return float(self._of_lcbench.facts.median) if self.name in LCBENCH else self.table.median

    @property
    def lowest(self) -> float | None:
        """The lowest value: of the table, of a large sample of LCBench, and unknown live."""
        if self.is_live:
            return None
        return float(self._of_lcbench.facts.lowest) if self.name in LCBENCH else self.table.optimum

    @property
    def table(self) -> Table:
        return table_of(self.name) if self.name in TABLES else Table.load(more_tables(self.data), self.name)

    @property
    def code(self) -> str:
        """A hash of what its values depend on besides the code of peers."""
        if self.name in LCBENCH:
            return str(self._of_lcbench.code)
        if self.name in GRIDS:
            assert self.data is not None
            return digest(self.data / f"{self.name}.npz") + code_hash([module_file("auto.tables")])
        modules = ("auto.tables",) if self.name in NAS else ("common.tables",) if self.name in TABLES else ()
        return digest(requirements("blackbox")) + code_hash(map(module_file, modules)) if modules else ""

    @property
    def _of_lcbench(self) -> Any:
        assert self.data is not None
        return lcbench(surrogate_folder(self.data), self.name.partition("/")[2])


def surrogate_folder(data: Path) -> Path:
    return data / "yahpo_lcbench"


@cache
def more_tables(data: Path | None) -> Path:
    """Where the tables of (b) are; made the first time, in the environment that has the package."""
    sources = [data / f"{name}.npz" for name in GRIDS] if data else []
    code = code_hash([module_file("auto.tables")])
    folder = CACHE / f"auto-tables-{code}-{digest(requirements('blackbox'), *sources)}"
    if not folder.exists():
        partial = folder.with_suffix(f".partial{os.getpid()}")
        partial.mkdir(parents=True, exist_ok=True)
        run_module("blackbox", "auto.tables", partial, *([data] if data else []))
        partial.replace(folder)
    return folder


def arguments(data: Path | None) -> list[str]:
    """Of the command line of all peers."""
    surrogate = [str(ensure("lcbench")), str(surrogate_folder(data))] if data else []
    return [f"{tables_folder()},{more_tables(data)}", *surrogate]


def problems(data: Path | None) -> list[Problem]:
    """All that can be searched: without DATA, (b) has only what the package has."""
    needs_data = {*GRIDS, *LCBENCH}
    return [Problem(name, data) for names in GROUPS.values() for name in names if data or name not in needs_data]
