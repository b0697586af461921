"""A glance at a study file finds what the figure of the whole study shows, and refuses what is no study."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.errors import FarthingError, NoTrial, StorageError
from farthing.record.glance import glance
from farthing.record.state import write_event
from farthing.record.storage import SQLiteLog
from farthing.record.study_events import Budgeted
from tests.large_files import large_file
from tests.random_events import KINDS, record_of, rows_of
from tests.record.study_files import FILES, old_file


def bought_by(study):
    """By the trials of a whole study; where only evaluations are limited, each costs one."""
    columns = study._session.history.trials.columns
    if study.ledger.budget.paid_in == "evaluations":
        columns = replace(columns, cost=np.ones(len(columns)))
    return columns.bought


def require_same(path) -> None:
    study = ft.Study.open(path)
    try:
        expected = bought_by(study)
    except NoTrial:
        with pytest.raises(NoTrial, match="is not known"):
            glance(path)
        return
    found = glance(path)
    assert np.array_equal(found.cost, expected.cost)
    sign, budget = -1.0 if study.maximize else 1.0, study.ledger.budget
    assert np.array_equal(found.value, sign * expected.value)
    assert (found.unit, found.limit) == (budget.paid_in, budget.limits[budget.paid_in])
    assert found.maximize is study.maximize
    assert found.trials == len(study.trials)


@pytest.mark.parametrize("options", [{}, {"steps": 5}, {"maximize": True}, {"fits": 2}])
def test_a_glance_finds_what_the_figure_shows(tmp_path, options):
    require_same(large_file(tmp_path / "study.db", 150, **options))


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".db.gz") for path in FILES.glob("*.db.gz")))
def test_a_glance_at_an_old_file_finds_what_its_figure_shows(tmp_path, name):
    require_same(old_file(name, tmp_path / "study.db"))


@pytest.mark.parametrize("seed", range(60))
def test_a_glance_follows_whatever_can_happen_to_trials(tmp_path, seed):
    """Trials go on, are trained again, are given up and known from elsewhere, and their costs may be unknown."""
    rng, record = random.Random(seed), record_of(maximize=seed % 2 == 1)
    rows = rows_of(record, [rng.choice(KINDS) for _ in range(80)], rng)
    if seed % 3:
        rows = [(kind, text.replace('"cost":null', '"cost":0.5')) for kind, text in rows]
    if seed % 4 == 1:
        rows = [(kind, text.replace('":', '": ')) for kind, text in rows]  # by another writer of JSON
    begun = [write_event(event, record._encoding) for event in (record.settings, Budgeted(ft.Budget(cost=9.0)))]
    path = tmp_path / "study.db"
    with closing(SQLiteLog(path)) as log:
        log._write([(i, 100.0 + i % 7, *row) for i, row in enumerate([*begun, *rows], 1)])
    require_same(path)


def test_a_glance_at_a_study_that_runs_leaves_out_what_is_running(tmp_path):
    path = tmp_path / "study.db"
    with ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=9), policy="random", seed=0, storage=path) as study:
        study.tell(study.ask(), value=2.0, cost=1.0)
        proposal = study.ask()
        study.report(proposal, 1.0, cost=3.0)
        require_same(path)
        assert glance(path).value.tolist() == [2.0]
        before = path.read_bytes(), sorted(file.name for file in tmp_path.iterdir())
        glance(path)
        assert (path.read_bytes(), sorted(file.name for file in tmp_path.iterdir())) == before
    require_same(path)


def test_a_glance_refuses_what_is_no_study(tmp_path):
    path = tmp_path / "study.db"
    with pytest.raises(StorageError, match="there is no such study file"):
        glance(path)
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="is empty"):
        glance(path)
    path.write_text("no database at all, " * 1000)
    with pytest.raises(StorageError, match="cannot be read at a glance"):
        glance(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (number, time, kind, body)")
    with pytest.raises(StorageError, match="not a Farthing study"):
        glance(path)


def test_a_glance_at_a_damaged_file_ends_with_our_error_or_with_numbers(tmp_path):
    path = large_file(tmp_path / "study.db", 40)
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        with suppress(FarthingError):
            found = glance(path)
            assert np.isfinite(found.value).all()
            assert np.isfinite(found.cost).all()
