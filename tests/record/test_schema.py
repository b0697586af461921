"""Files of an older version are migrated to the newest by whoever writes first, completely or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from study_files import pragma, rows, small_study, version_1

import farthing as ft
from farthing.errors import StorageError
from farthing.record.lock import exclusive
from farthing.record.reader import read_study
from farthing.record.schema import CURRENT, VERSION_2, Format
from farthing.record.storage import SQLiteLog


def with_a_note(connection: sqlite3.Connection) -> None:
    """Version 3 of these tests: a column more."""
    remade(connection, NOTED)


def torn(connection: sqlite3.Connection) -> None:
    with_a_note(connection)
    raise RuntimeError("the lights went out")


def careless(connection: sqlite3.Connection) -> None:
    with_a_note(connection)
    connection.execute("CREATE TABLE forgotten (x)")


def without_notes(connection: sqlite3.Connection) -> None:
    remade(connection, VERSION_2["events"])


def remade(connection: sqlite3.Connection, table: str) -> None:
    columns = "number, time, kind, body, checksum"
    connection.execute("ALTER TABLE events RENAME TO old")
    connection.execute(table)
    connection.execute(f"INSERT INTO events ({columns}) SELECT {columns} FROM old ORDER BY number")
    connection.execute("DROP TABLE old")


NOTED = VERSION_2["events"].replace(
    "checksum INTEGER NOT NULL", "checksum INTEGER NOT NULL,\n    note TEXT NOT NULL DEFAULT ''"
)

THIRD = Format(
    3, {**CURRENT.tables, 3: {**VERSION_2, "events": NOTED}}, {**CURRENT.migrations, 2: with_a_note}
)  # fmt: skip
FOURTH = Format(4, {**THIRD.tables, 4: VERSION_2}, {**THIRD.migrations, 3: without_notes})


class TestMigrations:
    """A file of an older version is brought to the newest, all the way or not at all."""

    def test_every_version_leads_to_the_newest(self):
        assert set(CURRENT.tables) == set(range(1, CURRENT.version + 1))
        assert set(CURRENT.migrations) == set(range(1, CURRENT.version))

    @pytest.mark.parametrize("form", [THIRD, FOURTH], ids=["to 3", "to 4"])
    @pytest.mark.parametrize("make", [small_study, version_1], ids=["from 2", "from 1"])
    def test_an_older_file_opens_after_there_is_a_newer_version(self, tmp_path, make, form):
        path = tmp_path / "study.db"
        make(path)
        before = [(kind, body) for _, kind, body in rows(path)]
        for _ in range(2):
            with closing(SQLiteLog(path, form)) as log:
                assert list(log.read()) == before
                log.append(("told", "{}"))
                before.append(("told", "{}"))
        assert pragma(path, "user_version") == form.version
        assert pragma(path, "integrity_check") == "ok"
        with pytest.raises(StorageError, match=f"schema version {form.version}, this Farthing reads version 2;"):
            SQLiteLog(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]

    @pytest.mark.parametrize(
        ("migration", "message"), [(torn, "the lights went out"), (careless, "holds a table 'forgotten'")]
    )
    def test_a_migration_that_fails_leaves_the_file_as_it_was(self, tmp_path, migration, message):
        path = tmp_path / "study.db"
        small_study(path)
        before = path.read_bytes()
        form = Format(3, THIRD.tables, {**CURRENT.migrations, 2: migration})
        with (
            pytest.raises(StorageError, match=rf"study\.db: could not be brought to schema version 3.*{message}"),
            closing(SQLiteLog(path, form)) as log,
        ):
            log.append(("told", "{}"))
        assert path.read_bytes() == before
        with ft.Study.resume(path) as study:
            assert len(study.trials) == 2

    def test_a_file_that_is_being_run_is_not_migrated_by_another_process(self, tmp_path):
        """Within the process that runs it the first write migrates it; a second study is told by the lock."""
        path = tmp_path / "study.db"
        version_1(path)
        with exclusive(path), ft.Study.resume(path) as study, pytest.raises(StorageError, match="is being run by"):
            study.note(mine=1)
        assert pragma(path, "user_version") == 1

    def test_looking_at_an_older_file_changes_nothing_and_the_first_write_migrates_it(self, tmp_path):
        path = tmp_path / "study.db"
        version_1(path)
        before = path.read_bytes()
        assert len(read_study(path).trials) == 2
        with ft.Study.resume(path) as study:
            values = [trial.value for trial in study.trials]
        assert path.read_bytes() == before
        with ft.Study.resume(path) as study:
            study.tell(study.ask(), value=3.0)
        assert pragma(path, "user_version") == 2
        assert [trial.value for trial in read_study(path).trials] == [*values, 3.0]
