"""Farthing's policies as a child process of the benchmarks on learners that train in steps, by its public names only.

    python -m benchmarks.curves.peers.farthing_peer [PYTHON FOLDER] < tasks.jsonl

A plan is [predicted cost, cost, first step, steps trained, how it ended]: "pause", "stop", "failed", or "cut" by the
budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import farthing as ft
from benchmarks.common.policies import policy_of
from benchmarks.common.versions import version
from benchmarks.curves.peers.task import Record, Task, Training, TrainingFailed, serve
from farthing.errors import StudyEnded

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


def parameter(one: Mapping[str, Any]) -> ft.Real | ft.Integer | ft.Choice:
    if one["type"] == "categorical":
        return ft.Choice(one["choices"])
    kind = ft.Integer if one["type"] == "uniform_int" else ft.Real
    return kind(one["lower"], one["upper"], log=one["log"])


def search(record: Record, task: Task) -> None:
    space = ft.Space({one["name"]: parameter(one) for one in record.space})
    policy = policy_of(task["policy"])
    budget, steps = ft.Budget(cost=record.budget), record.steps
    with ft.Study(space, budget, policy=policy, seed=task["seed"], max_steps=steps) as study, suppress(StudyEnded):
        while record.is_open and study.ended is None:
            proposal = study.ask()
            training = record.training(proposal.trial, proposal.config)
            if training.step != proposal.start_step:
                raise RuntimeError(f"trial {proposal.trial} rests at {training.step}, not at {proposal.start_step}")
            follow(study, proposal, training, record)


def follow(study: ft.Study, proposal: ft.Proposal, training: Training, record: Record) -> None:
    """Train until the policy pauses or the training ends; what was planned and spent is written down in any case."""
    before, how, decision = record.spent, "cut", ft.Decision.CONTINUE
    try:
        while decision is ft.Decision.CONTINUE:
            value, cost = training.advance()
            decision = study.report(proposal, value, cost=cost)
        how = decision.value
    except TrainingFailed as failed:
        study.tell(proposal, failed=str(failed), cost=failed.cost)
        how = "failed"
    finally:
        trained = training.step - proposal.start_step
        record.plans.append([proposal.predicted_cost, record.spent - before, proposal.start_step, trained, how])


if __name__ == "__main__":
    serve(search, VERSIONS)
