"""Four processes share one study through its storage, and no more than that."""

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from optuna_worker import STUDY, storage_of

import farthing as ft
from called import PATIENCE
from farthing.adapters.optuna import FarthingSampler

WORKER = Path(__file__).with_name("optuna_worker.py")
PROCESSES = 4
BUDGET = 24.0


@pytest.fixture(params=["study.db", "study.journal"])
def shared(request, tmp_path):
    """The study that four processes have run to the end of its budget."""
    path = str(tmp_path / request.param)
    optuna.create_study(study_name=STUDY, storage=storage_of(path))
    command = [sys.executable, str(WORKER), path, str(BUDGET)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    for process in started:
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    return optuna.load_study(study_name=STUDY, storage=storage_of(path))


def test_the_budget_is_kept_and_nothing_is_evaluated_twice_but_by_asks_that_overlap(shared):
    trials = [trial for trial in shared.trials if trial.params]
    assert all(trial.state is TrialState.COMPLETE for trial in trials)
    asks = [(trial.datetime_start.timestamp(), trial.user_attrs["asked"], trial.params) for trial in trials]
    for (began, ended, params), (other_began, other_ended, other) in combinations(asks, 2):
        assert params != other or (began <= other_ended and other_began <= ended)
    spent, after = 0.0, 0
    for trial in sorted(trials, key=lambda trial: trial.datetime_complete):
        after += spent >= BUDGET
        spent += trial.user_attrs["spent"]
    assert spent >= BUDGET
    assert after <= PROCESSES
    ledger = FarthingSampler(ft.Budget(cost=BUDGET), cost="spent").ledger(shared)
    assert ledger.spent == pytest.approx(spent)
