"""Attacks on study files by path: links, pipes, second names and gigabytes. Looking changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from hostile_files import (
    LOOKS,
    VALUES,
    answer,
    closed_study,
    contents,
    environment,
    killed_study,
    refused,
    study_in,
)

import farthing as ft
from farthing.record.reader import read_study

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, pipes and modes as POSIX knows them")


class TestLooking:
    """It never changes a byte, and never removes a log."""

    @pytest.mark.parametrize("look", LOOKS)
    @pytest.mark.parametrize("suffixes", [("", "-wal"), ("", "-wal", "-shm")], ids=["without index", "with index"])
    def test_a_killed_study(self, tmp_path, look, suffixes):
        path = killed_study(tmp_path, suffixes)
        before = contents(tmp_path)
        assert LOOKS[look](path) == VALUES
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("look", LOOKS)
    def test_a_damaged_log(self, tmp_path, look):
        path = killed_study(tmp_path)
        log = Path(f"{path}-wal")
        content = bytearray(log.read_bytes())
        content[32 + 5 * 4120 + 1000] ^= 1
        log.write_bytes(content)
        before = contents(tmp_path)
        for _ in range(2):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                answer(lambda: LOOKS[look](path))
            assert contents(tmp_path) == before
            assert said, "the second time too"

    def test_an_empty_file(self, tmp_path):
        path = tmp_path / "study.db"
        path.touch()
        for look in LOOKS.values():
            assert refused(answer(lambda look=look: look(path)), "no study yet")
        assert contents(tmp_path) == {"study.db": b""}


def test_the_command_line_looks_without_changing_anything(tmp_path):
    path = killed_study(tmp_path)
    before = contents(tmp_path)
    command = [sys.executable, "-m", "farthing", "status", path.name]
    shown = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert contents(tmp_path) == before


class TestLinks:
    """A study opened through a link is the study it leads to, with its log, its lock and its checkpoints."""

    @pytest.mark.parametrize("look", LOOKS)
    def test_the_log_of_the_real_file_is_read_where_nothing_may_be_written(self, tmp_path, monkeypatch, look):
        path, link = killed_study(tmp_path / "real"), tmp_path / "link.db"
        link.symlink_to(path)
        monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as on a read-only disk: root may write anywhere
        assert answer(lambda: LOOKS[look](link)) == VALUES

    @pytest.mark.parametrize("look", LOOKS)
    def test_an_emptied_file_keeps_its_log(self, tmp_path, look):
        path, link = killed_study(tmp_path / "real"), tmp_path / "link.db"
        link.symlink_to(path)
        os.truncate(path, 0)
        log = Path(f"{path}-wal").read_bytes()
        assert refused(answer(lambda: LOOKS[look](link)), "is empty, but its write-ahead log")
        assert Path(f"{path}-wal").exists()
        assert Path(f"{path}-wal").read_bytes() == log

    def test_checkpoints_are_next_to_the_real_file(self, tmp_path):
        (tmp_path / "real").mkdir()
        path, link = tmp_path / "real" / "study.db", tmp_path / "link.db"
        link.symlink_to(path)

        def objective(config):
            (ft.current_run().checkpoint_dir / "state").write_text("1")
            return config["x"]

        with study_in(link) as study:
            study.run(lambda config: objective(config), isolate=False, progress=False, callbacks=[stop])
        assert (tmp_path / "real" / "study.db.checkpoints" / "trial-0" / "state").is_file()
        assert not Path(f"{link}.checkpoints").exists()

    def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(self, tmp_path):
        path, precious = closed_study(tmp_path / "study.db"), tmp_path / "precious"
        precious.write_text("the only copy")
        Path(f"{path}.lock").symlink_to(precious)
        with ft.Study.resume(path) as study:
            given = answer(lambda: study.run(lambda config: 0.0, isolate=False, progress=False, callbacks=[stop]))
        assert precious.read_text() == "the only copy"
        assert refused(given, "study.db.lock")

    def test_a_lock_with_a_second_name_is_refused_and_its_content_kept(self, tmp_path):
        path, precious = closed_study(tmp_path / "study.db"), tmp_path / "precious"
        precious.write_text("the only copy")
        os.link(precious, f"{path}.lock")
        with ft.Study.resume(path) as study:
            given = answer(lambda: study.note(mine=1))
        assert precious.read_text() == "the only copy"
        assert refused(given, "study.db.lock")

    @pytest.mark.parametrize("linked", ["study.db.checkpoints", "study.db.checkpoints/trial-0"])
    def test_nothing_is_removed_where_a_link_among_checkpoints_leads(self, tmp_path, linked):
        path, mine = tmp_path / "study.db", tmp_path / "mine"
        (mine / "trial-0").mkdir(parents=True)
        (mine / "trial-0" / "model").write_text("precious")
        (tmp_path / linked).parent.mkdir(exist_ok=True)
        (tmp_path / linked).symlink_to(mine if "/" not in linked else mine / "trial-0")

        def objective(config):
            (ft.current_run().checkpoint_dir / "model").write_text("new")
            return config["x"]

        with study_in(path) as study:
            given = answer(lambda: study.run(objective, isolate=False, progress=False, callbacks=[stop]))
        assert isinstance(given, ft.Study) or refused(given, "symbolic link"), given
        assert (mine / "trial-0" / "model").exists(), "it was removed"
        assert (mine / "trial-0" / "model").read_text() == "precious"


def stop(study, trial):
    study.stop()


def test_a_change_of_folder_after_opening_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    seen = []

    def look_around(study, trial):
        seen.append((tmp_path / "here" / "study.db.lock").exists())
        study.stop()

    with study_in("study.db") as study:
        monkeypatch.chdir(tmp_path / "there")
        study.run(lambda config: config["x"], isolate=False, progress=False, callbacks=[look_around])
        assert answer(lambda: len(study._session.record.past())) == 5, "its past is read from the same file"
    assert seen == [True]
    assert list((tmp_path / "there").iterdir()) == []


class TestSecondNames:
    """A file with several hard links: reading is fine, writing would leave its log under one name only."""

    def test_reading_works_and_writing_is_refused(self, tmp_path):
        path = closed_study(tmp_path / "study.db")
        os.link(path, tmp_path / "other.db")
        before = path.read_bytes()
        assert [trial.value for trial in read_study(path).trials] == VALUES
        with ft.Study.resume(path) as study:
            assert refused(answer(study.ask), "hard links")
        assert path.read_bytes() == before


KINDS = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "link": lambda path: os.symlink("/dev/zero", path),
}


class TestOddKinds:
    """What is no ordinary file is refused at once: nothing hangs, and nothing is read without end."""

    def test_next_to_a_study_or_in_its_place(self, tmp_path):
        wrong = []
        for suffix in ("-wal", "-shm", ".lock", ""):
            for kind, make in KINDS.items():
                path = closed_study(tmp_path / f"{kind}{suffix}.db")
                if not suffix:
                    path.unlink()
                make(f"{path}{suffix}")
                looked = answer(lambda path=path: read_study(path), seconds=5.0)
                written = answer(lambda path=path: ft.Study.resume(path, budget="200 evaluations"), seconds=5.0)
                if not refused(written) or not (refused(looked) or (suffix == ".lock" and looked != "hangs")):
                    wrong.append((suffix, kind, looked, written))
        assert wrong == []

    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see the memory of a process")
    def test_a_gigabyte_of_zeros_is_refused_without_reading_it(self, tmp_path):
        paths = [closed_study(tmp_path / name) for name in ("file.db", "log.db")]
        for zeros in (paths[0], f"{paths[1]}-wal"):
            with open(zeros, "wb") as file:
                file.truncate(1 << 30)
        script = """
import resource, sys
import farthing as ft
from farthing.errors import StorageError
from farthing.record.reader import read_study

held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 300_000_000, -1))
for path in sys.argv[1:]:
    for use in (read_study, ft.Study.resume):
        try:
            use(path)
        except StorageError:
            print("refused")
"""
        child = [sys.executable, "-c", script, *map(str, paths)]
        ended = subprocess.run(child, env=environment(), capture_output=True, text=True, timeout=120)
        assert ended.stdout.split() == ["refused"] * 4, ended.stderr[-500:]


class TestDuringARun:
    """A file that is deleted or replaced while it is in use is noticed at the next write."""

    @pytest.mark.parametrize("how", ["deleted", "replaced", "log deleted"])
    def test_it_is_said(self, tmp_path, how):
        path, other = tmp_path / "study.db", closed_study(tmp_path / "other.db")
        with study_in(path) as study:
            study.tell(study.ask(), value=1.0)
            if how == "deleted":
                path.unlink()
            elif how == "replaced":
                os.replace(other, path)
            else:
                Path(f"{path}-wal").unlink()
            assert refused(answer(study.ask), "was deleted or replaced")
            assert len(study.trials) == 1, "memory knows no more than was written"
        if how == "log deleted":
            assert [trial.value for trial in read_study(path).trials] == [1.0], "nothing that was written is lost"


@pytest.mark.parametrize("storage", [":memory:", "file:x.db", "file:x.db?mode=memory", ""])
def test_names_that_mean_something_else_to_sqlite_are_refused(tmp_path, monkeypatch, storage):
    monkeypatch.chdir(tmp_path)
    assert refused(answer(lambda: study_in(storage)), "storage: expected")
    assert list(tmp_path.iterdir()) == []


def test_new_files_are_for_their_owner_only(tmp_path):
    before = os.umask(0o022)
    try:
        path = tmp_path / "study.db"
        with study_in(path) as study:
            study.tell(study.ask(), value=1.0)
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) == {"study.db", "study.db-wal", "study.db-shm", "study.db.lock"}
    assert set(modes.values()) == {0o600}


JUNK = b"\xff\xfe\xfd\xff\xfe\xfd"
SCHEMAS = [  # what stands in the first page in the place of what
    [(b"CREATE TABLE events", b"CREATE TABLE " + JUNK)],
    [(b"events", JUNK)],
    [(b"eventsevents", JUNK + JUNK), (b"CREATE TABLE", b"CREATE TAB\xff\xfe")],
]


@pytest.mark.parametrize("look", LOOKS)
def test_a_schema_of_any_bytes_is_refused(tmp_path, look):
    """SQLite puts names of the schema into its messages, and Python cannot read those."""
    path = closed_study(tmp_path / "study.db")
    content = path.read_bytes()
    for replacements in SCHEMAS:
        first = content[:4096]
        for ours, theirs in replacements:
            assert ours in first
            first = first.replace(ours, theirs)
        path.write_bytes(first + content[4096:])
        given = answer(lambda: LOOKS[look](path))
        assert refused(given, "study.db"), given


def test_a_copy_made_by_sqlite_during_a_run_is_whole(tmp_path):
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with study_in(path) as study:
        for value in VALUES:
            study.tell(study.ask(), value=value)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        shutil.copyfile(path, tmp_path / "bare.db")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [trial.value for trial in read_study(copy).trials] == VALUES
        given = answer(lambda: read_study(tmp_path / "bare.db").trials)
    assert refused(given) or len(given) < len(VALUES)
    assert ["bare.db: " in str(warning.message) for warning in said] == [True], "of the other nothing is said"
