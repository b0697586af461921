"""A heartbeat is checked like an event; what is left of it counts by the rules."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from study_files import SPACE

import farthing as ft
from farthing.errors import StorageError
from farthing.record.heartbeat import Heartbeat
from farthing.record.marks import HEARTBEAT, mark
from farthing.record.reader import read_study


def study_with(path: Path, body: object) -> None:
    """A file with a running trial, after four events, and this heartbeat."""
    with ft.Study(SPACE, "100s", policy="sobol", seed=0, storage=path) as study:
        study.tell(study.ask(), value=1.0, cost=2.0)
        study.ask()
    with closing(sqlite3.connect(path)) as connection:
        mark(connection, HEARTBEAT, body if isinstance(body, str) else json.dumps(body))
        connection.commit()


class TestCounting:
    BEAT = Heartbeat(5, {"optimiser": {"seconds": 1.0}}, {1: {"seconds": 2.0}, 2: {"seconds": 4.0}})

    @pytest.mark.parametrize(
        ("last", "running", "seconds"),
        [
            (5, {1: 3, 2: 5}, {"optimiser": 1.0, "interrupted": 6.0}),
            (5, {1: 3}, {"optimiser": 1.0, "interrupted": 2.0}),
            (6, {1: 3, 2: 5}, {"interrupted": 6.0}),
            (6, {1: 3, 2: 6}, {"interrupted": 2.0}),
            (6, {}, {}),
            (4, {1: 3, 2: 4}, {}),
        ],
    )
    def test_what_an_event_may_have_charged_does_not_count(self, last, running, seconds):
        counted = self.BEAT.counted(last, running)
        assert {account: amounts["seconds"] for account, amounts in counted.items()} == seconds

    def test_it_is_read_as_it_was_written(self):
        assert Heartbeat.read(self.BEAT.text()) == self.BEAT

    def test_amounts_read_before_an_event_are_left_out(self, tmp_path):
        path = tmp_path / "study.db"
        with ft.Study(SPACE, "100s", policy="sobol", seed=0, storage=path) as study:
            record, before = study._session.record, study._session.record.events
            study.ask()
            record.beat({"optimiser": {"seconds": 1.0}}, {}, after=before)
        assert read_study(path).ledger.total("seconds") == 0.0

    def test_a_file_that_cannot_be_written_is_not_mentioned(self, tmp_path):
        path = tmp_path / "study.db"
        with ft.Study(SPACE, "100s", policy="sobol", seed=0, storage=path) as study:
            study.ask()
            path.unlink()
            study._session.record.beat({"optimiser": {"seconds": 1.0}}, {0: {"seconds": 1.0}})
        ft.Study(SPACE, "100s")._session.record.beat({"optimiser": {"seconds": 1.0}}, {})


@pytest.mark.parametrize(
    "body",
    [
        {"after": 5, "due": {"optimiser": {"seconds": -1e9}}, "trials": {}},
        {"after": 5, "due": {"bribes": {"seconds": 1.0}}, "trials": {}},
        {"after": 5, "due": {"optimiser": {"gold": 1.0}}, "trials": {}},
        {"after": 5, "due": {}, "trials": {"1": {"seconds": -1.0}}},
        {"after": 5, "due": {}, "trials": {"x": {"seconds": 1.0}}},
        {"after": "x", "due": {}, "trials": {}},
        {"after": 5},
        "[" * 100_000,
        "5",
    ],
)
def test_a_heartbeat_that_nobody_can_have_written_is_refused(tmp_path, body):
    path = tmp_path / "study.db"
    study_with(path, body)
    for look in (read_study, ft.Study.resume):
        with pytest.raises(StorageError, match=r"study\.db: its heartbeat cannot be read"):
            look(path)


def test_a_damaged_heartbeat_is_said_and_left_out(tmp_path):
    path = tmp_path / "study.db"
    study_with(path, {"after": 5, "due": {"optimiser": {"seconds": 1.0}}, "trials": {}})
    assert read_study(path).ledger.total("seconds") == 3.0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE marks SET body = replace(body, '1.0', '9.0') WHERE number = ?", (HEARTBEAT,))
        connection.commit()
    with pytest.warns(RuntimeWarning, match="its mark of heartbeat is damaged: what was spent"):
        assert read_study(path).ledger.total("seconds") == 2.0
