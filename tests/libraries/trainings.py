"""A small regression for networks, and policies that interrupt their training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import farthing as ft
from learners import Alternating

EPOCHS = 5
SPACE = ft.Space(rate=ft.Real(1e-3, 0.2, log=True))


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((96, 3)).astype("float32")
    y = (X @ [1.0, -2.0, 0.5] + 0.05 * rng.normal(size=96)).astype("float32")[:, None]
    return X[:64], y[:64], X[64:], y[64:]


@dataclass(frozen=True)
class InTurn(Alternating):
    """Two trainings, one epoch each in turn."""

    width: int = 2

    def propose(self, space, history, ledger, n, rng):
        (proposal,) = super().propose(space, history, ledger, n, rng)
        is_new = proposal.trial == len(history.trials)
        return [ft.Proposal(proposal.trial, {"rate": float(rng.uniform(0.001, 0.2))})] if is_new else [proposal]


@dataclass(frozen=True)
class StopAtTwo:
    """Random trainings, each stopped after its second epoch."""

    name: ClassVar[str] = "stop at two"

    def propose(self, space, history, ledger, n, rng):
        return [ft.Proposal(len(history.trials), {"rate": float(rng.uniform(0.001, 0.2))})]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.STOP if trial.kept_step == 2 else ft.Decision.CONTINUE


def in_turn(objective: Any, **options: Any) -> tuple[ft.Study, int]:
    """Trainings that take turns in worker processes until the first is complete, and how often that paused."""
    budget = ft.Budget(cost=1e6)  # of which seconds say nothing: so no training is dropped and trained again
    study = ft.Study(SPACE, budget, policy=InTurn(), seed=0, max_steps=EPOCHS)
    pauses = []

    def look(study, trial):
        pauses.append(trial.number) if trial.status == "paused" else study.stop()

    study.run(
        objective, isolate=True, meter=lambda seconds: seconds, progress=False, callbacks=[look], **options
    )  # fmt: skip
    return study, pauses.count(0)


def stopped(objective: Any) -> ft.Study:
    """Two trainings in this process, each of which is stopped after two epochs."""
    study = ft.Study(SPACE, "2 evaluations", policy=StopAtTwo(), seed=0, max_steps=EPOCHS)
    return study.run(objective, isolate=False, progress=False)
