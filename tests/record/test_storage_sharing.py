"""Several processes and one study file: any number may read it, one may write."""

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
from study_files import pragma, rows, small_study

import farthing as ft
from farthing.errors import StorageError
from farthing.record.storage import SQLiteLog


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
            other.execute("INSERT INTO events VALUES (7, 0.0, 'told', 'half', 0)")
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
    def test_either_all_events_of_a_batch_are_there_or_none(self, tmp_path):
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
