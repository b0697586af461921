"""The event log: events are on disk, whole and in order; files that are not studies are refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_files import OPENERS, SPACE, a_text, pragma, rows, small_study

import farthing as ft
from farthing.errors import StorageError
from farthing.record.storage import SCHEMA_VERSION, MemoryLog, SQLiteLog, open_log


@pytest.fixture(params=["memory", "file"])
def log(request, tmp_path) -> Iterator[MemoryLog | SQLiteLog]:
    opened = open_log(None if request.param == "memory" else tmp_path / "events.db")
    yield opened
    opened.close()


class TestEvents:
    """Events come back as they went in."""

    @settings(max_examples=30, deadline=None)
    @given(events=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=40)), max_size=6))
    def test_events_come_back_in_order_and_exactly(self, events):
        with tempfile.TemporaryDirectory() as folder:
            for log in (MemoryLog(), SQLiteLog(Path(folder) / "events.db")):
                for event in events:
                    log.append(event)
                assert list(log.read()) == events
                log.close()
            with closing(SQLiteLog(Path(folder) / "events.db")) as again:
                assert list(again.read()) == events

    def test_a_large_event_comes_back_whole(self, log):
        body = "ä\x00'\";--" * 100_000
        log.append(("told", body))
        assert list(log.read()) == [("told", body)]

    def test_reading_does_not_use_events_up(self, log):
        log.append(("a", "1"))
        assert list(log.read()) == list(log.read()) == [("a", "1")]

    def test_events_are_numbered_from_one_without_gaps_across_openings(self, tmp_path):
        path = tmp_path / "events.db"
        for _ in range(3):
            with closing(SQLiteLog(path)) as log:
                before = len(list(log.read()))
                log.append(("kind", str(before)))
                log.append(("kind", str(before + 1)))
        assert [number for number, _, _ in rows(path)] == [1, 2, 3, 4, 5, 6]

    def test_an_event_is_on_disk_when_append_returns(self, tmp_path):
        path = tmp_path / "events.db"
        with closing(SQLiteLog(path)) as log:
            for number in range(1, 4):
                log.append(("kind", str(number)))
                assert [body for _, _, body in rows(path)] == [str(n) for n in range(1, number + 1)]

    def test_a_log_without_a_file_lives_in_memory(self):
        assert isinstance(open_log(None), MemoryLog)
        assert ft.Study(SPACE, "1 trial").storage is None

    def test_a_closed_log_refuses_with_its_path(self, tmp_path):
        log = SQLiteLog(tmp_path / "events.db")
        log.close()
        for use in (lambda: log.append(("a", "b")), lambda: log.read()):
            with pytest.raises(StorageError, match=r"events\.db"):
                use()


class TestFile:
    """The file is what it claims to be."""

    @pytest.mark.parametrize("reopened", [False, True])
    def test_write_ahead_log_and_full_synchronisation_are_really_set(self, tmp_path, reopened):
        path = tmp_path / "study.db"
        if reopened:
            small_study(path)
        with closing(SQLiteLog(path)) as log:
            log.append(("kind", "first"))
            connection = log._writer._connection  # synchronous belongs to the connection, and is not seen from outside
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            log.append(("kind", "body"))
            assert (tmp_path / "study.db-wal").stat().st_size > 0
        assert pragma(path, "journal_mode") == "wal"

    def test_the_header_names_farthing_and_the_schema_version(self, tmp_path):
        """Read from the bytes of the file format: user version at offset 60, application at 68."""
        path = tmp_path / "study.db"
        small_study(path)
        header = path.read_bytes()[:100]
        assert header[:16] == b"SQLite format 3\x00"
        assert int.from_bytes(header[60:64]) == SCHEMA_VERSION == 2
        assert header[68:72] == b"FTHG"

    def test_an_empty_file_is_filled(self, tmp_path):
        path = tmp_path / "made_by_mkstemp.db"
        path.touch()
        small_study(path)
        assert [kind for _, kind, _ in rows(path)] == ["opened", "budgeted", "asked", "told", "asked", "told"]

    def test_paths_may_be_text_or_path_with_spaces_and_odd_letters(self, tmp_path):
        for name in ("a b.db", "ü?#%20.db"):
            small_study(tmp_path / name)
            with ft.Study.resume(str(tmp_path / name)) as study:
                assert len(study.trials) == 2
            assert (tmp_path / name).is_file()

    def test_closing_leaves_one_file(self, tmp_path):
        small_study(tmp_path / "study.db")
        assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]


def another_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, body TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'mine')")
        connection.commit()


def another_database_with_wal(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    another_database(path)


def another_application_without_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id=1196444487")
        connection.execute("PRAGMA user_version=10400")


def a_newer_study(path: Path) -> None:
    small_study(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")


def a_damaged_study(path: Path) -> None:
    small_study(path)
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    path.write_bytes(bytes(damaged))


@pytest.mark.parametrize("opener", OPENERS)
class TestForeignFiles:
    """What is not a study of this version is refused by name and not touched."""

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (a_text, "cannot be opened as a study file"),
            (another_database, "not a Farthing study"),
            (another_database_with_wal, "not a Farthing study"),
            (another_application_without_tables, "not a Farthing study"),
            (a_newer_study, "schema version 3.*reads version 2.*newer"),
            (a_damaged_study, "malformed"),
        ],
    )
    def test_the_file_is_refused_by_name_and_keeps_its_bytes(self, tmp_path, opener, make, message):
        path = tmp_path / "precious.db"
        make(path)
        before = path.read_bytes()
        with pytest.raises(StorageError, match=message) as refused:
            OPENERS[opener](path)
        assert str(path) in str(refused.value)
        assert path.read_bytes() == before

    def test_a_missing_folder_is_named_and_not_made(self, tmp_path, opener):
        path = tmp_path / "nowhere" / "study.db"
        with pytest.raises(StorageError, match="nowhere"):
            OPENERS[opener](path)
        assert not path.parent.exists()

    def test_a_folder_is_refused_by_name(self, tmp_path, opener):
        folder = tmp_path / "folder.db"
        folder.mkdir()
        (folder / "mine").write_text("kept")
        with pytest.raises(StorageError, match=r"folder\.db"):
            OPENERS[opener](folder)
        assert (folder / "mine").read_text() == "kept"

    @pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see open files")
    @pytest.mark.parametrize("make", [a_text, another_database, a_newer_study])
    def test_a_refused_file_is_not_held_open(self, tmp_path, opener, make):
        path = tmp_path / "precious.db"
        make(path)
        with pytest.raises(StorageError) as refused:
            OPENERS[opener](path)
        assert refused.value is not None, "the traceback lives, as in a notebook"
        assert not held_open(path)


def held_open(path: Path) -> bool:
    """Whether this process has the file open."""
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(descriptor) == str(path):
                return True
        except FileNotFoundError:
            continue
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see open files")
def test_a_study_refused_for_its_difference_does_not_hold_the_file_open(tmp_path):
    path = tmp_path / "study.db"
    small_study(path)
    with pytest.raises(StorageError) as refused:
        ft.Study(SPACE, "10 evaluations", policy="random", seed=0, storage=path)
    assert "policy" in str(refused.value)
    assert not held_open(path)


def test_resuming_a_file_that_is_not_there_does_not_make_it(tmp_path):
    path = tmp_path / "study.db"
    with pytest.raises(StorageError, match=r"study\.db.*no such"):
        ft.Study.resume(path)
    assert not path.exists()


def test_resuming_an_empty_file_says_that_there_is_no_study(tmp_path):
    path = tmp_path / "study.db"
    path.touch()
    with pytest.raises(StorageError, match=r"study\.db.*no study"):
        ft.Study.resume(path)
    assert path.stat().st_size == 0


class TestEnds:
    """A study that nobody closes is closed when it is let go, or when its process ends: no loss is suspected."""

    @pytest.mark.parametrize("end", ["del study", "sys.exit(3)", "raise RuntimeError('mine')", "forked()"])
    def test_a_file_that_was_not_closed_by_hand_is_closed(self, tmp_path, end):
        path = tmp_path / "study.db"
        script = f"""
import os, sys
import farthing as ft

def forked():
    if os.fork() == 0:
        sys.exit(0)  # a copy of the study ends here, and must not close it for its parent
    os.wait()
    study.tell(study.ask(), value=2.0)

study = ft.Study(ft.Space(x=ft.Real(0, 1)), "10 evaluations", policy="sobol", seed=0, storage=sys.argv[1])
study.tell(study.ask(), value=1.0)
{end}
"""
        subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, timeout=60)
        assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]
        with ft.Study.resume(path) as study:
            assert study.trials[-1].status is ft.Status.COMPLETE
