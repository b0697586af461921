"""Farthing's policies as a child process of the benchmark on synthetic functions, through its public names only.

    python -m benchmarks.bopt_synthetic.peers.farthing_peer < tasks.jsonl

A task has the policy's name and options. `bopt` and `eqie` train in two steps, the cheap level and the rest, and make
the nested design by themselves, from its seed; `ei` is given the first complete points. `eqie` may train a new point
completely at once: that is one complete run, whose cheap value it sees on the way.
"""

from __future__ import annotations

import farthing as ft
from benchmarks.bopt_synthetic.peers.task import CHEAP, COMPLETE, Record, Task, first_complete, serve
from benchmarks.common.policies import policy_of
from benchmarks.common.versions import version
from farthing.policies.bopt.stopping import Share

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}
TWO_LEVELS = {"bopt": {"s": 2}, "eqie": {}}  # the policies that train in two steps, and what they are told


def search(record: Record, task: Task) -> None:
    (two_levels if task["policy"]["name"] in TWO_LEVELS else one_level)(record, task)


def two_levels(record: Record, task: Task) -> None:
    names, name = _names(record), task["policy"]["name"]
    levels = {"fast_ends": Share(share=0.5), "ends": None, "level": "last", "initial": record.function.initial}
    policy = policy_of({**task["policy"], **TWO_LEVELS[name], **levels})
    space, budget = ft.Space({name: ft.Real(0.0, 1.0) for name in names}), ft.Budget(cost=record.budget)
    with ft.Study(space, budget, policy=policy, seed=task["seed"], max_steps=2) as study:
        while record.is_open and study.ended is None:
            proposal = study.ask()
            train(study, proposal, [proposal.config[name] for name in names], record)
    _check_design(record, task)


def train(study: ft.Study, proposal: ft.Proposal, point: list[float], record: Record) -> None:
    """Both steps, or the one that the proposal is for."""
    if proposal.until_step == 2 and not proposal.start_step:
        complete = record.complete(point)  # 1 in all: cut by the budget, it has no cheap value either
        study.report(proposal, record.cheap_value(point), cost=CHEAP)
        study.report(proposal, complete, cost=COMPLETE - CHEAP)
    else:
        before = record.spent
        value = (record.complete if proposal.start_step else record.cheap)(point)
        study.report(proposal, value, cost=record.spent - before)


def _check_design(record: Record, task: Task) -> None:
    """The nested design that the policy made is the one that the other methods were given."""
    made, given = record.columns["points"][: len(task["design"])], task["design"]
    if any(abs(a - b) > 1e-5 for x, y in zip(made, given, strict=True) for a, b in zip(x, y, strict=True)):
        raise RuntimeError(f"it began with {made}, not with the design {given}")


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
