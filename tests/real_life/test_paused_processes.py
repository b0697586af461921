"""Paused learners give their processes back where that loses nothing, and hold a bounded amount of memory."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.policies.sampling import Random
from farthing.trial import Decision, Proposal

SPACE = ft.Space(x=ft.Real(0, 1))
STEPS = 4


@dataclass(frozen=True)
class Pausing(Random):
    """Begins `width` runs, pauses each after its second step, and then resumes them one after the other."""

    name: ClassVar[str] = "pausing"
    width: int = 4

    def propose(self, space, history, ledger, n, rng):
        if len(history.trials) < self.width:
            return super().propose(space, history, ledger, 1, rng)
        paused = [trial for trial in history.trials if trial.status is ft.Status.PAUSED]
        return [Proposal(trial.number, trial.config, start_step=trial.kept_step) for trial in paused[:1]]

    def decide(self, space, history, ledger, trial, rng):
        return Decision.PAUSE if trial.kept_step == 2 else Decision.CONTINUE


def run(objective, budget="10m", **options) -> ft.Study:
    with ft.Study(SPACE, budget, policy=Pausing(), max_steps=STEPS) as study:
        study.run(objective, isolate=True, progress=False, **options)
    assert study.count(ft.Status.COMPLETE) == 4
    assert all(len(trial.curve) == STEPS for trial in study.trials)
    return study


def learner(cost: float | None = None, saves: bool = False, megabytes: int = 0):
    """Steps of a moment, or that say they cost so much; each says in which process it was trained."""

    def objective(config):
        run, held, processes = ft.current_run(), np.ones(megabytes << 17), []
        for step in range(run.step + 1, STEPS + 1):
            if saves:
                (run.checkpoint_dir / "step").write_text(str(step))
            processes.append(os.getpid())
            step_of = {"value": config["x"] + 1.0 / step, "processes": list(processes), "held": held.nbytes}
            yield step_of if cost is None else {**step_of, "cost": cost}

    return objective


class TestGivenBack:
    def test_a_learner_with_a_checkpoint_needs_no_process_while_it_is_paused(self):
        """One process is enough for all of them, and one may have been started ahead; nothing is lost."""
        study = run(learner(saves=True))
        used = {pid for trial in study.trials for pid in trial.attributes["processes"]}
        assert len(used) <= 2, "each paused learner kept a process of its own"
        assert "retrained" not in study.ledger.accounts

    def test_nor_does_one_that_was_trained_for_less_than_a_process_takes_to_start(self):
        study = run(learner())
        assert "retrained" in study.ledger.accounts, "each paused learner kept a process of its own"
        assert study.ledger.total("evaluations") == 4
        kept = {
            "after steps that cost 5 seconds": run(learner(cost=5.0)),
            "where training costs something else than time": run(learner(cost=1e-6), ft.Budget(cost=1.0)),
        }
        assert [why for why, study in kept.items() if "retrained" in study.ledger.accounts] == []


class TestMemory:
    """Learners of 80 MB, each trained for longer than a process takes to start."""

    def test_beyond_the_limit_the_worst_are_closed(self):
        assert "paused_memory" in inspect.signature(ft.Study.run).parameters, "memory of paused runs has no bound"
        study = run(learner(cost=5.0, megabytes=80), paused_memory="300MB")
        by_value = sorted(study.trials, key=lambda trial: trial.curve.values[1])
        again = [trial.number for trial in study.trials if trial.cost > STEPS * 5.0]
        assert 1 <= len(again) <= 3
        assert by_value[0].number not in again
        assert by_value[-1].number in again
        unlimited = run(learner(cost=5.0, megabytes=80))  # by default a quarter of what is available is enough
        assert "retrained" not in unlimited.ledger.accounts

    @pytest.mark.parametrize("given", ["much", 0, "2 bananas", True])
    def test_nonsense_is_refused(self, given):
        study = ft.Study(SPACE, "4 evaluations")
        assert "paused_memory" in inspect.signature(study.run).parameters
        with pytest.raises(ft.errors.InvalidArgument, match="paused_memory"):
            study.run(lambda config: 1.0, paused_memory=given, progress=False)
