"""Runs that receive signals. They announce the worker of each trial, and each trial once it is told.

Arguments: the study's file; "plain", "training" or "here" (in the run's own process); the number of workers; and the
step at which trials say that they wait, and then wait for a file (`gate_of`), or 0 for none. Otherwise a trial, or a
step of a training, takes 10 ms. A training writes a checkpoint before every step. Without arguments this program reads
such lines and forks a child for each, which starts without importing anything. It writes "child PID", and "ended CODE"
when the child has ended.
"""

from __future__ import annotations

import logging
import os
import signal
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


def gate_of(path: str | Path) -> Path:
    """The file that trials wait for."""
    return Path(f"{path}.gate")


class Plain:
    def __init__(self, gate: Path, waits_at: int = 0) -> None:
        self.gate, self.waits_at = gate, waits_at

    def work(self, trial: int, step: int) -> None:
        time.sleep(0.01)
        if step == self.waits_at:
            say("waits", trial, step)
            until = time.monotonic() + 60.0
            while not self.gate.exists() and time.monotonic() < until:
                time.sleep(0.01)

    def __call__(self, config: dict[str, Any]) -> float:
        trial = ft.current_run().trial
        say("worker", os.getpid(), trial)
        self.work(trial, 1)
        return config["x"]


class Training(Plain):
    def __call__(self, config: dict[str, Any]) -> Iterator[float]:
        run = ft.current_run()
        say("worker", os.getpid(), run.trial)
        for step in range(run.step + 1, STEPS + 1):
            self.work(run.trial, step)
            (run.checkpoint_dir / "step").write_text(str(step))
            yield config["x"] + 1.0 / step


def study_of(path: str | Path, kind: str) -> ft.Study:
    options = {"policy": Alternating(), "max_steps": STEPS} if kind == "training" else {"policy": "random"}
    return ft.Study(SPACE, BUDGET, seed=5, storage=path, **options)


def objective_of(path: str | Path, kind: str, waits_at: int = 0) -> Plain:
    return (Training if kind == "training" else Plain)(gate_of(path), waits_at)


def announce(study: ft.Study, trial: ft.Trial) -> None:
    say("told", trial.number, trial.status.value, len(trial.curve), repr(trial.value))


class Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say("log", record.getMessage())


def live(path: str, kind: str, workers: str, waits_at: str) -> None:
    logging.getLogger("farthing").addHandler(Said())
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup, which would make it ignored
    isolate = False if kind == "here" else None
    with study_of(path, kind) as study:
        study.run(
            objective_of(path, kind, int(waits_at)), workers=int(workers), isolate=isolate, progress=False,
            callbacks=[announce],
        )  # fmt: skip


def nurse() -> None:
    import cloudpickle  # noqa: F401

    import farthing.runner.loop  # noqa: F401

    ft.tune(
        Plain(gate_of("")), SPACE, "2 evaluations", policy="random", progress=False
    )  # what is imported late is imported now
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
        except KeyboardInterrupt:
            code = 130  # as a shell shows it
        except BaseException:
            traceback.print_exc()
        os._exit(code)


if __name__ == "__main__":
    live(*sys.argv[1:]) if len(sys.argv) > 1 else nurse()
