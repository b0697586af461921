"""FLAML's BlendSearch, the default of `flaml.tune.run`, as a child process of the benchmark of `auto`.

    python -m benchmarks.auto.peers.flaml_peer FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

Defaults, with the budget, and with `low_cost_partial_config` where the task has a cheap part. On tables it is told the
cost of each evaluation (`cost_attr`, `cost_budget`), and live its seconds, as `tune.run` does. The loop is that of
`tune.run`, which gives up after 100 suggestions in a row that the search has refused.
"""

from __future__ import annotations

import logging
import warnings
from importlib.metadata import version
from typing import Any

warnings.filterwarnings("ignore", message="flaml.automl is not available")  # nor needed

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from flaml import tune  # noqa: E402
from flaml.tune.searcher.blendsearch import BlendSearch  # noqa: E402

from benchmarks.auto.peers.spaces import as_described  # noqa: E402
from benchmarks.auto.peers.task import Task, serve  # noqa: E402
from benchmarks.common.described_spaces import Described  # noqa: E402

VERSIONS = {name: version(name) for name in ("flaml", "optuna", "scikit-learn", "numpy", "scipy")}
REFUSED = 100  # suggestions in a row


def domain(one: Described) -> Any:
    if one["type"] == "categorical":
        return tune.choice(one["choices"])
    if one["type"] == "uniform_int":
        return (tune.lograndint if one["log"] else tune.randint)(one["lower"], one["upper"] + 1)
    return (tune.loguniform if one["log"] else tune.uniform)(one["lower"], one["upper"])


def plain(value: Any) -> Any:
    """FLAML draws options as scalars of NumPy, which some estimators refuse."""
    return value.item() if isinstance(value, np.generic) else value


def searcher(record: Any, task: Task, cost: str) -> BlendSearch:
    budget = {"time_budget_s": record.budget} if record.is_live else {"cost_attr": cost, "cost_budget": record.budget}
    return BlendSearch(
        metric="value", mode="min", space={one["name"]: domain(one) for one in record.space}, seed=task["seed"],
        low_cost_partial_config=as_described(record.space, task["cheap"]), **budget,
    )  # fmt: skip


def search(record: Any, task: Task) -> None:
    cost = "time_total_s" if record.is_live else "cost"
    algorithm, refused, number = searcher(record, task, cost), 0, 0
    while refused < REFUSED:
        number += 1
        config = algorithm.suggest(str(number))
        refused = refused + 1 if config is None else 0
        if config is not None:
            value, spent = record.evaluate({name: plain(value) for name, value in config.items()})
            result = {"value": value, cost: spent, "config": config, "training_iteration": 0}
            algorithm.on_trial_result(str(number), result)
            algorithm.on_trial_complete(str(number), result)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # it says so when its global search repeats itself, which small tables lead to
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    serve(search, VERSIONS)
