"""The event log: events are on disk, whole and in order; foreign files and second writers are refused."""

from __future__ import annotations

import json
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
from farthing.record.lock import exclusive
from farthing.record.schema import CURRENT, TABLE, Format
from farthing.record.storage import SCHEMA_VERSION, MemoryLog, SQLiteLog, open_log, salvage

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
            (3, "body = replace(body, '\"trial\":0', '\"trial\":5')"),
            (3, "body = replace(body, '\"predicted_cost\":null', '\"predicted_cost\":NaN')"),
            (3, 'body = replace(body, \'"charges":{}\', \'"charges":{"optimiser":{"seconds":"1"}}\')'),
            (4, "body = replace(body, '\"value\":1.0', '\"value\":NaN')"),
            (4, "body = replace(body, '\"value\":1.0', '\"value\":-Infinity')"),
            (4, "body = replace(body, '\"value\":1.0', '\"value\":1e999')"),
            (4, 'body = replace(body, \'"value":1.0\', \'"value":"__import__(1)"\')'),
            (4, "body = replace(body, '\"value\":1.0', '\"value\":1' || substr(hex(zeroblob(4000)), 1, 8000))"),
            (4, "body = replace(body, '\"value\":1.0', '\"value\":1' || substr(hex(zeroblob(400)), 1, 800))"),
            (4, "body = replace(body, '\"cost\":null', '\"cost\":-3.0')"),
            (4, "body = replace(body, '\"attributes\":{}', '\"attributes\":[1]')"),
            (4, "body = replace(body, '\"complete\"', '\"running\"')"),
            (5, "body = replace(hex(zeroblob(100000)), '00', '[')"),
            (6, "body = '{\"trial\":' || replace(hex(zeroblob(100000)), '00', '[')"),
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
            assert len(str(refused.value)) < 1000
        if number > 1:
            assert f"the {number - 1} events before it are whole" in str(refused.value)
            assert salvage(path, tmp_path / "new.db", events=number - 1) == number - 1
            assert rows(tmp_path / "new.db") == rows(path)[: number - 1]
            with ft.Study.resume(tmp_path / "new.db", budget="5 evaluations") as study:
                study.tell(study.ask(), value=0.0)


class TestHoles:
    """Events are numbered from 1 without gaps, and are text: anything else is damage, and is named."""

    @pytest.mark.parametrize(
        ("change", "message", "before"),
        [
            ("DELETE FROM events WHERE number = 4", "event 4 is missing: event 5 comes in its place", 3),
            ("DELETE FROM events WHERE number = 1", "event 1 is missing: event 2 comes in its place", 0),
            ("UPDATE events SET number = -number WHERE number = 3", "event 1 is missing: event -3", 0),
            ("UPDATE events SET number = 9 WHERE number = 6", "event 6 is missing: event 9", 5),
            ("UPDATE events SET body = CAST(x'7BFF7D' AS TEXT) WHERE number = 5", "decode to UTF-8", 4),
        ],
    )
    def test_a_hole_is_an_error_that_says_where_and_how_much_is_whole(self, tmp_path, change, message, before):
        path = tmp_path / "study.db"
        small_study(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(change)
            connection.commit()
        whole = f"its first {before} events can be read" if before else "none of its events can be read"
        for opener in OPENERS.values():
            with pytest.raises(StorageError, match=r"study\.db") as refused:
                opener(path)
            assert message in str(refused.value)
            assert whole in str(refused.value)
        if before:
            assert salvage(path, tmp_path / "new.db") == before
            with closing(SQLiteLog(tmp_path / "new.db")) as log:
                assert len(list(log.read())) == before

    def test_salvaging_overwrites_nothing_and_keeps_the_times(self, tmp_path):
        path, new = tmp_path / "study.db", tmp_path / "new.db"
        small_study(path)
        before = path.read_bytes()
        new.write_text("mine")
        with pytest.raises(StorageError, match=r"new\.db.*already"):
            salvage(path, new)
        assert new.read_text() == "mine"
        assert salvage(path, tmp_path / "other.db") == 6
        assert path.read_bytes() == before
        times = "SELECT number, time FROM events ORDER BY number"
        with closing(sqlite3.connect(path)) as a, closing(sqlite3.connect(tmp_path / "other.db")) as b:
            assert a.execute(times).fetchall() == b.execute(times).fetchall()

    def test_salvaging_what_is_no_study_says_so(self, tmp_path):
        a_text(tmp_path / "thesis.db")
        for name in ("thesis.db", "nowhere.db"):
            with pytest.raises(StorageError, match=f"{name}: none of its events"):
                salvage(tmp_path / name, tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()


HOSTILE_SCHEMAS = {
    "trigger": (
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN UPDATE events SET body = 'stolen'; END",
        "holds a trigger 'more'",
    ),
    "view beside": ("CREATE VIEW more AS SELECT * FROM events", "holds a view 'more'"),
    "table beside": ("CREATE TABLE more (x)", "holds a table 'more'"),
    "index": ("CREATE INDEX more ON events (abs(number))", "holds a index 'more'"),
    "view instead": (
        "ALTER TABLE events RENAME TO others; CREATE VIEW events AS SELECT number, time, kind, body FROM others",
        "holds a view 'events'",
    ),
    "columns": ("ALTER TABLE events ADD COLUMN more TEXT AS (upper(body))", "not the one Farthing makes"),
    "loose table": (
        "DROP TABLE events; CREATE TABLE events (number, time, kind, body); INSERT INTO events VALUES (1, 2, x'00', 3)",
        "not the one Farthing makes",
    ),
    "no table": ("DROP TABLE events", "without its table"),
}


class TestHostileFiles:
    """A study file is data: whatever is in it, nothing of it runs, and what is not ours is refused unchanged."""

    @pytest.mark.parametrize("kind", HOSTILE_SCHEMAS)
    def test_anything_in_the_schema_but_our_table_is_refused(self, tmp_path, kind):
        path, (script, message) = tmp_path / "study.db", HOSTILE_SCHEMAS[kind]
        small_study(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        before = path.read_bytes()
        for opener in OPENERS.values():
            with pytest.raises(StorageError, match=message):
                opener(path)
        assert path.read_bytes() == before

    def test_functions_in_the_schema_are_not_trusted(self, tmp_path):
        with closing(SQLiteLog(tmp_path / "study.db")) as log:
            assert log._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)

    def test_text_that_looks_like_code_stays_text(self, tmp_path):
        path, trace = tmp_path / "study.db", tmp_path / "trace"
        codes = [
            f"__import__('pathlib').Path({str(trace)!r}).touch()",
            "cos\nsystem\n(S'touch trace'\ntR.",
            "'); DROP TABLE events; --",
            "{{7*7}} ${7*7} %s %(x)s {0}",
            "\x00\ud7ff\U0001f4a9",
        ]
        space = ft.Space(kind=ft.Choice(codes), x=ft.Real(0, 1))
        with ft.Study(space, "20 evaluations", policy="random", seed=0, storage=path) as study:
            for code in codes:
                study.tell(study.ask(), failed=code, note=code)
        with ft.Study.resume(path) as study:
            assert [trial.error for trial in study.trials] == codes
            assert [trial.attributes["note"] for trial in study.trials] == codes
            assert all(trial.config["kind"] in codes for trial in study.trials)
        assert not trace.exists()

    def test_nothing_that_reads_files_can_run_code(self):
        """No pickle, no eval: neither in the modules between a file and a study nor in what they call for a body."""
        source = Path(ft.__file__).parent
        readers = [*(source / "record").glob("*.py"), *(source / "space").glob("*.py")]
        assert {"storage.py", "events.py", "record.py", "reader.py", "serialization.py"} <= {
            path.name for path in readers
        }
        for module in readers:
            text = module.read_text()
            for word in ("pickle", "eval(", "exec(", "marshal", "yaml", "import_module", "enable_load_extension"):
                assert word not in text, f"{module.name}: {word}"


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
        assert read == ["ok", "2"]
        for kind, text in (asked, rebudgeted):
            assert kind == "StorageError"
            assert str(path) in text
        assert "open for reading only" in asked[1]
        assert created[0] == "StorageError"
        assert "closed/new.db" in created[1]


class TestTwoProcesses:
    """Any number may read; one may write."""

    WRITER = """
        import sys
        from farthing.record.storage import SQLiteLog

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
        from farthing.record.storage import SQLiteLog

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


FIRST_EVENTS = {  # what stands in the first event instead of what belongs there
    "deep": "[" * 100_000,
    "a list": [1],
    "a space that is a number": {"space": 5},
    "a space without parameters": {"space": {}},
    "a policy that is a number": {"policy": 5},
    "a policy with an option of nobody's": {"policy": {"name": "sobol", "__class__": "x"}},
    "a seed that is text": {"seed": "x"},
    "a seed that is no number": {"seed": float("nan")},
    "a start that is no config": {"start": [5]},
    "a target that is text": {"stop_at": "x"},
    "costs that are a number": {"cost": 7},
    "a prior that is a number": {"cost": {"prior": 5}},
    "steps that are text": {"max_steps": "x"},
    "a sign that is text": {"maximize": "no"},
}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("case", FIRST_EVENTS)
def test_a_first_event_that_makes_no_sense_is_a_storage_error(tmp_path, opener, case):
    path, change = tmp_path / "study.db", FIRST_EVENTS[case]
    small_study(path)
    body = json.loads(rows(path)[0][2])
    text = change if isinstance(change, str) else json.dumps({**body, **change} if isinstance(change, dict) else change)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET body = ? WHERE number = 1", (text,))
        connection.commit()
    with pytest.raises(StorageError, match=r"study\.db"):
        OPENERS[opener](path)
