"""Farthing, for benchmarks/start: python -m benchmarks.start.peers.farthing_peer STUDY (as JSON)"""

from __future__ import annotations

from typing import Any

import farthing as ft
from benchmarks.start.task import STEPS, Objective, Study, serve

SPACE = ft.Space(x=ft.Real(-3.0, 0.0))


def run(study: Study, objective: Objective) -> dict[str, Any]:
    ran = ft.tune(
        objective.in_steps if study.steps else objective, SPACE, f"{study.seconds:g}s", policy=study.policy,
        workers=study.workers, seed=0, max_steps=STEPS if study.steps else None, progress=False,
    )  # fmt: skip
    seconds = {account: amounts.get("seconds", 0.0) for account, amounts in ran.ledger.accounts.items()}
    return {"ledger": {account: amount / ran.ledger.total("seconds") for account, amount in seconds.items()}}


if __name__ == "__main__":
    serve(run)
