"""Files of an older version are migrated to the newest, completely or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from study_files import pragma, rows, small_study

import farthing as ft
from farthing.errors import StorageError
from farthing.record.lock import exclusive
from farthing.record.schema import CURRENT, TABLE, Format
from farthing.record.storage import SQLiteLog


def with_a_note(connection: sqlite3.Connection) -> None:
    """Version 2 of these tests: a column more."""
    connection.execute("ALTER TABLE events RENAME TO old")
    connection.execute(NOTED)
    connection.execute("INSERT INTO events SELECT number, time, kind, body, 'from 1' FROM old ORDER BY number")
    connection.execute("DROP TABLE old")


def torn(connection: sqlite3.Connection) -> None:
    with_a_note(connection)
    raise RuntimeError("the lights went out")


def careless(connection: sqlite3.Connection) -> None:
    with_a_note(connection)
    connection.execute("CREATE TABLE forgotten (x)")


NOTED = TABLE.replace("body   TEXT NOT NULL", "body   TEXT NOT NULL,\n    note TEXT NOT NULL DEFAULT ''")

SECOND = Format(2, {1: TABLE, 2: NOTED}, {1: with_a_note})

THIRD = Format(3, {**SECOND.tables, 3: TABLE}, {1: with_a_note, 2: lambda connection: without_notes(connection)})


def without_notes(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE events RENAME TO old")
    connection.execute(TABLE)
    connection.execute("INSERT INTO events SELECT number, time, kind, body FROM old ORDER BY number")
    connection.execute("DROP TABLE old")


class TestMigrations:
    """A file of an older version is brought to the newest, all the way or not at all."""

    def test_every_version_leads_to_the_newest(self):
        assert set(CURRENT.tables) == set(range(1, CURRENT.version + 1))
        assert set(CURRENT.migrations) == set(range(1, CURRENT.version))

    @pytest.mark.parametrize("form", [SECOND, THIRD], ids=["1 to 2", "1 to 3"])
    def test_a_file_of_version_1_opens_after_there_is_a_newer_one(self, tmp_path, form):
        path = tmp_path / "study.db"
        small_study(path)
        before = [(kind, body) for _, kind, body in rows(path)]
        for _ in range(2):
            with closing(SQLiteLog(path, form)) as log:
                assert list(log.read()) == before
                log.append(("told", "{}"))
                before.append(("told", "{}"))
        assert pragma(path, "user_version") == form.version
        assert pragma(path, "integrity_check") == "ok"
        with pytest.raises(StorageError, match=f"schema version {form.version}, this Farthing reads version 1;"):
            SQLiteLog(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]

    @pytest.mark.parametrize(
        ("migration", "message"), [(torn, "the lights went out"), (careless, "holds a table 'forgotten'")]
    )
    def test_a_migration_that_fails_leaves_the_file_as_it_was(self, tmp_path, migration, message):
        path = tmp_path / "study.db"
        small_study(path)
        before = path.read_bytes()
        with pytest.raises(StorageError, match=rf"study\.db: could not be brought to schema version 2.*{message}"):
            SQLiteLog(path, Format(2, SECOND.tables, {1: migration}))
        assert path.read_bytes() == before
        with ft.Study.resume(path) as study:
            assert len(study.trials) == 2

    def test_a_file_that_is_being_run_is_not_migrated(self, tmp_path):
        path = tmp_path / "study.db"
        small_study(path)
        with exclusive(path), pytest.raises(StorageError, match="is being run by"):
            SQLiteLog(path, SECOND)
        assert pragma(path, "user_version") == 1
