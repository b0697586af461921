"""A search in a process of its own, to be interrupted or killed: sklearn_child.py FILE NOTES BUDGET [SECONDS]."""

import sys

from sklearn.datasets import load_iris
from sklearn_estimators import Slow

import farthing as ft


def search(file, notes, budget, seconds):
    return ft.FarthingSearchCV(
        Slow(notes=notes, seconds=seconds), {"C": ft.Real(0.01, 10, log=True)}, budget=budget, policy="sobol",
        storage=file, cv=2, refit=False,
    )  # fmt: skip


if __name__ == "__main__":
    file, notes, budget, seconds = sys.argv[1:]
    found = search(None if file == "-" else file, notes, budget, float(seconds))
    try:
        found.fit(*load_iris(return_X_y=True))
    except KeyboardInterrupt:
        results = found.cv_results_
        print("interrupted", len(results["params"]), found.best_params_ == results["params"][found.best_index_])  # noqa: T201
