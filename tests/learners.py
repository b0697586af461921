"""Iterative learners, and policies that pause them, for the tests of both."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import farthing as ft
from farthing.errors import StudyEnded
from farthing.record.storage import SQLiteLog, salvage

LINE = ft.Space(x=ft.Real(0, 1))
STEPS = 6

Config = dict[str, Any]
Learner = Callable[[Config], Iterator[Any]]


def value_at(config: Config, step: int) -> float:
    """Falls with the steps; the first step already shows which configuration is best."""
    return float((config["x"] - 0.3) ** 2 + 1.0 / step)


def curve_of(config: Config, steps: int = STEPS) -> tuple[float, ...]:
    return tuple(value_at(config, step) for step in range(1, steps + 1))


def cost_of(step: int) -> float:
    """Sums of these are exact."""
    return 0.25 * step


def steps_from(config: Config, first: int, last: int = STEPS) -> Iterator[dict[str, float]]:
    """The steps after `first`, with their costs."""
    for step in range(first + 1, last + 1):
        yield {"value": value_at(config, step), "cost": cost_of(step)}


def learner(config: Config) -> Iterator[Any]:
    """Writes no checkpoints."""
    return steps_from(config, 0)


def saving(config: Config) -> Iterator[Any]:
    """Writes a checkpoint before every yield, in place."""
    run = ft.current_run()
    file = run.checkpoint_dir / "state"
    if run.step:
        assert int(file.read_text()) >= run.step, "a checkpoint of an earlier step"
    for step, report in enumerate(steps_from(config, run.step), start=run.step + 1):
        file.write_text(str(step))
        yield report


@dataclass(frozen=True)
class Alternating:
    """Keeps `width` trainings going, each in turn for `stride` steps; new ones are random."""

    name: ClassVar[str] = "alternating"
    width: int = 3
    stride: int = 1

    def propose(self, space, history, ledger, n, rng):
        paused = history.of(ft.Status.PAUSED)
        if len(paused) >= self.width:
            least = min(paused, key=lambda trial: (len(trial.curve), trial.number))
            return [ft.Proposal(least.number, least.config, start_step=least.kept_step)]
        return [ft.Proposal(len(history.trials), {"x": float(rng.random())})]

    def decide(self, space, history, ledger, trial, rng):
        assert trial is history.trials[trial.number]
        assert (trial.status, trial.kept_step) == (ft.Status.RUNNING, len(trial.curve))
        return ft.Decision.PAUSE if trial.kept_step % self.stride == 0 else ft.Decision.CONTINUE


@dataclass(frozen=True)
class Halving:
    """Pauses by `until_step` and stops what is worse than the median of its step; draws on the generator."""

    name: ClassVar[str] = "halving"

    def propose(self, space, history, ledger, n, rng):
        paused = [trial for trial in history.of(ft.Status.PAUSED) if len(trial.curve) == 2]
        if len(paused) >= 3:
            best = min(paused, key=lambda trial: trial.value)
            return [ft.Proposal(best.number, best.config, start_step=best.kept_step, until_step=5)]
        return [ft.Proposal(len(history.trials), {"x": float(rng.random())}, until_step=2)]

    def decide(self, space, history, ledger, trial, rng):
        at = [t.curve.values[trial.kept_step - 1] for t in history.trials if len(t.curve) >= trial.kept_step]
        worse = trial.curve.values[-1] > np.median(at)
        return ft.Decision.STOP if worse and rng.random() < 0.7 else ft.Decision.CONTINUE


def iterative(budget: str | ft.Budget | None = None, **options: Any) -> ft.Study:
    """A study of trainings of STEPS steps, which take turns."""
    budget = budget or ft.Budget(cost=30)
    return ft.Study(LINE, budget, **{"policy": Alternating(), "seed": 0, "max_steps": STEPS, **options})


def run_iterative(objective: Any, budget: str | ft.Budget | None = None, **options: Any) -> ft.Study:
    """Run such a study without a word; `callbacks` and `paused_limit` are those of `run`."""
    running = {name: options.pop(name) for name in ("callbacks", "paused_limit") if name in options}
    return iterative(budget, **options).run(objective, progress=False, **running)


class Closing:
    """A learner that is not a generator, and wants to be closed."""

    def __init__(self, closed: list[float], steps: Any) -> None:
        self._closed, self._steps = closed, steps

    def __next__(self) -> Any:
        step = next(self._steps)
        if isinstance(step, BaseException):
            raise step
        return step

    def close(self) -> None:
        self._closed.append(ft.current_run().trial)


def bodies(path: str | Path, *kinds: str) -> list[dict[str, Any]]:
    """The stored events of some kinds, as they are in the file, each with its kind; the file and its log stay as they
    are."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT kind, body FROM events ORDER BY number").fetchall()
    return [{"kind": kind, **json.loads(body)} for kind, body in found if not kinds or kind in kinds]


def cut_copy(path: Path, copy: Path, events: int) -> None:
    """Only the first events: what a process leaves behind that is killed then, as an event is a transaction."""
    copy.unlink(missing_ok=True)
    if events:
        assert salvage(path, copy, events=events) == events
    else:
        with closing(SQLiteLog(copy)) as log:
            log.append()


# -- loops of one's own ------------------------------------------------------------------------------------------------


def proposals_of(study: ft.Study) -> Iterator[ft.Proposal]:
    """Until the study ends."""
    with suppress(StudyEnded):
        while True:
            yield study.ask()


def train_steps(
    study: ft.Study,
    proposal: ft.Proposal,
    value_at: Callable[[Config, int], float],
    step_cost: Callable[[Config], float],
) -> None:
    """Step after step, as long as the study says so."""
    step, decision = proposal.start_step, ft.Decision.CONTINUE
    while decision is ft.Decision.CONTINUE:
        step += 1
        decision = study.report(proposal, value_at(proposal.config, step), cost=step_cost(proposal.config))
