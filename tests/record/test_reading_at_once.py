"""Events that are read at once make the same state, or the same error, as one value of a state after the other."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.budget import Ledger
from farthing.direction import Direction
from farthing.errors import StorageError
from farthing.record.events import Asked, Ended
from farthing.record.reader import read_study
from farthing.record.record import MANY, Record
from farthing.record.state import Event, GrowingState, State
from farthing.record.study_events import Charged, Noted
from farthing.trial import Status
from tests.large_files import large_file
from tests.random_events import KINDS, record_of, rows_of, spoiled


def outcome(record: Record, state: State | GrowingState, rows: list[tuple[str, str]]) -> State | str:
    record._last_of = {}
    try:
        found = record._after(state, rows, [10.0 + i for i in range(len(rows))], 1)
    except StorageError as error:
        return str(error)
    return found.state() if isinstance(found, GrowingState) else found


def all_of(state: State) -> list[Any]:
    """Everything in a state, also what is left out of comparisons."""
    history = state.history
    trials = [
        {**vars(trial), "place": (trial.key, trial.unit.tolist())} for trial in history.trials
    ]  # fmt: skip
    known = [history.trials.running, history.trials.cut_short, history.trials.best, history.trials.uncounted]
    counts = {status: history.count(status) for status in Status}
    ledger = state.budgeted and (state.budgeted.budget, state.budgeted.as_json())
    taken = [trial.key in history.taken for trial in history.trials]
    improved = [(step.trial, step.value, step.ledger and step.ledger.as_json()) for step in state.improvements]
    rest = [state.notes, state.objective, state.time, state.judged, history.asks, dict(history.fits)]
    return [trials, known, counts, ledger, taken, improved, rest, history.max_steps, history.worth]


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(KINDS), max_size=40), st.booleans(), st.booleans())
def test_events_read_at_once_make_the_state_that_they_make_one_by_one(seed, kinds, maximize, damaged):
    rng, record = random.Random(seed), record_of(maximize)
    rows = rows_of(record, kinds, rng)
    if damaged and rows:
        rows = spoiled(rows, rng)
    one_by_one = outcome(record, record.state, rows)
    last_of = record._last_of
    at_once = outcome(record, GrowingState(record.state), rows)
    assert isinstance(one_by_one, str) or last_of == record._last_of
    if isinstance(one_by_one, str) or isinstance(at_once, str):
        assert at_once == one_by_one
        return
    assert at_once == one_by_one
    assert all_of(at_once) == all_of(one_by_one)
    assert all_of(at_once.interrupted()) == all_of(one_by_one.interrupted())


def test_the_state_that_reading_begins_with_stays_as_it_was():
    record = record_of()
    rows = rows_of(record, [Asked, Ended, Charged] * 10, random.Random(1))
    before = record.after(record.state, rows, [1.0] * len(rows), 1)
    held = all_of(before)
    record._after(GrowingState(before), rows_of(record, [Charged, Noted], random.Random(2)), [1.0, 1.0], 1)
    assert all_of(before) == held
    assert isinstance(before.ledger, Ledger)


@pytest.mark.parametrize("options", [{}, {"fits": 3}, {"steps": 4}, {"maximize": True}])
def test_a_file_of_many_trials_reads_as_its_events_one_by_one(tmp_path, options):
    path = large_file(tmp_path / "study.db", 3 * MANY, **options)
    read = read_study(path).record
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT kind, body, time FROM events ORDER BY number").fetchall()[1:]
    state = read._first
    for kind, body, time in rows:
        state = Event.kinds[kind].read(json.loads(body), read._encoding).applied(state.at(time))
    assert all_of(read.state) == all_of(state.interrupted())
    assert read.direction == Direction(options.get("maximize", False))
