"""Damaged study files: what is read is what was written, or the loss is said. Never anything else."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from hostile_files import VALUES, answer, closed_study, contents, killed_study, refused, study_in

import farthing as ft
from farthing.record.reader import read_study
from farthing.record.storage import salvage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files as POSIX knows them")


def looked_at(path: Path) -> tuple[object, list[str]]:
    """The complete trials that a reader gets, all there is of them, and what it is warned of."""

    def complete() -> list[str]:
        return [repr(trial) for trial in read_study(path).trials if trial.status is ft.Status.COMPLETE]

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        given = answer(complete)
    return given, [str(warning.message) for warning in said]


def judged(path: Path, whole: list[str]) -> str:
    """Same content, said, or what must not be."""
    given, said = looked_at(path)
    if given == whole:
        return "same"
    if refused(given):
        return "said"
    if not isinstance(given, list):
        return f"traceback: {given!r}"
    if given != whole[: len(given)]:
        return "wrong data"
    return "said" if said else "silent loss"


class TestDamage:
    """Flipped bits and bytes, zeros, cuts: 300 in each kind of file."""

    @pytest.mark.parametrize("kind", ["closed", "killed"])
    def test_wrong_data_never_and_every_loss_is_said(self, tmp_path, kind):
        path = closed_study(tmp_path / "study.db") if kind == "closed" else killed_study(tmp_path)
        whole, before = looked_at(path)[0], contents(tmp_path)
        assert isinstance(whole, list)
        assert len(whole) == 10
        rng, found = random.Random(5), list[str]()
        files = [name for name in before if not name.endswith("-shm")]
        for attempt in range(300):
            name = files[attempt % len(files)]
            content, place = bytearray(before[name]), rng.randrange(len(before[name]))
            if attempt % 10 < 7:
                content[place] ^= 1 << rng.randrange(8)
            elif attempt % 10 == 7:
                content[rng.randrange(100)] ^= 1 << rng.randrange(8)
            elif attempt % 10 == 8:
                content[place : place + 64] = bytes(len(content[place : place + 64]))
            else:
                del content[place:]
            (tmp_path / name).write_bytes(content)
            now = contents(tmp_path)
            found.append(judged(path, whole))
            assert contents(tmp_path) == now, "looking has changed something"
            for file, held in before.items():
                (tmp_path / file).write_bytes(held)
        wrong = [outcome for outcome in found if outcome not in ("same", "said")]
        assert wrong == [], f"{len(wrong)} of {len(found)}"
        assert found.count("said") > 100, "most damage is in what was written"

    def test_a_changed_digit_is_seen(self, tmp_path):
        """The file is a valid database, the event valid JSON, and its number another."""
        path = closed_study(tmp_path / "study.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE events SET body = replace(body, '0.25', '0.75')")
            connection.commit()
        assert refused(looked_at(path)[0], "its checksum is wrong")

    def test_the_last_events_cannot_be_taken_away(self, tmp_path):
        path = closed_study(tmp_path / "study.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DELETE FROM events WHERE number > 15")
            connection.commit()
        assert refused(looked_at(path)[0], "held 22 events, and 15 of them are there")
        assert salvage(path, tmp_path / "new.db") == 15


class TestLogs:
    """A log that is gone or shorter than it was."""

    @pytest.mark.parametrize("index", ["with its index", "without"])
    def test_a_removed_log_is_said_by_all_who_look_until_somebody_writes(self, tmp_path, index):
        path = killed_study(tmp_path, ("", "-wal", "-shm") if index == "with its index" else ("", "-wal"))
        Path(f"{path}-wal").unlink()
        for _ in range(2):
            given, said = looked_at(path)
            assert len(given) < len(VALUES)
            assert any("its write-ahead log is missing" in text for text in said), said
        with pytest.warns(RuntimeWarning, match="missing"), ft.Study.resume(path) as study:
            study.tell(study.ask(), value=0.5)
        assert looked_at(path)[1] == []

    def test_a_log_cut_between_two_events_is_said_where_its_index_is_there(self, tmp_path):
        path = killed_study(tmp_path)
        log = Path(f"{path}-wal")
        content, counts = log.read_bytes(), set()
        given, said = looked_at(path)
        assert isinstance(given, list), given
        assert (len(given), said) == (10, [])
        for size in range(32 + 4120, len(content), 4120):
            log.write_bytes(content[:size])
            given, said = looked_at(path)
            assert isinstance(given, list), given
            counts.add(len(given))
            assert len(given) == 10 or said, f"silent at {size}"
        assert len(counts) > 5

    def test_a_file_that_was_killed_in_any_way_opens_without_a_word(self, tmp_path):
        """No false alarm: the state after each event is what a kill leaves then."""
        live, left = tmp_path / "live.db", tmp_path / "left.db"
        silent = []
        with study_in(live) as study:
            for count in range(6):
                study.tell(study.ask(), value=float(count))
                for suffix in ("", "-wal", "-shm"):
                    shutil.copyfile(f"{live}{suffix}", f"{left}{suffix}")
                given, said = looked_at(left)
                silent.append(len(given) == count + 1 and said == [])
        assert all(silent)
        assert looked_at(live)[1] == []
        assert marks(live), "and it is known that it was closed"


def marks(path: Path) -> list[dict[str, object]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        if "marks" not in tables:
            return []
        return [json.loads(body) for (body,) in connection.execute("SELECT body FROM marks")]
