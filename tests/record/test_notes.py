"""Notes in a study file are read again, and files from before there were notes can still be read."""

from __future__ import annotations

import json
import sqlite3

import pytest

import farthing as ft
from farthing.record.lock import exclusive
from stored_events import change

SPACE = ft.Space(x=ft.Real(0, 1))


def kinds(path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [kind for (kind,) in connection.execute("SELECT kind FROM events ORDER BY number")]
    connection.close()
    return found


def test_notes_are_kept_and_replaced_and_written_only_when_they_differ(tmp_path):
    path = tmp_path / "s.db"
    with ft.Study(SPACE, "3 evaluations", storage=path) as study:
        assert study.notes == {}
        study.note(command="a {x}", deep={"list": [1, None]})
        study.note(command="a {x}", deep={"list": [1, None]})
        study.notes["command"] = "altered"
        study.tell(study.ask(), value=1.0)
    with ft.Study.resume(path) as study:
        assert study.notes == {"command": "a {x}", "deep": {"list": [1, None]}}
        study.note(command="b")
        study.tell(study.ask(), value=2.0)
        assert study.best.value == 1.0
    with ft.Study.resume(path) as study:
        assert study.notes == {"command": "b"}
    assert kinds(path) == ["opened", "budgeted", "noted", "asked", "told", "noted", "asked", "told"]


def test_nothing_is_noted_while_another_runs_the_study(tmp_path):
    with ft.Study(SPACE, "3 evaluations", storage=tmp_path / "s.db") as study:
        with exclusive(tmp_path / "s.db"), pytest.raises(ft.errors.StorageError, match="is being run by"):
            study.note(command="a")
        assert study.notes == {}


@pytest.mark.parametrize("body", [{"notes": [1]}, {"notes": None}, {}])
def test_invalid_notes_are_refused_by_the_number_of_the_event(tmp_path, body):
    path = tmp_path / "s.db"
    ft.Study(SPACE, "3 evaluations", storage=path).close()
    change(path, "INSERT INTO events VALUES (3, 0.0, 'noted', ?, 0)", (json.dumps(body),))
    with pytest.raises(ft.errors.StorageError, match="event 3 cannot be read"):
        ft.Study.resume(path)
