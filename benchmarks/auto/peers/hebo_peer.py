"""HEBO as a child process of the benchmark of `auto`.

    python -m benchmarks.auto.peers.hebo_peer FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

Defaults. HEBO reads `scramble_seed` for its first Sobol points, and the global generators after them.
"""

from __future__ import annotations

import random
import sys
import warnings
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from benchmarks.auto.peers.task import Task, serve
from benchmarks.common.described_spaces import Described

VERSIONS = {name: version(name) for name in ("HEBO", "torch", "gpytorch", "scikit-learn", "numpy", "scipy")}


def parameter(one: Described) -> dict[str, Any]:
    if one["type"] == "categorical":
        return {"name": one["name"], "type": "cat", "categories": one["choices"]}
    kind = {"uniform_int": ("int", "pow_int"), "uniform_float": ("num", "pow")}[one["type"]][one["log"]]
    return {"name": one["name"], "type": kind, "lb": one["lower"], "ub": one["upper"]}


def plain(value: Any) -> Any:
    """A value of HEBO's table as Python writes it."""
    return value.item() if isinstance(value, np.generic) else value


def search(record: Any, task: Task) -> None:
    random.seed(task["seed"])
    np.random.seed(task["seed"])  # noqa: NPY002 - what HEBO draws from
    torch.manual_seed(task["seed"])
    optimiser = HEBO(DesignSpace().parse([parameter(one) for one in record.space]), scramble_seed=task["seed"])
    names = [one["name"] for one in record.space]
    while True:
        with redirect_stdout(sys.stderr):  # it prints, and answers are read from there
            suggestion = optimiser.suggest(n_suggestions=1)
        value, _ = record.evaluate({name: plain(suggestion[name].iloc[0]) for name in names})
        optimiser.observe(suggestion, np.array([[value]]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
