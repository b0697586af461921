"""Columns hold what each trial says, and are sorted and added up as trials one by one would be."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial
from farthing.history.columns import SORTED_BY, STATUSES
from farthing.policies.value_cost import bought
from farthing.record.reader import read_study
from farthing.trial import Status
from tests.large_files import large_file
from tests.random_events import KINDS, record_of, rows_of

NAMES = ("value", "cost", "predicted_cost", "began", "ended")


def history_of(seed: int):
    rng, record = random.Random(seed), record_of()
    rows = rows_of(record, [rng.choice(KINDS) for _ in range(80)], rng)
    return record.after(record.state, rows, [100.0 + i % 7 for i in range(len(rows))], 1).history


@pytest.mark.parametrize("seed", range(30))
def test_columns_hold_what_each_trial_says(seed):
    trials = history_of(seed).trials
    columns = trials.columns
    assert len(columns) == len(trials)
    assert [STATUSES[code] for code in columns.status] == [trial.status for trial in trials]
    for name in NAMES:
        known = [None if math.isnan(entry) else entry for entry in getattr(columns, name).tolist()]
        assert known == [getattr(trial, name) for trial in trials]
    assert columns.steps.tolist() == [len(trial.curve) for trial in trials]
    assert columns.unsuccessful.tolist() == [trial.unsuccessful for trial in trials]
    assert columns.added.tolist() == [trial.added for trial in trials]
    assert columns.where(Status.PAUSED, Status.FAILED).sum() == sum(
        trial.status in (Status.PAUSED, Status.FAILED) for trial in trials
    )


@pytest.mark.parametrize("seed", range(60))
def test_columns_add_up_what_was_bought_as_trials_one_by_one(seed):
    trials = history_of(seed).trials
    try:
        points = bought(trials)
    except NoTrial as error:
        with pytest.raises(NoTrial, match=str(error).split("is not")[0]):
            _ = trials.columns.bought
        return
    found = trials.columns.bought
    assert found.cost.tolist() == [point.cost for point in points]
    assert found.value.tolist() == [point.value for point in points]


@pytest.mark.parametrize("by", SORTED_BY)
@pytest.mark.parametrize("descending", [False, True])
def test_trials_are_sorted_with_what_is_not_known_last(by, descending):
    columns = history_of(7).trials.columns
    order = columns.order(by, descending=descending)
    assert sorted(order.tolist()) == list(range(len(columns)))
    entries = np.asarray(getattr(columns, by), dtype=float)[order]
    known = entries[~np.isnan(entries)]
    assert not np.isnan(entries[: len(known)]).any()
    steps = np.diff(known)
    assert (steps <= 0).all() if descending else (steps >= 0).all()
    equal = steps == 0
    assert (np.diff(order[: len(known)])[equal] > 0).all()


def test_trials_are_sorted_by_columns_only():
    with pytest.raises(InvalidArgument, match="sort: expected one of 'number', 'status'"):
        history_of(1).trials.columns.order("__class__")


def test_columns_of_results_have_the_users_sign_and_a_page_has_the_trials_of_its_numbers(tmp_path):
    study = read_study(large_file(tmp_path / "study.db", 60, maximize=True))
    values = [trial.value for trial in study.trials]
    assert [None if math.isnan(value) else value for value in study.columns.value.tolist()] == values
    best = study.columns.order("value", descending=True)[:3]
    assert study.some(best)[0] == study.best
    assert [trial.number for trial in study.some(best)] == best.tolist()
    assert study.columns is study.columns, "made once for each version"


def test_a_study_without_trials_has_empty_columns():
    columns = ft.Study(ft.Space(x=ft.Real(0, 1)), "3 evaluations")._history.trials.columns
    assert len(columns) == 0
    assert len(columns.bought.value) == 0
    assert columns.order("cost").tolist() == []
