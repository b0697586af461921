"""What a run of trainings shows and tells its callbacks."""

from __future__ import annotations

import io
import math
import sys
import time
from typing import Any

import pytest

import farthing as ft
from farthing.runner import progress
from learners import (
    Alternating,
    Halving,
    cost_of,
    iterative,
    learner,
    run_iterative,
)

pytestmark = pytest.mark.usefixtures("logged")


class TestShown:
    """There is a line, and a call of the callbacks, for each trial that ends or pauses."""

    def shown(self, objective: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[ft.Study, list[str]]:
        written = io.StringIO()
        monkeypatch.setattr(sys, "stderr", written)
        study = iterative(**options)
        study.run(objective, progress=True)
        return study, written.getvalue().splitlines()

    def test_a_line_for_each_pause_and_each_end(self, monkeypatch):
        _, lines = self.shown(learner, monkeypatch, budget=ft.Budget(cost=8), policy=Alternating(width=1, stride=3))
        assert lines[0].startswith("trial 0: paused after step 3, value ")
        assert ", cost 1.5; best " in lines[0]
        assert "0 done, 1 paused, " in lines[0]
        assert lines[1].startswith("trial 0: value ")
        assert "1 done, " in lines[1]
        assert "paused" not in lines[1]
        assert lines[3].startswith("trial 1: paused after step 5, value "), "the budget was spent"
        assert lines[4:] == ["ended: the budget of 8 cost is spent"]

    def test_a_failure_after_some_steps_is_shown_as_one(self, monkeypatch):
        _, lines = self.shown(lambda config: iter([1.0, math.nan]), monkeypatch, budget="2 evaluations", policy="sobol")
        assert lines[0].startswith("trial 0: failed: the value must be finite, got nan, cost ")
        assert "best none yet, 0 done, 1 failed" in lines[0]

    def test_stopped_ones_are_counted(self, monkeypatch):
        _, lines = self.shown(learner, monkeypatch, policy=Halving(), budget=ft.Budget(cost=10))
        assert any("stopped after step" in line for line in lines)
        assert any(" stopped, " in line.partition(";")[2] for line in lines)

    def test_the_live_line_counts_no_step_twice(self, fake_time):
        """Its bar shows what the ledger says and the time since then, not the time since the training began."""
        study = iterative("10s", policy="sobol", max_steps=None)
        line = progress.Live(study._session, io.StringIO())

        def objective(config):
            for _ in range(4):
                time.sleep(0.05)
                yield 1.0
                line.stepped()
                assert line._fraction_now() < 0.03 * len(study.trials)
            study.stop()

        line.trial_began(ft.Proposal(0, {}))
        study.run(objective, isolate=False, progress=False)
        assert line._fraction_now() < 0.04
        assert "1 done" in progress.summary(study._session)

    def test_callbacks_may_look_at_everything(self):
        seen = []

        def look(study, trial):
            seen.append((trial.number, trial.status.value, len(trial.curve)))
            assert trial == study.trials[trial.number]
            repr(study), str(study.ledger), study.best, study.to_frame(), study.recommended

        study = run_iterative(learner, ft.Budget(cost=12), callbacks=[look])
        assert seen[:4] == [(0, "paused", 1), (1, "paused", 1), (2, "paused", 1), (0, "paused", 2)]
        assert len(seen) == sum(len(trial.curve) for trial in study.trials)

    def test_a_callback_can_stop_a_run_with_paused_trials_and_it_can_be_resumed(self):
        study = iterative()
        study.run(learner, progress=False, callbacks=[lambda study, trial: study.stop()])
        assert [trial.status.value for trial in study.trials] == ["paused"]
        study.run(learner, progress=False)
        assert study.ledger.account("retrained") == cost_of(1)
