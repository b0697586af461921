"""Runs that get signals: they announce each trial once it is told, and what its worker is.

Arguments: the study's file; "plain", "training" or "here" (in the run's own process); how many workers; and how many
seconds a trial takes, or a step of one. A training writes a checkpoint before every step. Without arguments it reads
such lines and forks a child for each, which starts without importing anything; it writes "child PID", and "ended CODE"
when that has ended.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import farthing as ft
from learners import Alternating

SPACE = ft.Space(x=ft.Real(0, 1))
STEPS = 4
BUDGET = ft.Budget(evaluations=100000, seconds=100000)


def say(*words: object) -> None:
    """One write, so that a line is whole or not there."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Plain:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, config: dict[str, Any]) -> float:
        say("worker", os.getpid(), ft.current_run().trial)
        time.sleep(self.seconds)
        return config["x"]


class Training(Plain):
    def __call__(self, config: dict[str, Any]) -> Iterator[float]:
        run = ft.current_run()
        say("worker", os.getpid(), run.trial)
        for step in range(run.step + 1, STEPS + 1):
            time.sleep(self.seconds)
            (run.checkpoint_dir / "step").write_text(str(step))
            yield config["x"] + 1.0 / step


def study_of(path: str | Path, kind: str) -> ft.Study:
    options = {"policy": Alternating(), "max_steps": STEPS} if kind == "training" else {"policy": "random"}
    return ft.Study(SPACE, BUDGET, seed=5, storage=path, **options)


def objective_of(kind: str, seconds: float) -> Plain:
    return Training(seconds) if kind == "training" else Plain(seconds)


def announce(study: ft.Study, trial: ft.Trial) -> None:
    say("told", trial.number, trial.status.value, len(trial.curve), repr(trial.value))


class Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say("log", record.getMessage())


def live(path: str, kind: str, workers: str, seconds: str) -> None:
    logging.getLogger("farthing").addHandler(Said())
    isolate = False if kind == "here" else None
    with study_of(path, kind) as study:
        study.run(
            objective_of(kind, float(seconds)), workers=int(workers), isolate=isolate, progress=False,
            callbacks=[announce],
        )  # fmt: skip


def nurse() -> None:
    import cloudpickle  # noqa: F401

    import farthing.runner.loop  # noqa: F401

    ft.tune(Plain(0.0), SPACE, "2 evaluations", policy="random", progress=False)  # all that is imported late is now
    for line in sys.stdin:
        if child := os.fork():
            say("child", child)
            say("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            continue
        code = 1
        try:
            live(*line.rstrip("\n").split("\t"))
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        os._exit(code)


if __name__ == "__main__":
    live(*sys.argv[1:]) if len(sys.argv) > 1 else nurse()
