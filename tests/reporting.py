"""Studies of objectives that report from inside, and a policy that stops them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

import farthing as ft
from learners import iterative

ANYWHERE = pytest.mark.parametrize("isolate", [False, True], ids=["here", "worker"])


def study_of(budget=None, **options):
    assert hasattr(ft.Run, "report"), "nothing can be reported"
    return iterative(budget, **options)


def run_on(objective, isolate, budget="2 evaluations", **options):
    return study_of(budget, **options).run(objective, isolate=isolate, progress=False)


@dataclass(frozen=True)
class StopAtTwo:
    """Random trainings, each stopped after its second step."""

    name: ClassVar[str] = "stop at two"

    def propose(self, space, history, ledger, n, rng):
        return [ft.Proposal(len(history.trials), {"x": float(rng.random())})]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.STOP if trial.kept_step == 2 else ft.Decision.CONTINUE
