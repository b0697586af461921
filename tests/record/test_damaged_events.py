"""Events that cannot be read, are missing or are hostile: the error names them, and nothing in them runs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from study_files import OPENERS, a_text, rows, small_study

import farthing as ft
from farthing.errors import StorageError
from farthing.record.storage import SQLiteLog, salvage
from stored_events import change


class TestDamagedEvents:
    """An event that cannot be read is a StorageError with the file and the event's number."""

    @pytest.mark.parametrize(
        ("number", "changed"),
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
    def test_it_is_named(self, tmp_path, number, changed):
        path = tmp_path / "study.db"
        small_study(path)
        assert change(path, f"UPDATE events SET {changed} WHERE number = {number}") == 1
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

    def test_salvaging_a_file_that_is_not_a_study_says_so(self, tmp_path):
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
        "ALTER TABLE events RENAME TO others; CREATE VIEW events AS SELECT * FROM others",
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
    """A study file is data: nothing in it is ever run, and foreign content is refused and left unchanged."""

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
            log.append(("kind", "body"))
            assert log._writer._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)

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


FIRST_EVENTS = {  # what stands in the first event instead of what belongs there
    "deep": "[" * 100_000,
    "a list": [1],
    "a space that is a number": {"space": 5},
    "a space without parameters": {"space": {}},
    "a policy that is a number": {"policy": 5},
    "a policy with an option of nobody's": {"policy": {"name": "sobol", "__class__": "x"}},
    "a seed that is text": {"seed": "x"},
    "a seed that is not a number": {"seed": float("nan")},
    "a start that is not a config": {"start": [5]},
    "a target that is text": {"stop_at": "x"},
    "costs that are a number": {"cost": 7},
    "a prior that is a number": {"cost": {"prior": 5}},
    "steps that are text": {"max_steps": "x"},
    "a sign that is text": {"maximize": "no"},
}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("case", FIRST_EVENTS)
def test_a_first_event_that_makes_no_sense_is_a_storage_error(tmp_path, opener, case):
    path, planted = tmp_path / "study.db", FIRST_EVENTS[case]
    small_study(path)
    body = json.loads(rows(path)[0][2])
    whole = {**body, **planted} if isinstance(planted, dict) else planted
    text = planted if isinstance(planted, str) else json.dumps(whole)
    change(path, "UPDATE events SET body = ? WHERE number = 1", (text,))
    with pytest.raises(StorageError, match=r"study\.db"):
        OPENERS[opener](path)
