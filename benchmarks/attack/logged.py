"""Objectives that write every evaluation to a side log, synced to the disk, before they return it.

The side log is what an attack on the record is compared with. A line is one JSON object, written with one call, so that
it is whole or not there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import farthing as ft

Config = dict[str, Any]

LOG = "ATTACK_LOG"
STEPS = 5
SPACE = ft.Space(
    x=ft.Real(-5, 10),
    depth=ft.Integer(1, 16),
    kind=ft.Choice(["a", "b", "c"]),
    rate=ft.Real(1e-3, 1.0, log=True, when={"kind": "b"}),
)
SPACE_FILE = """\
x = {type = "real", low = -5.0, high = 10.0}
depth = {type = "integer", low = 1, high = 16}
kind = {type = "choice", options = ["a", "b", "c"]}
rate = {type = "real", low = 1e-3, high = 1.0, log = true, when = {kind = "b"}}
"""


def value_of(config: Config, step: int = STEPS) -> float:
    return float((config["x"] - 2.0) ** 2 + 0.1 * config["depth"] + config.get("rate", 0.5) + 1.0 / step)


def note(log: str | Path, **line: Any) -> None:
    """One line, on the disk when this returns."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
        os.fsync(file)
    finally:
        os.close(file)


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@dataclass(frozen=True)
class BlackBox:
    """Takes 3 to 10 milliseconds."""

    log: str

    def __call__(self, config: Config) -> float:
        time.sleep(0.003 + 0.007 * config["depth"] / 16)
        value = value_of(config)
        note(self.log, did="value", trial=ft.current_run().trial, config=config, value=value)
        return value


@dataclass(frozen=True)
class Training:
    """Writes a checkpoint before each step that it yields."""

    log: str

    def __call__(self, config: Config) -> Iterator[float]:
        run = ft.current_run()
        for step in range(run.step + 1, STEPS + 1):
            time.sleep(0.003)
            value = value_of(config, step)
            (run.checkpoint_dir / f"step-{step}").write_text(str(step))
            note(self.log, did="step", trial=run.trial, config=config, value=value, step=step)
            yield value


@dataclass(frozen=True)
class Told:
    """A callback: a trial is on disk before it is called, so what it notes must never be lost."""

    log: str

    def __call__(self, study: ft.Study, trial: ft.Trial) -> None:
        note(self.log, did="told", trial=trial.number, status=trial.status.value, value=trial.value)


@dataclass(frozen=True)
class InTurns:
    """A policy that keeps three trainings going, each in turn for two steps; new ones are random."""

    name: ClassVar[str] = "in turns"

    def propose(self, space: Any, history: Any, ledger: Any, n: int, rng: Any) -> list[ft.Proposal]:
        paused = history.of(ft.Status.PAUSED)
        if len(paused) >= 3:
            least = min(paused, key=lambda trial: (len(trial.curve), trial.number))
            return [ft.Proposal(least.number, least.config, start_step=least.kept_step)]
        config = {"x": float(rng.uniform(-5, 10)), "depth": int(rng.integers(1, 17)), "kind": "a"}
        return [ft.Proposal(len(history.trials), config)]

    def decide(self, space: Any, history: Any, ledger: Any, trial: Any, rng: Any) -> ft.Decision:
        return ft.Decision.PAUSE if trial.kept_step % 2 == 0 else ft.Decision.CONTINUE


def study_of(mode: str, path: str | Path | None, seed: int, budget: str) -> ft.Study:
    """The study of a mode, new or continued."""
    if mode == "yielding":
        return ft.Study(SPACE, budget, policy=InTurns(), seed=seed, storage=path, max_steps=STEPS)
    return ft.Study(SPACE, budget, policy=policy_of(mode, seed), seed=seed, storage=path)


def policy_of(mode: str, seed: int) -> str:
    """Every third study in process models its values; what does not model is fast and fills the file."""
    return "ei" if mode in ("black box", "CLI function") and seed % 3 == 0 else "sobol"


def live(mode: str, path: str | Path | None, log: str, seed: int, budget: str) -> None:
    """One life of a study in Python: it runs until it is killed, or its budget is spent."""
    objective = Training(log) if mode == "yielding" else BlackBox(log)
    with study_of(mode, path, seed, budget) as study:
        study.run(
            objective, workers=2 if mode == "workers" else 1, isolate=mode != "black box", progress=False,
            callbacks=[Told(log)],
        )  # fmt: skip


def objective(config: Config) -> float:
    """For the command line: the side log is named by the environment."""
    return BlackBox(os.environ[LOG])(config)
