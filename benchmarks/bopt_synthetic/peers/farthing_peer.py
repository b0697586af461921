"""Farthing's policies as a child process of the benchmark on synthetic functions, through its public names only.

    python -m benchmarks.bopt_synthetic.peers.farthing_peer < tasks.jsonl

A task has the policy's name and options. `bopt` trains in two steps, the cheap level and the rest, and makes the nested
design by itself, from its seed; `ei` is given the first complete points.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import farthing as ft
from benchmarks.bopt_synthetic.peers.task import Record, Task, first_complete, serve
from benchmarks.common.policies import policy_of
from benchmarks.common.two_level_functions import Function
from benchmarks.common.versions import version
from farthing.policies.bopt.stopping import Share

TWO_LEVELS = ("bopt", "eqie")
VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


def search(record: Record, task: Task) -> None:
    (two_levels if task["policy"]["name"] in TWO_LEVELS else one_level)(record, task)


def two_levels(record: Record, task: Task) -> None:
    names = _names(record)
    known = {field.name for field in fields(ft.policies.BY_NAME[task["policy"]["name"]])}
    levels = {name: value for name, value in levels_of(record.function).items() if name in known}
    policy = policy_of({**task["policy"], **levels})
    space, budget = ft.Space({name: ft.Real(0.0, 1.0) for name in names}), ft.Budget(cost=record.budget)
    with ft.Study(space, budget, policy=policy, seed=task["seed"], max_steps=2) as study:
        while record.is_open and study.ended is None:
            proposal = study.ask()
            point = [proposal.config[name] for name in names]
            before = record.spent
            value = (record.complete if proposal.start_step else record.cheap)(point)
            study.report(proposal, value, cost=record.spent - before)
    _check_design(record, task)


def levels_of(function: Function) -> dict[str, Any]:
    """The options that say what the two levels are."""
    return {"s": 2, "initial": function.initial, "fast_ends": Share(share=0.5), "ends": None, "level": "last"}


def _check_design(record: Record, task: Task) -> None:
    """The nested design that the policy made is the one that the other methods were given."""
    made, given = record.columns["points"][: len(task["design"])], task["design"]
    if any(abs(a - b) > 1e-5 for x, y in zip(made, given, strict=True) for a, b in zip(x, y, strict=True)):
        raise RuntimeError(f"bopt began with {made}, not with the design {given}")


def one_level(record: Record, task: Task) -> None:
    names = _names(record)
    start = [dict(zip(names, point, strict=True)) for point in first_complete(task)]
    space, budget = ft.Space({name: ft.Real(0.0, 1.0) for name in names}), ft.Budget(cost=record.budget)
    policy = policy_of(task["policy"])
    with ft.Study(space, budget, policy=policy, seed=task["seed"], start=start) as study:
        while record.is_open and study.ended is None:
            proposal = study.ask()
            value = record.complete([proposal.config[name] for name in names])
            study.tell(proposal, value=value, cost=1.0)


def _names(record: Record) -> list[str]:
    return [f"x{i + 1}" for i in range(record.function.p)]


if __name__ == "__main__":
    serve(search, VERSIONS)
