"""Offline models of log cost, trained on other data sets, as a child process: one JSON line in, one out.

    python -m benchmarks.cost_transfer.peers.offline < tasks.jsonl

A task has features Z, log meta-features M and log costs b of the other data sets, and Z_test, M_test of the one held
out; the answer has each model's predictions there. scikit-learn's and XGBoost's defaults, inputs standardised where a
model depends on their scale. All but the naive line see the meta-features.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

VERSIONS = {name: version(name) for name in ("scikit-learn", "xgboost-cpu", "numpy", "scipy")}
NAIVE = "naive-linear"


def models() -> dict[str, Any]:
    """Fresh models by name."""
    return {
        NAIVE: LinearRegression(),
        "task-linear": LinearRegression(),
        "mlp": make_pipeline(StandardScaler(), MLPRegressor(max_iter=1_000, random_state=0)),
        "knn": make_pipeline(StandardScaler(), KNeighborsRegressor()),
        "tree": DecisionTreeRegressor(random_state=0),
        "hist-boosting": HistGradientBoostingRegressor(random_state=0),
        "xgboost": XGBRegressor(n_jobs=1, random_state=0),
    }


def predictions(task: dict[str, Any]) -> dict[str, list[float]]:
    """Predicted log costs of the held-out data set, by model."""
    Z, M, b, Z_test, M_test = (np.array(task[key], dtype=np.float64) for key in ("Z", "M", "b", "Z_test", "M_test"))
    with_meta, test_with_meta = np.column_stack([Z, M]), np.column_stack([Z_test, M_test])
    found = {}
    for name, model in models().items():
        train, test = (Z, Z_test) if name == NAIVE else (with_meta, test_with_meta)
        found[name] = model.fit(train, b).predict(test).astype(float).tolist()
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(VERSIONS if task == "versions" else predictions(task)), flush=True)


if __name__ == "__main__":
    main()
