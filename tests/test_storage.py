"""The event log: events are on disk, whole and in order; foreign files and second writers are refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.errors import StorageError
from farthing.storage import SCHEMA_VERSION, MemoryLog, SQLiteLog, open_log

SPACE = ft.Space(x=ft.Real(0, 1))


def rows(path: Path) -> list[tuple[int, str, str]]:
    """The events of a file as SQLite itself sees them."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()


def pragma(path: Path, name: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def small_study(path: Path) -> None:
    """A study file of two trials."""
    with ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path) as study:
        for value in (1.0, 2.0):
            study.tell(study.ask(), value=value)


def start(script: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """A Python process that runs a script, its streams piped as text."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


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
            SQLiteLog(path).close()
        with closing(SQLiteLog(path)) as log:
            connection = log._connection  # synchronous belongs to the connection and cannot be seen from outside
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
        assert int.from_bytes(header[60:64]) == SCHEMA_VERSION == 1
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


def a_text(path: Path) -> None:
    path.write_text("the only copy of my thesis, " * 1000)


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


OPENERS = {
    "Study": lambda path: ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path),
    "Study.resume": ft.Study.resume,
}


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
            (a_newer_study, "schema version 2.*reads version 1.*newer"),
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
    SQLiteLog(path).close()
    with pytest.raises(StorageError, match=r"study\.db.*no study"):
        ft.Study.resume(path)


class TestDamagedEvents:
    """An event that cannot be read is a StorageError with the file and the event's number."""

    @pytest.mark.parametrize(
        ("number", "change"),
        [
            (1, "body = '{\"space\": '"),
            (1, "body = '{}'"),
            (1, "body = 'null'"),
            (1, "kind = 'told'"),
            (2, "body = '{}'"),
            (3, "body = 'no json'"),
            (3, "kind = 'dreamt'"),
            (3, "body = replace(body, '\"x\"', '\"y\"')"),
            (4, "body = replace(body, '\"trial\":0', '\"trial\":7')"),
            (4, "body = replace(body, 'complete', 'finished')"),
            (5, "body = '[]'"),
        ],
    )
    def test_it_is_named(self, tmp_path, number, change):
        path = tmp_path / "study.db"
        small_study(path)
        with closing(sqlite3.connect(path)) as connection:
            changed = connection.execute(f"UPDATE events SET {change} WHERE number = {number}").rowcount
            connection.commit()
        assert changed == 1
        for opener in OPENERS.values():
            with pytest.raises(StorageError, match=r"study\.db") as refused:
                opener(path)
            assert "event" in str(refused.value)
            assert str(number) in str(refused.value) or number == 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user of this machine can enter; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="farthing-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX knows them")
class TestReadOnly:
    """What may not be written is refused with its path and left as it was."""

    SCRIPT = """
        import os, sys
        import farthing as ft
        from farthing.errors import StorageError

        path, folder = sys.argv[1:]
        space = ft.Space(x=ft.Real(0, 1))
        ft.Study(space, "1 trial", policy="sobol").ask()  # all that is imported late is imported now
        if os.geteuid() == 0:  # root would not notice a read-only file
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        def attempt(use):
            try:
                print("ok", use(), sep="|")
            except StorageError as error:
                print("StorageError", error, sep="|")

        def resumed():
            with ft.Study.resume(path) as study:
                return len(study.trials)

        def asked():
            with ft.Study.resume(path) as study:
                return study.ask()

        attempt(resumed)
        attempt(asked)
        attempt(lambda: ft.Study(space, "20 evaluations", policy="sobol", seed=0, storage=path))
        attempt(lambda: ft.Study(space, "20 evaluations", seed=0, storage=folder + "/new.db"))
        """

    @pytest.mark.parametrize("mode", [0o555, 0o777], ids=["folder read-only", "folder writable"])
    def test_a_read_only_file(self, open_folder, mode):
        path = open_folder / "study.db"
        small_study(path)
        path.chmod(0o444)
        (open_folder / "closed").mkdir(mode=0o555)
        open_folder.chmod(mode)
        before = path.read_bytes()
        child = start(self.SCRIPT, path, open_folder / "closed")
        printed, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
        read, asked, rebudgeted, created = [line.split("|", 1) for line in printed.splitlines()]
        open_folder.chmod(0o755)
        assert path.read_bytes() == before
        assert read == ["ok", "2"] or (read[0] == "StorageError" and str(path) in read[1])
        for kind, text in (asked, rebudgeted):
            assert kind == "StorageError"
            assert str(path) in text
        assert created[0] == "StorageError"
        assert "closed/new.db" in created[1]


class TestTwoProcesses:
    """Any number may read; one may write."""

    WRITER = """
        import sys
        from farthing.storage import SQLiteLog

        log = SQLiteLog(sys.argv[1])
        for number in range(1, 41):
            log.append(("kind", f"event {number}"))
            print(number, flush=True)
            if number % 10 == 0:
                sys.stdin.readline()
        """

    def test_a_second_process_reads_while_the_first_writes(self, tmp_path):
        path = tmp_path / "study.db"
        seen = []
        with start(self.WRITER, path) as writer:
            for line in writer.stdout:
                with closing(SQLiteLog(path)) as reader:
                    events = list(reader.read())
                assert events == [("kind", f"event {n}") for n in range(1, len(events) + 1)], "a prefix, in order"
                assert len(events) >= int(line), "what the writer announced is there"
                seen.append(len(events))
                if int(line) % 10 == 0:
                    assert writer.poll() is None, "the writer is still at it"
                    writer.stdin.write("\n")
                    writer.stdin.flush()
            assert writer.wait(timeout=30) == 0, writer.stderr.read()
        assert seen == sorted(seen)
        assert seen[-1] == 40

    def test_a_reader_does_not_wait_for_a_transaction_that_is_under_way(self, tmp_path):
        path = tmp_path / "study.db"
        small_study(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO events VALUES (7, 0.0, 'told', 'half')")
            with ft.Study.resume(path) as study:
                assert len(study.trials) == 2
            other.execute("ROLLBACK")

    def test_the_late_one_of_two_writers_is_refused_and_events_stay_consecutive(self, tmp_path):
        path = tmp_path / "study.db"
        small_study(path)
        with ft.Study.resume(path) as first, ft.Study.resume(path) as second:
            kept = first.ask()
            with pytest.raises(StorageError, match=r"study\.db.*another process has written"):
                second.ask()
            assert len(second.trials) == 2, "memory knows no more than the file"
            first.tell(kept, value=3.0)
            with pytest.raises(StorageError, match="another process"):
                second.ask()
        assert [number for number, _, _ in rows(path)] == list(range(1, 9))
        with ft.Study.resume(path) as study:
            assert [trial.value for trial in study.trials] == [1.0, 2.0, 3.0]

    RIVAL = """
        import sys
        from farthing.errors import StorageError
        from farthing.storage import SQLiteLog

        print("ready", flush=True)
        for path in sys.stdin:
            try:
                log = SQLiteLog(path.strip())
                list(log.read())
                log.append(("opened", "mine"))
                log.close()
                print("ok", flush=True)
            except StorageError as error:
                print(error, flush=True)
        """

    def test_processes_that_make_the_same_file_at_once_leave_it_whole(self, tmp_path):
        with ExitStack() as stack:
            rivals = [stack.enter_context(start(self.RIVAL)) for _ in range(3)]
            for rival in rivals:
                assert rival.stdout.readline() == "ready\n"
            for attempt in range(40):
                path = tmp_path / f"{attempt}.db"
                for rival in rivals:
                    rival.stdin.write(f"{path}\n")
                for rival in rivals:
                    rival.stdin.flush()
                answers = [rival.stdout.readline().strip() for rival in rivals]
                written = answers.count("ok")
                assert written >= 1, answers
                assert all(answer == "ok" or "another process has written" in answer for answer in answers), answers
                assert [number for number, _, _ in rows(path)] == list(range(1, written + 1))
                assert pragma(path, "integrity_check") == "ok"
        assert [rival.returncode for rival in rivals] == [0, 0, 0]


class TestSeveralAtOnce:
    def test_they_are_all_there_or_none_is(self, tmp_path):
        """A batch that a late writer hands in collides with what another wrote, and leaves nothing behind."""
        early, late = SQLiteLog(tmp_path / "study.db"), SQLiteLog(tmp_path / "study.db")
        late.append(("a", "1"), ("b", "2"))
        early.read()
        late.append(("c", "3"))
        with pytest.raises(StorageError, match="another process"):
            early.append(("d", "4"), ("e", "5"))
        assert list(late.read()) == [("a", "1"), ("b", "2"), ("c", "3")]
        early.read()
        early.append(("d", "4"), ("e", "5"))
        assert [kind for kind, _ in late.read()] == ["a", "b", "c", "d", "e"]
        early.close()
        late.close()
