"""Farthing as it is by default, as a child process of the benchmark of `auto`, through its public names only.

    python -m benchmarks.auto.peers.farthing_peer FOLDER,FOLDER [PYTHON LCBENCH] < tasks.jsonl

Tables: `study.ask` and `study.tell` with a budget of cost. Live: `farthing.tune` with a budget of seconds.
"""

from __future__ import annotations

from typing import Any

import farthing as ft
from benchmarks.auto.peers.task import Task, serve
from benchmarks.common.described_spaces import Described
from benchmarks.common.versions import version
from farthing.errors import StudyEnded

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


def parameter(one: Described) -> ft.Parameter:
    """As a user would write it."""
    if "values" in one:
        return ft.Ordered(one["values"], log=one["values_log"])
    if one["type"] == "categorical":
        return ft.Choice(one["choices"])
    kind = ft.Integer if one["type"] == "uniform_int" else ft.Real
    return kind(one["lower"], one["upper"], log=one["log"])


def described_config(space: list[Described], config: dict[str, Any]) -> dict[str, Any]:
    """A configuration of Farthing's as the described space has it: levels of ordered parameters."""
    named = ((one, config[one["name"]]) for one in space)
    return {one["name"]: one["values"].index(value) if "values" in one else value for one, value in named}


def options(task: Task) -> dict[str, Any]:
    """What a user says besides the space and the budget."""
    return {"seed": task["seed"], **({"cheap": task["cheap"]} if task["cheap"] else {})}


def search(record: Any, task: Task) -> None:
    space = ft.Space({one["name"]: parameter(one) for one in record.space})
    if record.is_live:
        record.take(ft.tune(record.objective, space, f"{record.budget:g}s", progress=False, **options(task)))
        return
    study = ft.Study(space, ft.Budget(cost=record.budget), **options(task))
    while True:
        try:
            proposal = study.ask()
        except StudyEnded:
            return
        value, cost = record.evaluate(described_config(record.space, proposal.config))
        study.tell(proposal, value=value, cost=cost)


if __name__ == "__main__":
    serve(search, VERSIONS)
