"""The process to be killed while trainings are paused: its learner notes every step it trains.

Arguments: the study's file, a file for the notes, "saving" or "forgetful", and the number of the trial that says when
it begins, and waits to be killed. Runs in a WarmPython (warm_python.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import farthing as ft
from learners import Alternating, cost_of, iterative, value_at

STEPS = 6
BUDGET = ft.Budget(cost=42)
POLICY = Alternating(width=4, stride=2)


class Learner:
    """Writes "trial step" for every step it trains; a checkpoint is named by its step."""

    def __init__(self, notes: str | Path, saves: bool, waits: int | None = None) -> None:
        self._notes, self._saves, self._waits = notes, saves, waits

    def __call__(self, config: dict[str, Any]) -> Iterator[Any]:
        run = ft.current_run()
        if run.trial == self._waits:
            os.write(1, b"now\n")
            time.sleep(60)
        for step in range(run.step + 1, STEPS + 1):
            with open(self._notes, "a") as notes:
                notes.write(f"{run.trial} {step}\n")
            if self._saves:
                (run.checkpoint_dir / f"step-{step}").write_text("state")
            yield {"value": value_at(config, step), "cost": cost_of(step)}


if __name__ == "__main__":
    path, notes, kind, waits = sys.argv[1:]
    with iterative(BUDGET, policy=POLICY, max_steps=STEPS, storage=path) as study:
        study.run(Learner(notes, kind == "saving", int(waits)), progress=False)
